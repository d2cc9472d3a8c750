"""Records for tests of rules that end in a database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records
from support.records import backend, engine, migrated_location, migrated_sqlite, postgresql

__all__ = ["backend", "engine", "migrated_location", "migrated_sqlite", "postgresql", "records"]


@pytest.fixture
def records(tmp_path: Path, migrated_sqlite: Path) -> Iterator[BookingRecords]:
    """Empty booking records, where one database is as good as the other."""
    opened = open_records(Path(shutil.copy(migrated_sqlite, tmp_path / "bookings.sqlite")))
    yield BookingRecords(opened)
    opened.dispose()
