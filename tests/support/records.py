"""Fixtures for tests that run on every database the records may live in.

A ``conftest.py`` takes them over by importing them: ``backend`` (its name), ``records_location`` (an empty place),
``migrated_location`` (one with tables), ``engine`` (the same, open), ``postgresql`` (the server).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from gpuherd.records.database import open_records
from support.postgresql import Postgresql, running_postgresql, why_no_postgresql

__all__ = ["backend", "engine", "migrated_location", "migrated_sqlite", "postgresql", "records_location"]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A real PostgreSQL server."""
    if (why := why_no_postgresql()) is not None:
        pytest.skip(why)
    pytest.importorskip("psycopg", reason="the extra gpuherd[postgresql] is not installed")
    with running_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with empty tables, for copying: migrating anew for each test takes most of its time."""
    file = tmp_path_factory.mktemp("migrated") / "records.sqlite"
    open_records(file).dispose()
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each backend in turn."""
    return str(request.param)


@pytest.fixture
def records_location(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> Iterator[Path | str]:
    """An empty place for records in each backend."""
    if backend == "sqlite":
        yield tmp_path / "records.sqlite"
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    with server.database() as url:
        yield url


@pytest.fixture
def migrated_location(
    request: pytest.FixtureRequest, backend: str, tmp_path: Path, migrated_sqlite: Path
) -> Iterator[Path | str]:
    """A place for records with empty tables in each backend."""
    if backend == "sqlite":
        yield Path(shutil.copy(migrated_sqlite, tmp_path / "records.sqlite"))
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    with server.database(migrated=True) as url:
        yield url


@pytest.fixture
def engine(migrated_location: Path | str) -> Iterator[Engine]:
    """Records that are open and empty."""
    engine = open_records(migrated_location)
    yield engine
    engine.dispose()
