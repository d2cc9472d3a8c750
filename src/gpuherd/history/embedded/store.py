"""The store of samples in files of the hub's own: takes them from the journal, and brings them where they stay."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Batch
from gpuherd.history.embedded.kinds import DEVICES, HOSTS, KINDS
from gpuherd.history.embedded.memory import PACK_ROWS, Block, Memory
from gpuherd.history.embedded.reading import read_series
from gpuherd.history.embedded.rows import Rows, joined
from gpuherd.history.embedded.shelf import DAY_MS, HOUR_MS, Shelf, days_of
from gpuherd.history.journal import Reading
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SeriesAnswer, SeriesQuery, SinkHealth
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Tables
from gpuherd.model.errors import Failed
from gpuherd.model.history import MissingPart

__all__ = ["EmbeddedStore", "JournalReader"]

_log = logging.getLogger(__name__)

NAME = "embedded"
GRACE_MS = 60_000
"""An hour is taken to be complete so long after its end."""
AHEAD_MS = 300_000
"""Samples that claim to be from later than this are written at once, lest the journal waits for their time to come."""
LATE_MS = 600_000
"""Samples of hours that are over wait so long for others of their kind."""
MOST_TIMES = 4
"""If files cannot be written, memory grows to so many times what is set; what comes then is left in the journal."""
DAYS_AT_ONCE = 8
"""Each day is a file: what came late for more of them is brought into files a few days at a time."""
_LOOK_EVERY = 16
MOST_SUBJECTS = 2**18
"""With more devices or hosts than this in memory, they are written to files and forgotten: nodes may make them up."""
CROWDED_MS = 60_000
"""But for their number alone, files are not written more often than this."""
BUDGET_SECONDS = 20.0
"""How long one round of tending rolls up and merges; what is left is done in the next."""


class JournalReader(Protocol):
    """Who can read a file of the journal again."""

    def read(self, number: int) -> Reading:
        """Give what it holds."""


class EmbeddedStore:
    """A sink and a reader. ``take`` in the writer's thread, ``tend`` in one other, ``read`` in any."""

    def __init__(
        self,
        tables: Tables,
        settings: HistorySettings,
        *,
        journal: JournalReader | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``journal``: to read again what there was no memory for; without it, that waits for the next start."""
        self._tables = tables
        self._settings = settings
        self._clock = clock
        self.memories = {kind.name: Memory(kind) for kind in KINDS}
        self.shelves = {kind.name: Shelf(kind, tables) for kind in KINDS}
        self._sealed_until = 0
        self._sealed_at = 0.0
        self._last_file = 0
        self._failure: tuple[str, float] | None = None
        self._journal = journal
        self._skipped: set[int] = set()
        """Files of the journal of which not everything is mirrored."""
        self._skipping = threading.Lock()
        """Of those who change it: the writer adds, whoever tends takes away."""
        self._untold_takes = 0
        self._is_full = False
        self._has_more_days = False
        """Some of what was to be sealed is left for the next round."""

    @property
    def name(self) -> str:
        """Its name, for messages and health."""
        return NAME

    @property
    def settled(self) -> int:
        """The first of the journal's files that it still needs."""
        return self._tables.catalogue.settled(NAME)

    def take(self, batch: Batch, file: int) -> None:
        """Mirror what the journal holds."""
        self._last_file = max(self._last_file, file)
        self._untold_takes += 1
        if self._untold_takes >= _LOOK_EVERY:
            self._untold_takes = 0
            self._is_full = self.size_in_memory > MOST_TIMES * self._settings.memory_bytes
        if self._is_full:
            with self._skipping:
                self._skipped = self._skipped | {file}  # it stays in the journal until there is room again
            return
        self.memories[DEVICES.name].take(batch.devices, file)
        self.memories[HOSTS.name].take(batch.hosts, file)

    def tend(self, now: float, open_file: int) -> None:
        """Seal, roll up, merge and forget what is due. Raises ``Failed``."""
        try:
            self._tend(now, open_file)
        except Failed as error:
            self._failure = (str(error), now)
            raise
        self._failure = None

    def _tend(self, now: float, open_file: int) -> None:
        begun = time.monotonic()
        for shelf in self.shelves.values():
            shelf.fence = shelf.fence or open_file
        moment = int(now * 1000)
        until = (moment - GRACE_MS) // HOUR_MS * HOUR_MS
        for memory in self.memories.values():
            memory.sort(PACK_ROWS)
        if self.size_in_memory > self._settings.memory_bytes:
            self._seal(moment, moment + AHEAD_MS, open_file)
        elif (
            self._has_more_days or until > self._sealed_until or not 0 <= moment - self._sealed_at <= LATE_MS
        ):
            self._seal(moment, until, open_file)
        self._thin_out(moment, open_file)
        for name, shelf in self.shelves.items():
            self._roll(shelf, self.memories[name], moment, until, begun)
            if not shelf.due_hours(until):
                shelf.tidy(until, self._settings.memory_bytes // 2)
        for shelf in self.shelves.values():
            while time.monotonic() - begun < BUDGET_SECONDS and shelf.merge_some(moment):
                pass
        self._forget(moment)
        self._catch_up(open_file)

    def _thin_out(self, moment: int, open_file: int) -> None:
        """Forget subjects if there are very many, those that have samples in memory after these are in files."""
        if self._is_crowded():
            self._forget_subjects()
        if self._is_crowded() and not 0 <= moment - self._sealed_at < CROWDED_MS:
            self._seal(moment, moment + AHEAD_MS, open_file)
            self._forget_subjects()

    def _is_crowded(self) -> bool:
        return any(len(memory.subjects) > MOST_SUBJECTS for memory in self.memories.values())

    def _forget_subjects(self) -> None:
        for name, memory in self.memories.items():
            self.shelves[name].let_go()  # its rows have the same numbers
            memory.forget_subjects()

    def _catch_up(self, open_file: int) -> None:
        """Take from the journal what there was no memory for. What is taken twice counts once."""
        if self.size_in_memory > self._settings.memory_bytes:
            return
        self._is_full = False
        for file in sorted(self._skipped):
            if file >= open_file or self._journal is None or self._is_full:
                return
            for _, batch in self._journal.read(file).batches:
                self.memories[DEVICES.name].take(batch.devices, file)
                self.memories[HOSTS.name].take(batch.hosts, file)
            with self._skipping:
                self._skipped = self._skipped - {file}
            self._is_full = self.size_in_memory > self._settings.memory_bytes

    @property
    def size_in_memory(self) -> int:
        """Bytes of samples that are in no file yet."""
        return sum(memory.size_bytes for memory in self.memories.values())

    def _seal(self, moment: int, until: int, open_file: int) -> None:
        """Bring samples before a time into files, and with them say how far the journal is settled."""
        last_file, skipped = self._last_file, self._skipped
        has_more_days = False
        rest: dict[str, list[Block]] = {}
        due: dict[str, Rows] = {}
        made: dict[str, list[Segment]] = {}
        try:
            for name, memory in self.memories.items():
                blocks = memory.begin_sealing()
                chosen, is_left = _chosen(blocks, until, moment + AHEAD_MS)
                has_more_days |= is_left
                rest[name] = [Block(b.file, b.rows.where(~c)) for b, c in zip(blocks, chosen, strict=True)]
                due[name] = joined([b.rows.where(c) for b, c in zip(blocks, chosen, strict=True)])
                made[name] = self.shelves[name].seal(due[name], memory, last_file)
            waiting = [block.file for blocks in rest.values() for block in blocks if len(block.rows)]
            settled = max(self.settled, min([open_file, *waiting, *skipped]))
            segments = [segment for each in made.values() for segment in each]
            if segments or settled > self.settled:
                self._tables.commit(add=segments, settled={NAME: settled})
        except BaseException:
            self._tables.discard(*(segment for each in made.values() for segment in each))
            raise
        for name, memory in self.memories.items():
            # In this order: whoever asks finds each sample in memory or its hour marked.
            self.shelves[name].sealed(due[name], made[name])
            memory.end_sealing(rest[name])
        # Not the greatest ever: a clock that was ahead for a while must not keep hours from being sealed after it.
        self._sealed_until, self._sealed_at = until, moment
        self._has_more_days = has_more_days

    def _roll(self, shelf: Shelf, memory: Memory, moment: int, until: int, begun: float) -> None:
        trusted = self._trusted(moment)
        keep = (
            (0, 0)
            if trusted is None
            else (self._kept_from("minute", trusted), self._kept_from("quarter", trusted))
        )
        for hour in shelf.due_hours(until):
            if time.monotonic() - begun > BUDGET_SECONDS:
                return
            if hour in shelf.dirty:  # else it went with another of its day
                shelf.roll(hour, self.settled, keep, memory)

    def _kept_from(self, table: str, moment: int) -> int:
        days = {
            "raw": self._settings.raw_days,
            "minute": self._settings.minute_days,
            "quarter": self._settings.quarter_hour_days,
        }[table]
        return moment - int(days * DAY_MS)

    def _trusted(self, moment: int) -> int | None:
        """Give the time by which samples are old; none: the clock is not to be believed just now."""
        trusted = self._tables.trusted(moment / 1000)
        return None if trusted is None else int(trusted * 1000)

    def _forget(self, moment: int) -> None:
        trusted = self._trusted(moment)
        if trusted is not None:
            limits = [self._kept_from(table, trusted) for table in ("raw", "minute", "quarter")]
            for shelf in self.shelves.values():
                shelf.forget(*limits)
        if self._settings.max_bytes is not None:
            self._shrink(self._settings.max_bytes, moment)

    def _shrink(self, max_bytes: int, moment: int) -> None:
        """Forget the oldest of the finest until what is left is small enough; not what is of today."""
        ranks = [[getattr(kind, rank).name for kind in KINDS] for rank in ("raw", "minute", "quarter")]
        limits = [0, 0, 0]
        excess = self._tables.catalogue.size_bytes([name for names in ranks for name in names]) - max_bytes
        for rank, names in enumerate(ranks):
            segments = [segment for name in names for segment in self._tables.segments(name)]
            for segment in sorted(segments, key=lambda each: each.end):
                end = int(segment.end * 1000) // DAY_MS * DAY_MS + DAY_MS
                if excess > 0 and end <= moment - DAY_MS:
                    limits[rank] = max(limits[rank], end)
                    excess -= segment.size_bytes
        if any(limits):
            for shelf in self.shelves.values():
                shelf.forget(*limits)

    def read(self, query: SeriesQuery) -> SeriesAnswer:
        """Answer from memory, raw samples and rollups, whichever is fit for the range."""
        is_devices = any(key.uuid for key in query.subjects)
        name = (DEVICES if is_devices else HOSTS).name
        now = int(self._clock() * 1000)
        kept = {table: self._kept_from(table, now) for table in ("raw", "minute", "quarter")}
        answer = read_series(query, self.shelves[name], self.memories[name], kept, now)
        if self._skipped and query.end * 1000 > self._sealed_until:
            waiting = MissingPart(
                start=max(query.start, self._sealed_until / 1000),
                end=query.end,
                reason="is waiting to be written to files",
            )
            answer = replace(answer, missing=(*answer.missing, waiting))
        return answer

    def health(self) -> SinkHealth:
        """Tell how it is doing."""
        tables = [s.name for kind in KINDS for s in (kind.raw, kind.minute, kind.quarter)]
        catalogue = self._tables.catalogue
        is_behind = bool(self._skipped) or self.size_in_memory > 2 * self._settings.memory_bytes
        return SinkHealth(
            name=NAME,
            state="failing" if self._failure else "behind" if is_behind else "ok",
            last_error=self._failure[0] if self._failure else None,
            last_error_at=self._failure[1] if self._failure else None,
            size_bytes=catalogue.size_bytes(tables),
            oldest=catalogue.oldest(tables),
            unreadable=catalogue.unreadable(tables),
            damaged_files=catalogue.damaged_files(tables),
        )

    def close(self) -> None:
        """Nothing is held open here; the tables are closed by who opened them."""


def _chosen(blocks: list[Block], until: int, ahead: int) -> tuple[list[NDArray[np.bool_]], bool]:
    """Choose the rows before or after a time, of the newest few days; and tell whether there are more days."""
    chosen = [(block.rows.time < until) | (block.rows.time > ahead) for block in blocks]
    days = [days_of(block.rows.time[rows]) for block, rows in zip(blocks, chosen, strict=True)]
    all_days = np.unique(np.concatenate(days)) if days else np.empty(0, np.int64)
    if len(all_days) <= DAYS_AT_ONCE:
        return chosen, False
    now = all_days[-DAYS_AT_ONCE:]
    return [
        rows & np.isin(block.rows.time // DAY_MS, now) for block, rows in zip(blocks, chosen, strict=True)
    ], True
