"""Connections to the database file."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from gpuherd.records.sqlite_file import use_write_ahead_log


class Contended(sqlite3.Connection):
    """Answers "locked" a given number of times, as SQLite does while others turn on the log of a new file."""

    refusals = 0
    code = sqlite3.SQLITE_BUSY

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        if self.refusals:
            self.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error
        return super().execute(*arguments)


def contended(refusals: int, code: int = sqlite3.SQLITE_BUSY) -> Contended:
    connection = sqlite3.connect(":memory:", factory=Contended)
    connection.refusals, connection.code = refusals, code
    return connection


def test_turning_on_the_log_waits_for_others() -> None:
    connection = contended(2)
    use_write_ahead_log(connection, lock_wait_seconds=60)
    assert connection.refusals == 0
    connection.close()


@pytest.mark.parametrize(("code", "seconds"), [(sqlite3.SQLITE_BUSY, 0), (sqlite3.SQLITE_CANTOPEN, 60)])
def test_it_does_not_wait_for_ever_nor_for_another_error(code: int, seconds: float) -> None:
    connection = contended(2, code)
    with pytest.raises(sqlite3.OperationalError):
        use_write_ahead_log(connection, lock_wait_seconds=seconds)
    assert connection.refusals == 1
    connection.close()
