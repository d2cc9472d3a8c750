"""The database file of the records: connections, checkpoints, and operation on a full disk."""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy.exc import InvalidatePoolError, OperationalError

from gpuherd.model.errors import Failed
from gpuherd.records.sqlite_trouble import exclusive_reader, is_damage, is_disk_full

__all__ = ["SqliteFile", "use_write_ahead_log"]

log = logging.getLogger(__name__)

TRY_AGAIN_SECONDS = 1.0
CHECKPOINT_WAIT_MILLISECONDS = 1000
_LOCK_PAUSE_SECONDS = 0.01
_names = itertools.count()


class _Copy(sqlite3.Connection):
    """A connection to the copy in memory."""


def use_write_ahead_log(connection: sqlite3.Connection, lock_wait_seconds: float) -> None:
    """Turn on the write-ahead log, and wait while others do the same with a new file.

    SQLite itself does not wait for this lock in all cases.
    """
    until = time.monotonic() + lock_wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


class SqliteFile:
    """Makes connections to a database file, from any thread.

    SQLite needs a little disk space to open a file that has a write-ahead log, even for reading. While there is none, a
    copy in memory is read instead, writing is refused, and the file is tried again once a second.
    """

    def __init__(self, file: Path, *, lock_wait_seconds: float) -> None:
        self._file = file
        self._lock_wait_seconds = lock_wait_seconds
        self._lock = threading.Lock()
        self._copy: sqlite3.Connection | None = None
        self._address = ""
        self._tried_at = 0.0

    @property
    def is_copy(self) -> bool:
        """Whether a copy in memory is read because the disk is full."""
        return self._copy is not None

    def connect(self) -> sqlite3.Connection:
        """Connect to the file, or to a copy in memory while the disk is full; ``sqlite3.Error`` if neither works."""
        try:
            return self._connect()
        except sqlite3.OperationalError as error:
            if is_damage(error) or not is_disk_full(error, self._file.parent):
                raise
            with self._lock:
                if self._copy is None:
                    self._copy = self._copied()
                return sqlite3.connect(
                    self._address, uri=True, isolation_level=None, check_same_thread=False, factory=_Copy
                )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file,
            timeout=self._lock_wait_seconds,
            # An event of the engine begins transactions: the driver begins late, and two writers could deadlock.
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            use_write_ahead_log(connection, self._lock_wait_seconds)
            for pragma in ("synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # opens the log, too
        except BaseException:
            connection.close()
            raise
        return connection

    def _copied(self) -> sqlite3.Connection:
        self._address = f"file:gpuherd-records-{next(_names)}?mode=memory&cache=shared"
        copy = sqlite3.connect(self._address, uri=True, isolation_level=None, check_same_thread=False)
        try:
            with contextlib.closing(exclusive_reader(self._file)) as reader:
                reader.backup(copy)
        except BaseException:
            copy.close()
            raise
        log.error(
            "the disk of %s is full: the database is read-only until you free some space",
            self._file,
        )
        return copy

    def check(self, connection: Any, *_: Any) -> None:
        """Discard the copy as soon as the file can be opened again; called for each connection that is used."""
        if not isinstance(connection, _Copy):
            return
        with self._lock:
            if self._copy is not None:
                if time.monotonic() < self._tried_at + TRY_AGAIN_SECONDS:
                    return
                self._tried_at = time.monotonic()
                try:
                    self._connect().close()
                except sqlite3.Error:
                    return
                self._copy.close()
                self._copy = None
                log.warning("%s is writable again", self._file)
        raise InvalidatePoolError

    @staticmethod
    def check_writable(connection: object) -> None:
        """Refuse to change the copy: the change would be lost."""
        if isinstance(connection, _Copy):
            full = sqlite3.OperationalError("database or disk is full")
            raise OperationalError("BEGIN IMMEDIATE", None, full)

    def damage(self) -> str | None:
        """Read the whole file and return the first damage found; None if there is none. Blocking."""
        try:
            with contextlib.closing(self._connect()) as connection:
                (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                connection.execute("BEGIN IMMEDIATE")  # and whether it can be written
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            return str(error) if is_damage(error, self._file) else None
        # The first line names only the database; what is wrong stands in the next.
        return None if found == "ok" else str(found).strip().splitlines()[-1]

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and empty the log; false if there was nothing to do.

        A damaged byte in the log loses everything after it, in the file only one page. Blocks for at most a second
        while someone reads. ``Failed`` if the file cannot be written.
        """
        log_file = self._file.with_name(self._file.name + "-wal")
        try:
            if not log_file.stat().st_size:
                return False
            with contextlib.closing(self._connect()) as connection:
                connection.execute(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MILLISECONDS}")
                (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except FileNotFoundError:
            return False
        except (OSError, sqlite3.Error) as error:
            raise Failed(f"cannot write {self._file}: {error}; free some space or check the disk") from error
        return not is_busy
