"""What is still to be sent: the newest batches from memory, older ones from the journal's files."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from typing import NamedTuple

from gpuherd.history.batch import Batch
from gpuherd.history.journal import JournalFiles
from gpuherd.model.errors import Failed

__all__ = ["Backlog", "Position"]

MAX_MEMORY_BYTES = 16 * 2**20
_log = logging.getLogger(__name__)


class Position(NamedTuple):
    """Where a batch is in the journal: its file, and how many batches with samples stand before it there."""

    file: int
    number: int


class Backlog:
    """The batches of the journal by position. Filled by the writer's thread, read by the sender's."""

    def __init__(self, journal: JournalFiles, max_memory_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._journal = journal
        self._max_memory_bytes = max_memory_bytes
        self._memory_bytes = 0
        self._memory: OrderedDict[Position, Batch] = OrderedDict()
        self._counts: dict[int, int] = {}
        self._counts_before: dict[int, int] = {}
        """Batches in files that were written before the start and are not yet sent completely."""
        self._lock = threading.Lock()
        self._reading: deque[Batch] = deque()
        self._reading_at: Position | None = None

    def take(self, batch: Batch, file: int) -> None:
        """Keep a new batch at hand, and let go of the oldest ones if there are too many: they are in their files."""
        if not _has_samples(batch):
            return
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

        Blocking; ``Failed`` if a file cannot be read.
        """
        while True:
            with self._lock:
                batch = self._memory.get(position)
                count = self._counts.get(position.file)
            is_complete = position.file < open_file
            if batch is None and (is_complete if count is None else position.number < count):
                batch = self._read(position)
                if batch is None and is_complete:
                    with self._lock:
                        self._counts[position.file] = position.number
            if batch is not None:
                return batch, Position(position.file, position.number + 1)
            following = self._following(position.file, open_file) if is_complete else None
            if following is None:
                return None
            position = Position(following, 0)

    def waiting(self, position: Position) -> int:
        """Count the batches from ``position`` on: those since the start, and those in older files counted so far."""
        with self._lock:
            return sum(
                max(0, count - (position.number if file == position.file else 0))
                for file, count in {**self._counts_before, **self._counts}.items()
                if file >= position.file
            )

    def count_older(self, position: Position, open_file: int) -> None:
        """Count the batches in one more file from before the start. Blocking; does nothing if all files are counted.

        One at a time: a long outage leaves many files, and sending must not wait until all are read.
        """
        with self._lock:
            known = self._counts.keys() | self._counts_before.keys()
        for file in self._journal.paths():
            if position.file <= file < open_file and file not in known:
                try:
                    batches = self._journal.read(file).batches
                except Failed as error:
                    _log.warning("history: cannot count the waiting batches in a journal file: %s", error)
                    batches = []
                count = sum(_has_samples(batch) for _, batch in batches)
                with self._lock:
                    self._counts_before[file] = count
                return

    def forget(self, before: Position) -> None:
        """Let go of what is before ``before``."""
        with self._lock:
            for position in list(self._memory):
                if position >= before:
                    break
                self._memory_bytes -= _bytes_of(self._memory.pop(position))
            for counts in (self._counts, self._counts_before):
                for file in [file for file in counts if file < before.file]:
                    del counts[file]

    def first_file(self, position: Position, open_file: int) -> int:
        """Give the file of the batch at ``position`` or after it: all files before it are done with."""
        with self._lock:
            count = self._counts.get(position.file)
        if position.file >= open_file or count is None or position.number < count:
            return position.file
        following = self._following(position.file, open_file)
        return open_file if following is None else following

    def _read(self, position: Position) -> Batch | None:
        if self._reading_at != position or not self._reading:
            batches = (batch for _, batch in self._journal.read(position.file).batches)
            self._reading = deque(batch for batch in batches if _has_samples(batch))
            for _ in range(min(position.number, len(self._reading))):
                self._reading.popleft()
        self._reading_at = Position(position.file, position.number + 1)
        return self._reading.popleft() if self._reading else None

    def _following(self, file: int, open_file: int) -> int | None:
        with self._lock:
            candidates = {number for number in self._counts if number > file}
        candidates |= {number for number in self._journal.paths() if number > file}
        following = min(candidates, default=None)
        return following if following is None or following <= open_file else None


def _has_samples(batch: Batch) -> bool:
    """Tell whether there is anything to send: a file begins with a batch that has only marks."""
    return len(batch.devices) + len(batch.hosts) > 0


def _bytes_of(batch: Batch) -> int:
    return 1024 + 2 * (batch.devices.values.nbytes + batch.hosts.values.nbytes)
