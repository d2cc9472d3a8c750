"""Opening the records: SQLite in the state folder by default, PostgreSQL by URL; always migrated first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from gpuherd.model.errors import Misconfigured
from gpuherd.records.transactions import READS_ONLY

__all__ = ["open_records", "records_file"]

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK_WAIT_SECONDS = 10


def records_file(state_dir: Path) -> Path:
    """Name the default database file."""
    return state_dir / "records.sqlite"


def _configure_sqlite(connection: Any, _: Any) -> None:
    # Transactions are begun by the event below: the driver's own habit of beginning late lets two writers deadlock.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Any) -> None:
    # A writer is one from its first statement on: one that becomes it half-way could only give up.
    reads_only = connection.get_execution_options().get(READS_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url,
            pool_timeout=_LOCK_WAIT_SECONDS,
            hide_parameters=True,
            connect_args={"timeout": _LOCK_WAIT_SECONDS},
        )
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=_LOCK_WAIT_SECONDS,
        hide_parameters=True,  # digests shall not get into logs by way of an error's text
        # A frozen server must fail a request, not hold it for ever.
        connect_args={"connect_timeout": 10, "options": "-c statement_timeout=10000"},
    )


def _migrate(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with engine.begin() as connection:
        at = MigrationContext.configure(connection).get_current_revision()
        if at is not None and at not in {script.revision for script in scripts.walk_revisions()}:
            raise Misconfigured(
                "the records were written by a newer gpuherd; start that version or restore an older backup"
            )
        if at != scripts.get_current_head():
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def open_records(location: Path | str) -> Engine:
    """Open the records at a file or database URL and bring their tables up to date.

    Blocking. Raises ``Misconfigured`` if they cannot be opened or were written by a newer version.
    """
    if isinstance(location, Path):
        url = URL.create("sqlite", database=str(location))
        try:
            location.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            location.touch(mode=0o600)
        except OSError as error:
            raise Misconfigured(
                f"cannot write {location}: {error.strerror}; choose another hub.state_dir or let this user write it"
            ) from error
    else:
        try:
            url = make_url(location)
        except ArgumentError as error:
            raise Misconfigured(
                "hub.records_url: is no database URL, such as postgresql://host/name"
            ) from error
    try:
        engine = _engine(url)
    except NoSuchModuleError as error:
        raise Misconfigured(f"hub.records_url: there is no driver for {url.drivername}") from error
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"hub.records_url: {error.name} is missing; install it with: pip install 'gpuherd[postgresql]'"
        ) from error
    try:
        _migrate(engine)
    except Misconfigured:
        engine.dispose()
        raise
    except SQLAlchemyError as error:
        engine.dispose()
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise Misconfigured(f"cannot open the records at {url.render_as_string()}: {reason}") from error
    return engine
