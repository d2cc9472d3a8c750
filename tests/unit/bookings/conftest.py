"""Records for tests of rules that end in a database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records
from support.records import migrated_sqlite

__all__ = ["migrated_sqlite", "records"]


@pytest.fixture
def records(tmp_path: Path, migrated_sqlite: Path) -> Iterator[BookingRecords]:
    """Empty booking records."""
    engine = open_records(Path(shutil.copy(migrated_sqlite, tmp_path / "records.sqlite")))
    yield BookingRecords(engine)
    engine.dispose()
