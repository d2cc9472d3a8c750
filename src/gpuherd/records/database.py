"""Opening the records: SQLite in the state folder by default, PostgreSQL by URL; always migrated first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from gpuherd.model.errors import Misconfigured
from gpuherd.records.postgresql import postgresql_engine
from gpuherd.records.sqlite_file import SqliteFile
from gpuherd.records.transactions import READS_ONLY, reason_of

__all__ = [
    "NEWEST",
    "migrate",
    "open_records",
    "records_engine",
    "records_file",
    "records_url",
    "revision_in",
    "sqlite_file",
]

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK_WAIT_SECONDS = 10
_MIGRATION_SECONDS = 3600.0
_MIGRATION_LOCK = 0x67707568
"""Of PostgreSQL's advisory locks, the one that hubs which start at the same time contend for."""
_FILE = "gpuherd_file"
"""Name of the engine's execution option that holds its ``SqliteFile``."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


NEWEST = "0007"
"""The revision of ``tables.py``; a test compares it with the migrations."""


def records_file(state_dir: Path) -> Path:
    """Name the default database file."""
    return state_dir / "records.sqlite"


def records_url(location: Path | str) -> URL:
    """Read where the records are. ``Misconfigured`` if that is no file nor a URL of a database that is known."""
    if isinstance(location, Path):
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(location)
    except ArgumentError as error:
        raise Misconfigured(
            "hub.records_url: is not a database URL such as postgresql://host/name"
        ) from error
    if url.drivername in {"postgres", "postgresql"}:
        url = url.set(drivername="postgresql+psycopg")
    return url


def _begin_sqlite(connection: Any) -> None:
    # A writer is one from its first statement on: one that becomes it half-way could only give up.
    reads_only = connection.get_execution_options().get(READS_ONLY, False)
    if not reads_only:
        SqliteFile.check_writable(connection.connection.dbapi_connection)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def _sqlite_engine(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise Misconfigured(
            "hub.records_url: contains no file; write for example sqlite:////var/lib/gpuherd/records.sqlite"
        )
    file = SqliteFile(Path(url.database), lock_wait_seconds=_LOCK_WAIT_SECONDS)
    engine = create_engine(
        url,
        pool_timeout=_LOCK_WAIT_SECONDS,
        hide_parameters=True,  # digests shall not get into logs by way of an error's text
        creator=file.connect,
        execution_options={_FILE: file},
    )
    event.listen(engine, "checkout", file.check)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def sqlite_file(engine: Engine) -> SqliteFile | None:
    """Return the file that an engine's connections share; None for PostgreSQL."""
    file = engine.get_execution_options().get(_FILE)
    return file if isinstance(file, SqliteFile) else None


def records_engine(url: URL, *, patient: bool = False) -> Engine:
    """Prepare connections; none is made yet. A patient one is for work that may take an hour.

    ``Misconfigured`` if there is no driver for this database.
    """
    backend = url.get_backend_name()
    try:
        if backend == "sqlite":
            return _sqlite_engine(url)
        if backend == "postgresql":
            return postgresql_engine(url, **({"transaction_seconds": _MIGRATION_SECONDS} if patient else {}))
        url.get_dialect()
    except NoSuchModuleError as error:
        raise Misconfigured(f"hub.records_url: there is no driver for {url.drivername}") from error
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"hub.records_url: {error.name} is missing; install it with: pip install 'gpuherd[postgresql]'"
        ) from error
    raise Misconfigured(f"hub.records_url: {backend} is not supported; use SQLite or PostgreSQL")


def revision_in(connection: Connection) -> str | None:
    """Give the revision of the tables in a database; none if there are none.

    ``Misconfigured`` if they are from a newer version.
    """
    at = MigrationContext.configure(connection).get_current_revision()
    if at not in {None, NEWEST} and at not in {
        script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()
    }:
        raise Misconfigured(
            "the database was written by a newer gpuherd; use that version or restore an older backup"
        )
    return at


def lock_migrations(connection: Connection) -> None:
    """Be the only one who makes or drops tables, until the transaction ends; SQLite has but one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))


def migrate(connection: Connection, *, to: str = NEWEST) -> None:
    """Bring the tables up to date, within the transaction of this connection. ``Misconfigured`` if they are newer."""
    if revision_in(connection) != to:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def _is_up_to_date(engine: Engine) -> bool:
    with engine.connect() as connection:
        connection.execution_options(**{READS_ONLY: True})
        return revision_in(connection) == NEWEST


def _prepared(location: Path | str) -> URL:
    """Give the URL of records whose file, if they are one, is there."""
    if isinstance(location, Path):
        try:
            location.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            location.touch(mode=0o600)
        except OSError as error:
            raise Misconfigured(
                f"cannot write {location}: {error.strerror}; choose another hub.state_dir or let this user "
                "write to it"
            ) from error
    return records_url(location)


@contextmanager
def _opening(url: URL) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise Misconfigured(
            f"cannot open the database at {url.render_as_string()}: {reason_of(error)}"
        ) from error


@contextmanager
def opened_records(location: Path | str, *, reads_only: bool = False) -> Iterator[Connection]:
    """Open the records for one long transaction. To read they are migrated before; to write they are as they are.

    ``Misconfigured`` if they cannot be opened or were written by a newer version.
    """
    if reads_only:
        open_records(location).dispose()
    url = _prepared(location)
    engine = records_engine(url, patient=True)
    try:
        with _opening(url):
            connection = engine.connect()
        with connection:
            if reads_only:
                connection.execution_options(**{READS_ONLY: True})
                if engine.dialect.name == "postgresql":
                    connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection
    finally:
        engine.dispose()


def open_records(location: Path | str) -> Engine:
    """Open the records at a file or database URL and bring their tables up to date.

    Blocking. Raises ``Misconfigured`` if they cannot be opened or were written by a newer version.
    """
    url = _prepared(location)
    engine = records_engine(url)
    try:
        with _opening(url):
            if not _is_up_to_date(engine):
                patient = records_engine(url, patient=True)
                try:
                    with patient.begin() as connection:
                        lock_migrations(connection)
                        migrate(connection)
                finally:
                    patient.dispose()
    except Misconfigured:
        engine.dispose()
        raise
    return engine
