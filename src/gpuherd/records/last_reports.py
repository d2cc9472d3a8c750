"""The last state of every node, kept through restarts.

A file of its own, in SQLite's WAL mode with a sync per batch: an acknowledged frame survives kill -9 and power
cuts. Facts and process tables rarely change and have a row per node. Samples change every second: those of many
nodes share a row (a *shelf*), because a statement per node would hand the interpreter's lock to and fro for each, and
next to a busy event loop every hand-over takes milliseconds.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.records.sqlite_trouble import exclusive_reader, is_damage, is_disk_full, set_aside

__all__ = ["LastReport", "LastReports"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE inventories (
    number INTEGER PRIMARY KEY, node_id TEXT NOT NULL UNIQUE, hello BLOB NOT NULL, facts BLOB, process_table BLOB,
    checksum INTEGER
);
CREATE TABLE shelves (number INTEGER PRIMARY KEY, content BLOB NOT NULL, checksum INTEGER);
"""
_ADD_CHECKSUMS = """
ALTER TABLE inventories ADD COLUMN checksum INTEGER;
ALTER TABLE shelves ADD COLUMN checksum INTEGER;
UPDATE inventories SET checksum = checksum_of(number, node_id, hello, facts, process_table);
UPDATE shelves SET checksum = checksum_of(number, content);
"""
_DROP = "DROP TABLE IF EXISTS inventories; DROP TABLE IF EXISTS samples; DROP TABLE IF EXISTS shelves;"
_WITHOUT_CHECKSUMS = 2
_VERSION = 3
_PAGE_BYTES = 16_384
"""Shelves are large: SQLite's usual 4 kB pages would only mean more of them."""
SHELF_NODES = 256


class _Entry(Struct, frozen=True, array_like=True):
    """What changes every second, of one node."""

    received_at: float
    sample: bytes | None
    runs: dict[str, int]
    states: bytes


_encoder = msgspec.msgpack.Encoder()
_shelf_decoder = msgspec.msgpack.Decoder(dict[int, _Entry])


class LastReport(Struct, frozen=True, kw_only=True):
    """All that is needed to show a node as it was last seen, and to know which of its frames were taken."""

    node_id: str
    received_at: float
    """Hub time, UTC epoch seconds."""
    hello: bytes
    facts: bytes | None
    table: bytes | None
    sample: bytes | None
    """The raw messages as they came."""
    runs: dict[str, int]
    """Boot id to the highest number taken of that run."""
    states: bytes
    """The fleet's own; opaque here."""


def _checksum(*parts: object) -> int:
    """Return a checksum of a row: SQLite itself does not notice a flipped bit within a value."""
    return zlib.crc32(_encoder.encode(parts))


class LastReports:
    """The store. Blocking, and used from one thread at a time; trouble while writing is ``Failed``."""

    def __init__(self, file: Path) -> None:
        """Open or make the file; ``Misconfigured`` if that is impossible.

        A damaged file is set aside as ``*.damaged`` and a new one begun: what it held comes back by itself. On a full
        disk the file is only read; ``save`` fails until there is room and then opens it.
        """
        self._file = file
        self._numbers: dict[str, int] = {}
        self._next_number = 1
        self._shelves: dict[int, dict[int, _Entry]] = {}
        self._inventories: dict[str, tuple[bytes, bytes | None, bytes | None]] = {}
        self._connection: sqlite3.Connection | None = None
        self.damage: str | None = None
        """What was found damaged since the start, for people."""
        self._mending(self._start, lambda: None)

    def _start(self) -> None:
        try:
            self._connection = self._open()
        except sqlite3.OperationalError as error:
            if is_damage(error, self._file):
                raise
            if not is_disk_full(error, self._file.parent):
                raise Misconfigured(
                    f"cannot open {self._file}: {error}; let this user write to the folder, or choose "
                    "another hub.state_dir"
                ) from error
            log.warning(
                "the disk of %s is full: keeping the last state of nodes in memory only; free some space",
                self._file.parent,
            )
        self._reading(self._read_shelves)

    def _read_shelves(self, connection: sqlite3.Connection) -> None:
        self._numbers = dict(connection.execute("SELECT node_id, number FROM inventories"))
        self._next_number = max(self._numbers.values(), default=0) + 1
        self._shelves = {}
        summed = _has_checksums(connection)
        columns = "number, content, checksum" if summed else "number, content, NULL"
        for number, content, checksum in connection.execute(f"SELECT {columns} FROM shelves"):  # noqa: S608
            if summed and checksum != _checksum(number, content):
                self._note_damage("the last states of some nodes cannot be read (wrong checksum)")
                continue
            try:
                self._shelves[number] = _shelf_decoder.decode(content)
            except (msgspec.DecodeError, TypeError) as error:  # its nodes will send their state again
                self._note_damage(f"the last states of some nodes cannot be read ({error})")

    def _reading(self, read: Callable[[sqlite3.Connection], T]) -> T | None:
        """Read through the open connection, or on a full disk through one that needs no room; None without a file."""
        if self._connection is not None:
            return read(self._connection)
        if not self._file.exists() or self._file.stat().st_size == 0:
            return None
        with contextlib.closing(exclusive_reader(self._file)) as connection:
            return read(connection)

    def _mending(self, read: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """Read; if the file turns out to be damaged, set it aside, begin a new one, give something else."""
        try:
            return read()
        except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, TypeError) as error:
            if isinstance(error, sqlite3.DatabaseError) and not is_damage(error, self._file):
                raise
            self._set_aside(error)
            return otherwise()

    def _set_aside(self, error: Exception) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        self._note_damage(f"it was moved to {self._file.name}.damaged ({error})")
        self._numbers, self._shelves, self._inventories, self._next_number = {}, {}, {}, 1
        try:
            set_aside(self._file)
        except OSError as trouble:
            raise Misconfigured(
                f"{self._file} is damaged and cannot be moved aside: {trouble.strerror}; delete it, the "
                "nodes send their state again"
            ) from trouble
        self._start()

    def _note_damage(self, what: str) -> None:
        self.damage = f"{self._file.name} was damaged: {what}; check the disk (nodes send their state again)"
        log.error("%s", self.damage)

    def _open(self) -> sqlite3.Connection:
        # It holds command lines: nobody else's to read. SQLite gives -wal and -shm the same rights.
        with contextlib.suppress(OSError):  # then connecting fails, too, and says why
            self._file.touch(mode=0o600)
            self._file.chmod(0o600)
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=5)
        try:
            connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != _VERSION:
                self._begin(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: sqlite3.Connection, version: int) -> None:
        """Make the tables. Those of the last version are kept; of any other it is not known what they mean."""
        columns = connection.execute("SELECT name FROM pragma_table_info('shelves')").fetchall()
        if version == _WITHOUT_CHECKSUMS and ("checksum",) not in columns:
            connection.create_function("checksum_of", -1, _checksum)
            change = _ADD_CHECKSUMS
        else:
            change = _DROP + _SCHEMA
            if columns:
                self._note_damage(f"its version is {version}, which is unknown, so it was emptied")
        connection.executescript(f"BEGIN IMMEDIATE; {change} PRAGMA user_version={_VERSION}; COMMIT;")

    def save(self, batch: Iterable[LastReport]) -> None:
        """Write a batch durably, all or nothing. A file that turns out to be damaged is set aside for a new one."""
        kept = list(batch)
        try:
            self._save(kept)
        except sqlite3.DatabaseError as error:  # only damage: any other is ``Failed``
            self._set_aside(error)
            self._save(kept)

    def _save(self, batch: Iterable[LastReport]) -> None:
        inventories: dict[str, tuple[bytes, bytes | None, bytes | None]] = {}
        touched: set[int] = set()
        for kept in batch:
            number = self._numbers.get(kept.node_id)
            if number is None:
                number = self._numbers[kept.node_id] = self._next_number
                self._next_number += 1
            inventory = (kept.hello, kept.facts, kept.table)
            before = self._inventories.get(kept.node_id)
            # The same objects are handed in until they change, which makes this comparison a look at pointers.
            if before is None or any(new is not old for new, old in zip(inventory, before, strict=True)):
                inventories[kept.node_id] = inventory
            place = number // SHELF_NODES
            self._shelves.setdefault(place, {})[number] = _Entry(
                kept.received_at, kept.sample, kept.runs, kept.states
            )
            touched.add(place)
        self._write(
            [_inventory_row(self._numbers[node_id], node_id, *each) for node_id, each in inventories.items()],
            touched,
        )
        self._inventories.update(inventories)

    def _write(
        self, inventories: list[tuple[object, ...]], shelves: set[int], removed: int | None = None
    ) -> None:
        connection = self._opened()
        try:
            connection.execute("BEGIN IMMEDIATE")
            if removed is not None:
                connection.execute("DELETE FROM inventories WHERE number = ?", (removed,))
            connection.executemany(
                "INSERT OR REPLACE INTO inventories VALUES (?, ?, ?, ?, ?, ?)", inventories
            )
            connection.executemany(
                "INSERT OR REPLACE INTO shelves VALUES (?, ?, ?)",
                [_shelf_row(place, _encoder.encode(self._shelves[place])) for place in sorted(shelves)],
            )
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if is_damage(error, self._file):
                raise
            raise self._failed(error) from error

    def _opened(self) -> sqlite3.Connection:
        """Return the connection, opening it if the disk was full before; ``Failed`` if it still is."""
        if self._connection is None:
            try:
                self._connection = self._open()
            except sqlite3.Error as error:
                if is_damage(error, self._file):
                    raise
                raise self._failed(error) from error
            log.info("%s is writable again", self._file)
        return self._connection

    def _failed(self, error: sqlite3.Error) -> Failed:
        return Failed(f"cannot save to {self._file}: {error}; free some space or check the disk")

    def load_all(self) -> list[LastReport]:
        """Read every node's last state; a row that cannot be read is left out."""
        return self._mending(lambda: self._reading(self._load_all) or [], list)

    def _load_all(self, connection: sqlite3.Connection) -> list[LastReport]:
        summed = _has_checksums(connection)
        columns = f"number, node_id, hello, facts, process_table, {'checksum' if summed else 'NULL'}"
        reports = []
        for *row, checksum in connection.execute(f"SELECT {columns} FROM inventories"):  # noqa: S608
            number, node_id, hello, facts, table = row
            if summed and checksum != _checksum(*row):
                self._note_damage("the last state of a node cannot be read (wrong checksum)")
                continue
            entry = self._shelves.get(number // SHELF_NODES, {}).get(number)
            if entry is not None:
                reports.append(
                    LastReport(
                        node_id=node_id,
                        received_at=entry.received_at,
                        hello=hello,
                        facts=facts,
                        table=table,
                        sample=entry.sample,
                        runs=entry.runs,
                        states=entry.states,
                    )
                )
        return reports

    def forget(self, node_id: str) -> None:
        """Drop what is kept of a node."""
        try:
            self._forget(node_id)
        except sqlite3.DatabaseError as error:
            self._set_aside(error)

    def _forget(self, node_id: str) -> None:
        number = self._numbers.get(node_id)
        if number is None:
            return
        shelf = self._shelves.get(number // SHELF_NODES, {})
        shelf.pop(number, None)
        self._write([], {number // SHELF_NODES} & self._shelves.keys(), removed=number)
        del self._numbers[node_id]
        self._inventories.pop(node_id, None)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()


def _has_checksums(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] >= _VERSION)


def _inventory_row(number: int, node_id: str, *inventory: bytes | None) -> tuple[object, ...]:
    return (number, node_id, *inventory, _checksum(number, node_id, *inventory))


def _shelf_row(number: int, content: bytes) -> tuple[object, ...]:
    return number, content, _checksum(number, content)
