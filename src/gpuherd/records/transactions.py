"""One verb, one transaction: opening it, and telling what went wrong in words that hold no secret."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Table, select, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.sql.dml import ReturningUpdate

from gpuherd.model.errors import Failed, Refused
from gpuherd.records.sqlite_trouble import is_damage
from gpuherd.records.texts import UnkeepableText

__all__ = [
    "READS_ONLY",
    "RESTORE",
    "BadText",
    "OutcomeUnknown",
    "RecordsFailed",
    "count_change",
    "lock",
    "reading",
    "reason_of",
    "revision_of",
    "writing",
]

READS_ONLY = "gpuherd_reads_only"
"""Execution option of a connection: see ``database.py``, which begins such a transaction without a writer's lock."""


RESTORE = "stop the hub and restore a backup with `gpuherd restore FILE --replace`"
"""The remedy for damaged records."""


class RecordsFailed(Failed):
    """The database did not do what was asked of it.

    The text says why, for who runs the hub: it may name hosts, files and tables, which are nobody else's business.
    """


class OutcomeUnknown(RecordsFailed):
    """The database connection broke during a commit: the change may or may not have been made."""


def _failed(error: SQLAlchemyError) -> RecordsFailed:
    if isinstance(error, PoolTimeoutError):
        return RecordsFailed("the database is busy: all connections are in use; try again in a moment")
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return RecordsFailed("the database is unavailable or did not respond in time; is it running?")
    reason = reason_of(error)
    if "disk is full" in reason or "No space left" in reason:
        return RecordsFailed(f"the database cannot be written: {reason}")
    if "database is locked" in reason:
        return RecordsFailed("the database is busy: another program is writing to it; try again in a moment")
    return RecordsFailed(f"the database cannot be read or written: {reason}")


def reason_of(error: SQLAlchemyError) -> str:
    """Return why a database failed, with the remedy where one is known."""
    original = getattr(error, "orig", None) or error
    # Only the first line: PostgreSQL puts values on the next.
    reason = (str(original).strip().splitlines() or ["no reason given"])[0]
    if "disk is full" in reason or "No space left" in reason:
        return f"{reason}; free some space on the disk of the database"
    if "readonly database" in reason:
        return (
            f"{reason}; let the hub's user write to the file and its folder, or if it already can, {RESTORE}"
        )
    if isinstance(original, sqlite3.Error) and is_damage(original):
        return f"the database is damaged ({reason}); {RESTORE}"
    return reason


class BadText(Refused):
    """Something that no database keeps; nothing is found by it, either."""

    def __init__(self) -> None:
        super().__init__(
            "bad_text", "a text or number is too long, or contains characters that cannot be stored"
        )


@contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except (DataError, UnicodeEncodeError, OverflowError):
        raise BadText from None  # its text may hold what was to be written
    except IntegrityError as error:
        raise _failed(error) from None
    except SQLAlchemyError as error:
        if isinstance(error, StatementError) and isinstance(error.orig, UnkeepableText):
            raise BadText from None
        raise _failed(error) from error


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Read as of one moment, waiting for no writer. ``Failed`` if the database cannot be read."""
    with _telling(), engine.connect() as connection:
        connection.execution_options(**{READS_ONLY: True})
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Write everything or nothing. ``Failed`` if the database cannot be written.

    ``OutcomeUnknown`` if the connection broke during the commit, so that it may or may not have taken effect.
    """
    is_committing = False
    with _telling():
        try:
            with engine.begin() as connection:
                yield connection
                is_committing = True
        except DBAPIError as error:
            if is_committing and error.connection_invalidated:
                raise OutcomeUnknown(
                    "the connection to the database broke during a commit; the change may or may not have been made"
                ) from error
            raise


def lock(connection: Connection, revision: Table) -> None:
    """Be the only one who changes what this revision counts, until the transaction ends.

    SQLite has but one writer anyway.
    """
    connection.execute(select(revision.c.number).with_for_update())


def count_change(connection: Connection, revision: Table) -> int:
    """Count a change and give the new revision; as ``lock``, so it comes first in its transaction."""
    return int(connection.execute(_counting(revision)).scalar_one())


@cache
def _counting(revision: Table) -> ReturningUpdate[Any]:
    return update(revision).values(number=revision.c.number + 1).returning(revision.c.number)


def revision_of(engine: Engine, revision: Table) -> int:
    """Give the count of changes so far; cheap enough to ask every second."""
    with reading(engine) as connection:
        return int(connection.execute(select(revision.c.number)).scalar_one())
