"""What is still to be sent: the newest batches from memory, older ones from the journal's files."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from gpuherd.history.batch import Batch

__all__ = ["Backlog", "JournalReader", "Position"]

MAX_MEMORY_BYTES = 16 * 2**20


class Position(NamedTuple):
    """Where a batch is in the journal: its file, and how many batches stand before it there."""

    file: int
    number: int


class JournalReader(Protocol):
    """The journal's files, as their reader sees them. From any thread."""

    def numbers(self) -> Iterable[int]:
        """Give the numbers of all files there are."""

    def read(self, number: int) -> Iterator[Batch]:
        """Give the batches of a file, oldest first; ends where the file is no longer readable."""


class Backlog:
    """The batches of the journal by position. Filled by the writer's thread, read by the sender's."""

    def __init__(self, journal: JournalReader, max_memory_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._journal = journal
        self._max_memory_bytes = max_memory_bytes
        self._memory_bytes = 0
        self._memory: OrderedDict[Position, Batch] = OrderedDict()
        self._counts: dict[int, int] = {}
        self._lock = threading.Lock()
        self._reading: Iterator[Batch] = iter(())
        self._reading_at: Position | None = None

    def take(self, batch: Batch, file: int) -> None:
        """Keep a new batch at hand, and let go of the oldest ones if there are too many: they are in their files."""
        with self._lock:
            index = self._counts.get(file, 0)
            self._counts[file] = index + 1
            self._memory[Position(file, index)] = batch
            self._memory_bytes += _bytes_of(batch)
            while self._memory_bytes > self._max_memory_bytes:
                _, dropped = self._memory.popitem(last=False)
                self._memory_bytes -= _bytes_of(dropped)

    def at(self, position: Position, open_file: int) -> tuple[Batch, Position] | None:
        """Give the batch at ``position``, or the next one after it, and the position after that; none if there is none.

        A batch of the open file that has left the memory is to be had once the file is complete. Blocking; may raise
        ``OSError``.
        """
        while True:
            with self._lock:
                batch = self._memory.get(position)
                count = self._counts.get(position.file)
            if batch is not None:
                return batch, Position(position.file, position.number + 1)
            if position.file >= open_file:
                return None
            if count is None or position.number < count:
                batch = self._read(position)
                if batch is not None:
                    return batch, Position(position.file, position.number + 1)
                with self._lock:
                    self._counts[position.file] = position.number
            following = self._following(position.file, open_file)
            if following is None:
                return None
            position = Position(following, 0)

    def waiting(self, position: Position) -> int:
        """Count the batches from ``position`` on that have come since the start."""
        with self._lock:
            return sum(
                count - (position.number if file == position.file else 0)
                for file, count in self._counts.items()
                if file >= position.file
            )

    def forget(self, before: Position) -> None:
        """Let go of what is before ``before``."""
        with self._lock:
            for position in list(self._memory):
                if position >= before:
                    break
                self._memory_bytes -= _bytes_of(self._memory.pop(position))
            self._counts = {file: count for file, count in self._counts.items() if file >= before.file}

    def first_file(self, position: Position, open_file: int) -> int:
        """Give the file of the batch at ``position`` or after it: all files before it are done with."""
        with self._lock:
            count = self._counts.get(position.file)
        if position.file >= open_file or count is None or position.number < count:
            return position.file
        following = self._following(position.file, open_file)
        return open_file if following is None else following

    def _read(self, position: Position) -> Batch | None:
        if self._reading_at != position:
            self._reading = iter(self._journal.read(position.file))
            for _ in range(position.number):
                next(self._reading, None)
        batch = next(self._reading, None)
        self._reading_at = None if batch is None else Position(position.file, position.number + 1)
        return batch

    def _following(self, file: int, open_file: int) -> int | None:
        with self._lock:
            candidates = {number for number in self._counts if number > file}
        candidates |= {number for number in self._journal.numbers() if number > file}
        following = min(candidates, default=None)
        return following if following is None or following <= open_file else None


def _bytes_of(batch: Batch) -> int:
    return 1024 + 2 * (batch.devices.values.nbytes + batch.hosts.values.nbytes)
