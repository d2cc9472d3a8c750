"""All records to a file, and back: for safe keeping, and for moving between SQLite and PostgreSQL.

A row is what the columns hold; so the rows of an older file are put into the tables of its time, and those are then
migrated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, LargeBinary, column, func, insert, inspect, select, table, text, update
from sqlalchemy.exc import SQLAlchemyError

from gpuherd import __version__
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.people import COMMAND_LINE
from gpuherd.model.text import clean
from gpuherd.records.audit import AuditRecords, Deed, write_audit
from gpuherd.records.backup_file import BackupHeader, BackupTable, check_backup, read_batches, save_backup
from gpuherd.records.database import (
    NEWEST,
    lock_migrations,
    migrate,
    open_records,
    opened_records,
    revision_in,
)
from gpuherd.records.leases import LEASE_SECONDS, HubLease, running_hubs
from gpuherd.records.sqlite_file import SqliteFile
from gpuherd.records.sqlite_trouble import set_aside
from gpuherd.records.tables import (
    audit,
    audit_retention,
    booking_keys,
    booking_revision,
    bookings,
    hub_leases,
    join_tokens,
    login_sessions,
    metadata,
    node_revision,
    people_revision,
    setup_codes,
)

__all__ = ["BackupSummary", "holds_records", "restore_backup", "write_backup"]

_LEFT_OUT = {
    login_sessions.name,
    setup_codes.name,
    join_tokens.name,
    booking_keys.name,
    hub_leases.name,
}
"""Short-lived anyway: nobody should get in by an old backup who could not get in today."""
_REVISIONS = (node_revision, people_revision, booking_revision)
_SINGLE_ROWS = {*(one.name for one in _REVISIONS), audit_retention.name}
"""Tables of one row, which a migration makes."""


class BackupSummary(Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    created_at: float
    rows: int
    is_logged: bool = True
    """Whether it is recorded in the audit log."""


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
        raise Refused("no_records", f"there is no database at {location}; is hub.state_dir right?")
    now = time.time() if now is None else now
    header = BackupHeader(schema=NEWEST, program=__version__, created_at=now)
    try:
        with opened_records(location, reads_only=True) as connection:
            rows = save_backup(file, header, _tables(connection))
    except OSError as error:
        raise Failed(f"cannot write {file}: {error.strerror}") from error
    except SQLAlchemyError as error:
        raise Failed(f"the database cannot be read: {_reason(error)}") from error
    return BackupSummary(created_at=now, rows=rows, is_logged=_log_backup(location, rows, now))


def _log_backup(location: Path | str, rows: int, now: float) -> bool:
    """Record the backup in the audit log; false if that cannot be written, such as on a full disk."""
    try:
        engine = open_records(location)
        try:
            deed = Deed("records.backup", "records", f"{rows} rows", COMMAND_LINE, now)
            AuditRecords(engine).append([deed])
        finally:
            engine.dispose()
    except (Failed, Misconfigured):
        return False
    return True


def _reason(error: SQLAlchemyError) -> str:
    # Only the first line: PostgreSQL tells the values on the next.
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def restore_backup(
    file: Path,
    location: Path | str,
    *,
    replace: bool = False,
    now: float | None = None,
    holding: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BackupSummary:
    """Replace all records with those of a backup: everything or nothing.

    ``holding`` keeps hubs off meanwhile that cannot be seen in the database; entered once the file is found good.

    Blocking. ``Refused`` ``no_backup``, ``backup_damaged``, ``backup_newer``, ``hub_running``, or
    ``records_not_empty`` unless they may be replaced; ``Failed`` or ``Misconfigured`` if the database cannot be
    written.
    """
    header, rows = check_backup(file, newest=NEWEST)
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(header.created_at))
    try:
        with ExitStack() as stack:
            stack.enter_context(holding())
            if isinstance(location, Path) and replace:
                _set_damaged_aside(location)
            connection = stack.enter_context(opened_records(location))
            lock_migrations(connection)
            _refuse_running(running_hubs(connection))
            if revision_in(connection) is not None and not replace and not _is_empty(connection):
                raise Refused(
                    "records_not_empty",
                    "there is already a database; to overwrite it, add --replace (back it up first)",
                )
            before = _revisions(connection)
            _drop(connection)
            migrate(connection, to=header.schema)
            _fill(connection, file)
            migrate(connection)
            _move_on(connection, before)
            at = time.time() if now is None else now
            write_audit(
                connection, [Deed("records.restore", "records", f"backup of {made}", COMMAND_LINE, at)]
            )
    except SQLAlchemyError as error:
        # Without its cause, which may tell what a row holds.
        raise Failed(f"the backup was not restored and nothing was changed: {_reason(error)}") from None
    return BackupSummary(created_at=header.created_at, rows=rows)


def _set_damaged_aside(file: Path) -> None:
    """Set the old database aside for a restore if it is too damaged to drop anything from it."""
    database = SqliteFile(file, lock_wait_seconds=1.0)
    if file.exists() and database.damage() is not None:
        set_aside(file)


def _refuse_running(hubs: list[HubLease]) -> None:
    if hubs:
        told = ", ".join(f"process {hub.pid} on {clean(hub.host, 60)}" for hub in hubs)
        raise Refused(
            "hub_running",
            f"a hub is using this database: {told}. Stop it and try again; a hub that was killed counts as "
            f"running for {LEASE_SECONDS:.0f} s",
        )


def holds_records(location: Path | str) -> bool:
    """Whether a hub has ever stored anything there. Creates nothing. ``Misconfigured`` if it cannot be read."""
    if isinstance(location, Path) and not location.exists():
        return False
    with opened_records(location) as connection:
        return revision_in(connection) is not None and not _is_empty(connection)


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
        for name in ("append_only", "unchanged", "kept", "name_kept"):
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
