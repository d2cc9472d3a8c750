"""Trouble with SQLite files: which errors mean damage or a full disk, and how to read a file on a full disk."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

__all__ = ["exclusive_reader", "is_damage", "is_disk_full", "set_aside"]

FULL_BYTES = 256 * 1024
"""With less free space SQLite may be unable to open a file: it creates an index of the write-ahead log beside it."""

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_DAMAGE_WORDS = (
    "malformed",
    "not a database",
    "decode to utf-8",
    "unsupported file format",
    "no such table",
    "no such column",
)


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code; -1 if the error is Python's own."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def is_damage(error: sqlite3.Error, file: Path | None = None) -> bool:
    """Tell whether an error means that the file's contents are damaged, rather than that it cannot be reached.

    A file that this user may write, and that SQLite calls read-only, has a header that speaks of an unknown format.
    """
    if _code(error) == sqlite3.SQLITE_READONLY and file is not None:
        return os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    return _code(error) in _DAMAGE or any(words in str(error).lower() for words in _DAMAGE_WORDS)


def is_disk_full(error: sqlite3.Error, folder: Path) -> bool:
    """Tell whether an error comes from a full disk."""
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return True
    if code not in _NO_ROOM:
        return False
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < FULL_BYTES


def set_aside(file: Path) -> None:
    """Rename a damaged database and its companion files to ``*.damaged``, replacing earlier ones."""
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.replace(part.with_name(part.name + ".damaged"))


def exclusive_reader(file: Path) -> sqlite3.Connection:
    """Open a file for reading on a full disk: with an exclusive lock, SQLite keeps the log's index in memory."""
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        for pragma in ("locking_mode=EXCLUSIVE", "wal_autocheckpoint=0", "query_only=ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection
