"""All records to a file, and back: for safe keeping, and for moving between SQLite and PostgreSQL.

A row is what the columns hold; so the rows of an older file are put into the tables of its time, and those are then
migrated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, LargeBinary, column, func, insert, inspect, select, table, text, update
from sqlalchemy.exc import SQLAlchemyError

from gpuherd import __version__
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import Deed, write_audit
from gpuherd.records.backup_file import BackupHeader, BackupTable, check_backup, read_batches, save_backup
from gpuherd.records.database import NEWEST, lock_migrations, migrate, opened_records, revision_in
from gpuherd.records.tables import (
    audit,
    audit_retention,
    booking_revision,
    bookings,
    join_tokens,
    login_sessions,
    metadata,
    node_revision,
    people_revision,
    setup_codes,
)

__all__ = ["BackupSummary", "restore_backup", "write_backup"]

_LEFT_OUT = {login_sessions.name, setup_codes.name, join_tokens.name}
"""Short-lived anyway: nobody should get in by an old backup who could not get in today."""
_REVISIONS = (node_revision, people_revision, booking_revision)
_SINGLE_ROWS = {*(one.name for one in _REVISIONS), audit_retention.name}
"""Tables of one row, which a migration makes."""


class BackupSummary(Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    created_at: float
    rows: int


def _tables(connection: Connection) -> Iterator[tuple[BackupTable, Iterator[Sequence[object]]]]:
    for kept in metadata.sorted_tables:
        if kept.name not in _LEFT_OUT:
            head = BackupTable(
                table=str(kept.name),
                columns=[str(one.name) for one in kept.columns],
                base64=[str(one.name) for one in kept.columns if isinstance(one.type, LargeBinary)],
            )
            query = select(kept).order_by(*kept.primary_key.columns)
            yield head, iter(connection.execute(query))


def write_backup(location: Path | str, file: Path, *, now: float | None = None) -> BackupSummary:
    """Write all records, as of one moment, to a file that only its owner can read. The hub may be running.

    Blocking. ``Refused`` ``no_records`` if there are none; ``Failed`` if they cannot be read or the file cannot be
    written.
    """
    if isinstance(location, Path) and not location.exists():
        raise Refused("no_records", f"there are no records at {location}; is hub.state_dir right?")
    now = time.time() if now is None else now
    header = BackupHeader(schema=NEWEST, program=__version__, created_at=now)
    try:
        with opened_records(location, reads_only=True) as connection:
            rows = save_backup(file, header, _tables(connection))
    except OSError as error:
        raise Failed(f"cannot write {file}: {error.strerror}") from error
    except SQLAlchemyError as error:
        raise Failed(f"the records cannot be read: {_reason(error)}") from error
    return BackupSummary(created_at=now, rows=rows)


def _reason(error: SQLAlchemyError) -> str:
    # Only the first line: PostgreSQL tells the values on the next.
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def restore_backup(
    file: Path, location: Path | str, *, replace: bool = False, now: float | None = None
) -> BackupSummary:
    """Put a backup in the place of all records there: everything or nothing. No hub should be running.

    Blocking. ``Refused`` ``no_backup``, ``backup_damaged``, ``backup_newer``, or ``records_not_empty`` unless they may
    be replaced; ``Failed`` or ``Misconfigured`` if the database cannot be written.
    """
    header, rows = check_backup(file, newest=NEWEST)
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(header.created_at))
    try:
        with opened_records(location) as connection:
            lock_migrations(connection)
            if revision_in(connection) is not None and not replace and not _is_empty(connection):
                raise Refused(
                    "records_not_empty",
                    "there are records already; add --replace to lose them, best after a backup of them",
                )
            before = _revisions(connection)
            _drop(connection)
            migrate(connection, to=header.schema)
            _fill(connection, file)
            migrate(connection)
            _move_on(connection, before)
            by = Actor(account_id=None, label="command line")
            at = time.time() if now is None else now
            write_audit(connection, [Deed("records.restore", "records", f"backup of {made}", by, at)])
    except SQLAlchemyError as error:
        # Without its cause, which may tell what a row holds.
        raise Failed(f"the backup was not restored and nothing was changed: {_reason(error)}") from None
    return BackupSummary(created_at=header.created_at, rows=rows)


def _names(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


def _is_empty(connection: Connection) -> bool:
    return not any(
        connection.execute(select(1).select_from(table(name)).limit(1)).first()
        for name in (_names(connection) & set(metadata.tables)) - _SINGLE_ROWS - _LEFT_OUT
    )


def _revisions(connection: Connection) -> dict[str, int]:
    names = _names(connection)
    return {
        one.name: int(connection.execute(select(one.c.number)).scalar_one())
        for one in _REVISIONS
        if one.name in names
    }


def _drop(connection: Connection) -> None:
    """Take away all that the migrations made; what refers to others goes first."""
    names = _names(connection)
    for name in [*(one.name for one in reversed(metadata.sorted_tables)), "alembic_version"]:
        if name in names:
            connection.execute(text(f"DROP TABLE {name}"))
    if connection.dialect.name == "postgresql":
        for name in ("append_only", "unchanged", "kept"):
            connection.execute(text(f"DROP FUNCTION IF EXISTS gpuherd_audit_{name}()"))


def _fill(connection: Connection, file: Path) -> None:
    for head, batch in read_batches(file):
        into = table(head.table, *(column(name) for name in head.columns))
        if head.table in _SINGLE_ROWS:
            connection.execute(update(into).values(**batch[0]))
        else:
            connection.execute(insert(into), batch)


def _move_on(connection: Connection, before: dict[str, int]) -> None:
    """Let all counts go on from where they were: whoever looks for changes shall see one, and no id comes twice."""
    for one in _REVISIONS:
        number = connection.execute(select(one.c.number)).scalar_one()
        connection.execute(update(one).values(number=max(number, before.get(one.name, 0)) + 1))
    if connection.dialect.name == "postgresql":
        for counted in (bookings, audit):
            highest = connection.execute(select(func.max(counted.c.id))).scalar_one()
            if highest is not None:
                sequence = func.pg_get_serial_sequence(counted.name, "id")
                connection.execute(select(func.setval(sequence, highest)))
