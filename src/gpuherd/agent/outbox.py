"""What the hub has not confirmed yet: older runs on disk, then the current run, on disk and in memory.

While the hub listens, frames wait for their ack in memory. When it does not, or listens and confirms nothing, they go
to disk at once, so that not even kill -9 loses them. If the disk does not take them they stay in memory, bounded, and
that is said once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from gpuherd.agent.numbering import Entry
from gpuherd.agent.shelf import Shelf, context_before
from gpuherd.agent.spool import DiskRun, RunFacts, Spool

__all__ = ["CurrentRun", "OlderRun", "Outbox", "Run"]

log = logging.getLogger(__name__)

SPILL_BYTES = 1024 * 1024
"""Frames waiting for their ack take at most this much memory, then they go to disk as well."""
MEMORY_BYTES = 8 * 1024 * 1024
"""The bound when there is no disk to go to."""
TAIL_BYTES = 128 * 1024
"""The newest frames are sent from memory even when they are on disk: reading them back would cut up the file."""
UNCONFIRMED_SECONDS = 20.0
"""After so long without an ack frames go to disk though the hub listens: it may not be able to save for hours."""
DISK_RETRY_SECONDS = 60.0
MOST_OLDER_RUNS = 4
"""With so many waiting no further run is set aside: a hub remembers the numbers of eight runs of a node."""


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
    """What waits on disk of a run that is over: an earlier agent's, or one that was set aside."""

    def __init__(self, disk: DiskRun, acked_seq: int = -1) -> None:
        self.changed = asyncio.Event()
        self.disk = disk
        self.acked_seq = acked_seq

    @property
    def facts(self) -> RunFacts:
        """What its hello says."""
        return self.disk.told_facts

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

    async def wait_acked(self, seq: int) -> None:
        """Wait until the hub has everything up to ``seq``; for ever if it cannot save."""
        while self.acked_seq < seq:
            self.changed.clear()
            await self.changed.wait()


class CurrentRun:
    """The run being made: its frames on disk come before those in memory."""

    def __init__(self, spool: Spool, facts: RunFacts, monotonic: Callable[[], float]) -> None:
        self.changed = asyncio.Event()
        self.next_seq = 0
        self.acked_seq = -1
        self._spool = spool
        self._disk = spool.new_run(facts)
        self._monotonic = monotonic
        self._memory = Shelf()  # what is not on disk
        self._tail = Shelf()  # the newest frames while the hub listens, wherever else they are
        self._is_away = True
        self._waiting_since = monotonic()
        self._disk_retry_at = float("-inf")
        self._disk_trouble: str | None = None

    @property
    def facts(self) -> RunFacts:
        """What its hello says."""
        return self._disk.told_facts

    @property
    def is_away(self) -> bool:
        """Whether the hub does not listen."""
        return self._is_away

    @property
    def memory_bytes(self) -> int:
        """Memory taken by waiting frames."""
        return self._memory.size_bytes

    def put(self, entries: Iterable[Entry]) -> None:
        """Add the frames of one reading."""
        now = self._monotonic()
        if not self._memory.entries:
            self._waiting_since = now
        for entry in entries:
            self._memory.put(entry)
            self.next_seq = entry.seq + 1
            self._tail.put(entry)
        if self._is_away:
            self._tail.forget(self.next_seq)
        while self._tail.size_bytes > TAIL_BYTES:
            self._tail.take_oldest()
        is_unconfirmed = now - self._waiting_since >= UNCONFIRMED_SECONDS
        if (
            self._is_away
            or is_unconfirmed
            or not self._disk.is_empty
            or self._memory.size_bytes > SPILL_BYTES
        ):
            self.spill()
        self.changed.set()

    def set_away(self, is_away: bool) -> None:
        """Say whether the hub listens; when it does not, everything goes to disk."""
        self._is_away = is_away
        if is_away:
            self._tail.forget(self.next_seq)
            self.spill()

    def set_interval(self, interval_seconds: float) -> None:
        """Say at which pace the frames are made from now on."""
        self._disk.facts = msgspec.structs.replace(self._disk.facts, interval_seconds=interval_seconds)

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Some frames after ``after_seq``, and the facts and table in force before the first of them."""
        if self._tail.reaches(after_seq + 1):
            return self._tail.batch(after_seq)
        entries, earlier = self._disk.batch(after_seq)
        if entries:
            return entries, context_before(earlier)
        return self._memory.batch(after_seq)

    def ack(self, seq: int) -> None:
        """The hub has everything up to ``seq``."""
        if seq > self.acked_seq:
            self._waiting_since = self._monotonic()
        self.acked_seq = max(self.acked_seq, min(seq, self.next_seq - 1))
        self._disk.forget(self.acked_seq)
        self._memory.forget(self.acked_seq)
        self._tail.forget(self.acked_seq)
        self.changed.set()

    def spill(self) -> None:
        """Move what is in memory to disk; where that fails keep it, within the bound."""
        if self._memory.entries and self._spool.max_bytes and self._monotonic() >= self._disk_retry_at:
            try:
                self._disk.append(list(self._memory.entries), self._memory.context)
            except OSError as error:
                self._disk_failed(error)
            else:
                self._disk_works()
                self._memory.forget(self.next_seq)
                self._say_dropped(self._spool.make_room(self._disk), "the spool is full")
        lost = 0
        while self._memory.size_bytes > MEMORY_BYTES:
            self._memory.take_oldest()
            lost += 1
        if lost:
            self._disk.count_dropped(lost)
            self._say_dropped(lost, "the memory buffer for reports is full")

    def unsynced(self) -> int | None:
        """A descriptor of the file that the disk does not have for sure yet; the caller syncs and closes it."""
        return self._disk.unsynced()

    def hand_over(self) -> DiskRun | None:
        """Give all that is not confirmed, on disk and whole; none if the disk does not take it."""
        self._disk_retry_at = float("-inf")
        self.spill()
        self._disk.seal()
        return None if self._memory.entries else self._disk

    def close(self) -> None:
        """Leave everything unconfirmed on disk for the next agent."""
        self.hand_over()
        if self._disk.is_empty and not self.facts.dropped_frames:
            self._disk.delete()  # the hub has all of it

    def unload(self) -> None:
        """Let go of what was read for sending."""
        self._disk.unload()

    def _disk_failed(self, error: OSError) -> None:
        self._disk_retry_at = self._monotonic() + DISK_RETRY_SECONDS
        if self._disk_trouble is None:
            log.warning(
                "cannot write to the spool in %s (%s): keeping at most %d MiB of reports in memory; free some space or "
                "make the folder writable; retrying every %.0f s",
                self._disk.folder.parent,
                error.strerror,
                MEMORY_BYTES >> 20,
                DISK_RETRY_SECONDS,
            )
        self._disk_trouble = error.strerror

    def _disk_works(self) -> None:
        if self._disk_trouble is not None:
            log.info("the spool is writable again")
        self._disk_trouble = None

    def _say_dropped(self, frames: int, why: str) -> None:
        if frames:
            log.warning("%s: dropped the %d oldest reports", why, frames)


class Outbox:
    """Everything that is to be sent: older runs, oldest first, and the current one."""

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        facts: RunFacts,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._spool = Spool(folder, max_bytes)
        self._spool.recover()
        lost = facts.dropped_frames + self._spool.lost_frames
        facts = msgspec.structs.replace(facts, dropped_frames=lost)
        self.current = CurrentRun(self._spool, facts, monotonic)
        self._older = [OlderRun(disk) for disk in self._spool.older]

    def older_run(self) -> OlderRun | None:
        """The oldest run that is over and not all with the hub."""
        return self._older[0] if self._older else None

    def ack_older(self, boot_id: str, seq: int) -> None:
        """The hub has everything of an older run up to ``seq``."""
        for run in self._older:
            if run.facts.boot_id == boot_id:
                run.ack(seq)

    def finish(self, run: OlderRun) -> None:
        """An older run is all with the hub."""
        if run in self._older:
            run.disk.delete()
            self._older.remove(run)
            self._spool.older.remove(run.disk)

    def set_current_aside(self) -> bool:
        """Make an older run of the current one and begin a new one, whose frames need not wait for the others.

        False, and nothing is changed, if not all of it is on disk or too many runs wait already.
        """
        if len(self._older) >= MOST_OLDER_RUNS:
            return False
        before = self.current
        disk = before.hand_over()
        if disk is None:
            return False
        self._older.append(OlderRun(disk, before.acked_seq))
        self._spool.older.append(disk)
        facts = msgspec.structs.replace(before.facts, boot_id=os.urandom(16).hex(), dropped_frames=0)
        self.current = CurrentRun(self._spool, facts, self._monotonic)
        return True

    def set_away(self, is_away: bool) -> None:
        """Say whether the hub listens."""
        self.current.set_away(is_away)
        if is_away:
            self.current.unload()
            for run in self._older:
                run.disk.unload()
