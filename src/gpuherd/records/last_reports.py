"""The last state of every node, kept through restarts.

A file of its own, in SQLite's WAL mode with a sync per batch: an acknowledged frame survives kill -9 and power
cuts. Facts and process tables rarely change and have a row per node. Samples change every second: those of many
nodes share a row (a *shelf*), because a statement per node would hand the interpreter's lock to and fro for each, and
next to a busy event loop every hand-over takes milliseconds.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.model.errors import Failed, Misconfigured

__all__ = ["LastReport", "LastReports"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS inventories (
    number INTEGER PRIMARY KEY, node_id TEXT NOT NULL UNIQUE, hello BLOB NOT NULL, facts BLOB, process_table BLOB
);
CREATE TABLE IF NOT EXISTS shelves (number INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""
_VERSION = 2
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


class LastReports:
    """The store. Blocking, and used from one thread at a time; trouble while writing is ``Failed``."""

    def __init__(self, file: Path) -> None:
        """Open or make the file; ``Misconfigured`` if that is impossible.

        A damaged file is set aside as ``*.damaged`` and a new one begun: what it held comes back by itself.
        """
        self._file = file
        self._numbers: dict[str, int] = {}
        self._shelves: dict[int, dict[int, _Entry]] = {}
        self._inventories: dict[str, tuple[bytes, bytes | None, bytes | None]] = {}
        try:
            self._connection = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
                raise Misconfigured(
                    f"cannot open {file}: {error}; let this user write the folder, or choose another hub.state_dir"
                ) from error
            for suffix in ("", "-wal", "-shm"):
                part = file.with_name(file.name + suffix)
                if part.exists():
                    part.replace(part.with_name(part.name + ".damaged"))
            self._connection = self._open()
        self._numbers = dict(self._connection.execute("SELECT node_id, number FROM inventories"))
        self._next_number = max(self._numbers.values(), default=0) + 1
        for number, content in self._connection.execute("SELECT number, content FROM shelves"):
            try:
                self._shelves[number] = _shelf_decoder.decode(content)
            except msgspec.DecodeError:
                continue  # its nodes will tell their state again

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
            if version not in (0, _VERSION):
                # Another version's idea of a last state; nodes will tell theirs again.
                connection.executescript(
                    "DROP TABLE IF EXISTS inventories; DROP TABLE IF EXISTS samples; DROP TABLE IF EXISTS shelves;"
                )
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version={_VERSION}")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def save(self, batch: Iterable[LastReport]) -> None:
        """Write a batch durably, all or nothing."""
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
            [(self._numbers[node_id], node_id, *inventory) for node_id, inventory in inventories.items()],
            touched,
        )
        self._inventories.update(inventories)

    def _write(
        self, inventories: list[tuple[object, ...]], shelves: set[int], removed: int | None = None
    ) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            if removed is not None:
                connection.execute("DELETE FROM inventories WHERE number = ?", (removed,))
            connection.executemany("INSERT OR REPLACE INTO inventories VALUES (?, ?, ?, ?, ?)", inventories)
            connection.executemany(
                "INSERT OR REPLACE INTO shelves VALUES (?, ?)",
                [(place, _encoder.encode(self._shelves[place])) for place in sorted(shelves)],
            )
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise Failed(
                f"cannot save to {self._file}: {error}; free some space or check the disk"
            ) from error

    def load_all(self) -> list[LastReport]:
        """Read every node's last state; a row that cannot be read is left out."""
        rows = self._connection.execute(
            "SELECT number, node_id, hello, facts, process_table FROM inventories"
        )
        reports = []
        for number, node_id, hello, facts, table in rows:
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
        self._connection.close()
