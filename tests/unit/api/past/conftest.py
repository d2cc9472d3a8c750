"""A past to tell of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from gpuherd.records.database import open_records
from support.records import migrated_sqlite
from support.reported_past import ReportedPast, reported_past

__all__ = ["engine", "migrated_sqlite", "past"]


@pytest.fixture
def engine(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Engine]:
    """Empty records."""
    shutil.copy(migrated_sqlite, tmp_path / "records.sqlite")
    engine = open_records(tmp_path / "records.sqlite")
    yield engine
    engine.dispose()


@pytest.fixture
def past(tmp_path: Path, engine: Engine) -> Iterator[ReportedPast]:
    """Nothing yet."""
    with reported_past(tmp_path / "history", engine) as made:
        yield made
