"""What the hub has not confirmed yet: older runs on disk, then the current run, on disk and in memory.

While the hub listens, frames wait for their ack in memory. When it does not, they go to disk at once, so that not
even kill -9 loses them. If the disk does not take them they stay in memory, bounded, and that is said once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.agent.spool import DiskRun, RunFacts, Spool

__all__ = ["CurrentRun", "OlderRun", "Outbox", "Run", "context_before"]

log = logging.getLogger(__name__)

SPILL_BYTES = 1024 * 1024
"""Frames waiting for their ack take at most this much memory, then they go to disk as well."""
MEMORY_BYTES = 8 * 1024 * 1024
"""The bound when there is no disk to go to."""
DISK_RETRY_SECONDS = 60.0


def context_before(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The facts and table frames in force after ``entries``: what is needed to understand the next frame."""
    facts = table = None
    for entry in entries:
        if entry.kind is FrameKind.FACTS:
            facts, table = entry, None  # a table belongs to the facts before it
        elif entry.kind is FrameKind.TABLE:
            table = entry
    return tuple(entry for entry in (facts, table) if entry is not None)


class Run(Protocol):
    """A run of numbered frames, to be sent in order."""

    changed: asyncio.Event
    """Set when a frame was added or an ack came."""

    @property
    def facts(self) -> RunFacts:
        """What its hello says."""

    @property
    def next_seq(self) -> int:
        """One more than its newest frame."""

    @property
    def acked_seq(self) -> int:
        """The newest frame that the hub has, with all before it."""

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Some frames after ``after_seq``, and the facts and table in force before the first of them."""

    def ack(self, seq: int) -> None:
        """The hub has everything up to ``seq``."""


class OlderRun:
    """What an earlier agent left on disk."""

    def __init__(self, disk: DiskRun) -> None:
        self.changed = asyncio.Event()
        self.disk = disk
        self.acked_seq = -1

    @property
    def facts(self) -> RunFacts:
        """What its hello says."""
        return self.disk.facts

    @property
    def next_seq(self) -> int:
        """One more than its newest frame."""
        return self.disk.last_seq + 1

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Some frames after ``after_seq``, and the facts and table in force before the first of them."""
        entries, earlier = self.disk.batch(after_seq)
        return entries, context_before(earlier)

    def ack(self, seq: int) -> None:
        """The hub has everything up to ``seq``."""
        self.acked_seq = max(self.acked_seq, min(seq, self.disk.last_seq))
        self.disk.forget(self.acked_seq)
        self.changed.set()


class CurrentRun:
    """The run being made: its frames on disk come before those in memory."""

    def __init__(self, spool: Spool, facts: RunFacts, monotonic: Callable[[], float]) -> None:
        self.changed = asyncio.Event()
        self.next_seq = 0
        self.acked_seq = -1
        self._spool = spool
        self._disk = spool.new_run(facts)
        self._monotonic = monotonic
        self._memory: deque[Entry] = deque()
        self._memory_bytes = 0
        self._context: tuple[Entry, ...] = ()  # in force before the first frame in memory
        self._is_away = True
        self._disk_retry_at = float("-inf")
        self._disk_trouble: str | None = None

    @property
    def facts(self) -> RunFacts:
        """What its hello says."""
        return self._disk.facts

    @property
    def memory_bytes(self) -> int:
        """Memory taken by waiting frames."""
        return self._memory_bytes

    def put(self, entries: Iterable[Entry]) -> None:
        """Add the frames of one reading."""
        for entry in entries:
            self._memory.append(entry)
            self._memory_bytes += len(entry.message)
            self.next_seq = entry.seq + 1
        if self._is_away or not self._disk.is_empty or self._memory_bytes > SPILL_BYTES:
            self.spill()
        self.changed.set()

    def set_away(self, is_away: bool) -> None:
        """Say whether the hub listens; when it does not, everything goes to disk."""
        self._is_away = is_away
        if is_away:
            self.spill()

    def set_interval(self, interval_seconds: float) -> None:
        """Say at which pace the frames are made from now on."""
        self._disk.facts = msgspec.structs.replace(self._disk.facts, interval_seconds=interval_seconds)

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Some frames after ``after_seq``, and the facts and table in force before the first of them."""
        entries, earlier = self._disk.batch(after_seq)
        if entries:
            return entries, context_before(earlier)
        earlier = (*self._context, *(entry for entry in self._memory if entry.seq <= after_seq))
        entries = tuple(entry for entry in self._memory if entry.seq > after_seq)
        return entries, context_before(earlier)

    def ack(self, seq: int) -> None:
        """The hub has everything up to ``seq``."""
        self.acked_seq = max(self.acked_seq, min(seq, self.next_seq - 1))
        self._disk.forget(self.acked_seq)
        while self._memory and self._memory[0].seq <= self.acked_seq:
            self._take_oldest()
        self.changed.set()

    def spill(self) -> None:
        """Move what is in memory to disk; where that fails keep it, within the bound."""
        if self._memory and self._spool.max_bytes and self._monotonic() >= self._disk_retry_at:
            try:
                self._disk.append(list(self._memory), self._context)
            except OSError as error:
                self._disk_failed(error)
            else:
                self._disk_works()
                while self._memory:
                    self._take_oldest()
                self._say_dropped(self._spool.make_room(self._disk), "the spool is full")
        lost = 0
        while self._memory_bytes > MEMORY_BYTES:
            self._take_oldest()
            lost += 1
        if lost:
            self._disk.count_dropped(lost)
            self._say_dropped(lost, "memory for waiting frames is full")

    def unsynced(self) -> int | None:
        """A descriptor of the file that the disk does not have for sure yet; the caller syncs and closes it."""
        return self._disk.unsynced()

    def close(self) -> None:
        """Leave everything unconfirmed on disk for the next agent."""
        self._disk_retry_at = float("-inf")
        self.spill()
        self._disk.seal()
        if self._disk.is_empty and not self._disk.facts.dropped_frames:
            self._disk.delete()  # the hub has all of it

    def unload(self) -> None:
        """Let go of what was read for sending."""
        self._disk.unload()

    def _take_oldest(self) -> Entry:
        entry = self._memory.popleft()
        self._memory_bytes -= len(entry.message)
        if entry.kind is not FrameKind.SAMPLE:
            self._context = context_before((*self._context, entry))
        return entry

    def _disk_failed(self, error: OSError) -> None:
        self._disk_retry_at = self._monotonic() + DISK_RETRY_SECONDS
        if self._disk_trouble is None:
            log.warning(
                "the spool in %s cannot be written (%s); frames wait in memory, at most %d MiB. "
                "Make room or the folder writable; it is tried again every %.0f s",
                self._disk.folder.parent,
                error.strerror,
                MEMORY_BYTES >> 20,
                DISK_RETRY_SECONDS,
            )
        self._disk_trouble = error.strerror

    def _disk_works(self) -> None:
        if self._disk_trouble is not None:
            log.info("the spool can be written again")
        self._disk_trouble = None

    def _say_dropped(self, frames: int, why: str) -> None:
        if frames:
            log.warning("%s: the %d oldest frames were dropped", why, frames)


class Outbox:
    """Everything that is to be sent: older runs first, then the current one."""

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        facts: RunFacts,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool = Spool(folder, max_bytes)
        self._spool.recover()
        self.current = CurrentRun(self._spool, facts, monotonic)
        self._older = [OlderRun(disk) for disk in self._spool.older]

    def next_run(self) -> Run:
        """The run to send now."""
        return self._older[0] if self._older else self.current

    def finish(self, run: Run) -> None:
        """An older run is all with the hub."""
        if isinstance(run, OlderRun) and run in self._older:
            run.disk.delete()
            self._older.remove(run)
            self._spool.older.remove(run.disk)

    def set_away(self, is_away: bool) -> None:
        """Say whether the hub listens."""
        self.current.set_away(is_away)
        if is_away:
            self.current.unload()
            for run in self._older:
                run.disk.unload()
