"""The files of one kind of samples: sealing into them, rolling up, merging, forgetting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import SeriesKey
from gpuherd.history.embedded.asking import add_rollups, ask_keys, ask_rows
from gpuherd.history.embedded.grid import LONGEST_MS, Grid
from gpuherd.history.embedded.kinds import Kind, rounded
from gpuherd.history.embedded.memory import Memory
from gpuherd.history.embedded.rows import Rows, joined, no_rows
from gpuherd.history.tables.segments import Segment, Shape
from gpuherd.history.tables.splicing import splice
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.tables.writing import Coded, Sortable

__all__ = ["DAY_MS", "HOUR_MS", "Shelf", "days_of"]

MINUTE_MS, QUARTER_MS, HOUR_MS, DAY_MS = 60_000, 900_000, 3_600_000, 86_400_000
QUARTER_PARTITION_MS = 32 * DAY_MS
"""Quarters of an hour are few: a year of them is in a dozen files."""
SUBJECTS_AT_ONCE = 1000
MERGE_HOURS = 6
"""Hours of the running day become one file in so many, lest a day's chart opens 24."""
ROLLUP_ROWS = 2 * 69_632
MOST_PARTS = 16
"""Rollups are cut into files of so many rows, but not into more: whoever asks for one device opens one of them."""
LATE_SEGMENTS = 8
"""A day that was merged is merged again when so many stragglers have come."""


class Shelf:
    """Raw samples and both rollups of one kind. Changed by one thread; ``dirty`` may be read by any."""

    def __init__(self, kind: Kind, tables: Tables) -> None:
        self.kind = kind
        self.tables = tables
        self.dirty = self._find_dirty()
        """Hours, epoch milliseconds, whose rollups lack samples that are in files, and the first such file's serial."""
        self.fence = 0
        """First of the journal's files that came after all segments found at the start."""
        self._fences: dict[str, int] = {}
        """The same of each segment made since."""
        self._fresh: Rows = no_rows()
        """What was sealed lately, to be rolled up without being read again: all of some files from a time on."""
        self._fresh_files: set[str] = set()
        self._fresh_from = 0
        self._is_tidy = False

    # -- what is known of the past, kept with the list of files

    @property
    def _rolled_word(self) -> str:
        return f"embedded {self.kind.name} rolled up to serial"

    @property
    def _whole_word(self) -> str:
        return f"embedded {self.kind.name} raw whole from day"

    @property
    def whole_from(self) -> int:
        """From here on, epoch milliseconds, nothing was forgotten of the raw samples."""
        return self.tables.catalogue.settled(self._whole_word) * DAY_MS

    def is_gone(self, hour: int) -> bool:
        """Whether raw samples of an hour were forgotten: then there are only those that came late."""
        return hour < self.whole_from

    def is_hurt(self, hour: int) -> bool:
        """Whether a file with raw samples of an hour could not be read: its rollups may know more."""
        return bool(self.tables.missing(self.kind.raw.name, hour / 1000, (hour + HOUR_MS - 1) / 1000))

    def _find_dirty(self) -> dict[int, int]:
        rolled = self.tables.catalogue.settled(self._rolled_word)
        dirty: dict[int, int] = {}
        for segment in self.tables.segments(self.kind.raw.name):
            if self._is_unrolled(segment, rolled):
                for hour in _hours(segment.start, segment.end):
                    dirty.setdefault(hour, segment.serial)
        return dirty

    def _is_unrolled(self, segment: Segment, rolled: int | None = None) -> bool:
        # What was merged had been rolled up before.
        if rolled is None:
            rolled = self.tables.catalogue.settled(self._rolled_word)
        return segment.level == 0 and segment.serial > rolled

    # -- sealing

    def seal(self, rows: Rows, memory: Memory, last_file: int) -> list[Segment]:
        """Make segments of rows, one a day; durable, to be listed by the caller, who then calls ``sealed``."""
        segments: list[Segment] = []
        for day in days_of(rows.time):
            chosen = rows.where(rows.time // DAY_MS == day)
            columns = self._key_columns(chosen.subject, memory.subjects.keys)
            columns["time"] = chosen.time.astype("datetime64[ms]")
            columns |= chosen.values
            if self.kind.states:
                columns["state"] = chosen.state
            segment = self.tables.write(self.kind.raw.name, columns, partition=int(day) * DAY_MS // 1000)
            if segment is not None:
                segments.append(segment)
                self._fences[segment.file] = last_file + 1
        return segments

    def sealed(self, rows: Rows, segments: Sequence[Segment]) -> None:
        """Note the hours whose rollups must follow."""
        self._fresh = joined([self._fresh, rows])
        self._is_tidy = False
        self._fresh_files |= {segment.file for segment in segments}
        serial = min((segment.serial for segment in segments), default=0)
        self.dirty = {
            **{int(hour) * HOUR_MS: serial for hour in np.unique(rows.time // HOUR_MS)},
            **self.dirty,
        }

    def _key_columns(self, subject: NDArray[np.int32], keys: Sequence[SeriesKey]) -> dict[str, Sortable]:
        numbers, position = np.unique(subject, return_inverse=True)
        columns: dict[str, Sortable] = {}
        for name in self.kind.keys:
            words: dict[str, int] = {}
            codes = [words.setdefault(getattr(keys[number], name), len(words)) for number in numbers]
            columns[name] = Coded(np.array(codes, np.int32)[position], list(words))
        return columns

    # -- rolling up

    def due_hours(self, before: int) -> list[int]:
        """List hours that are over and to be rolled up, oldest first."""
        return sorted(hour for hour in self.dirty if hour + HOUR_MS <= before)

    def tidy(self, until: int, most_bytes: int) -> None:
        """Let go of what was sealed and is rolled up; hours before ``until`` are."""
        if self._is_tidy and self._fresh_from == until - LONGEST_MS:
            return
        self._is_tidy = True
        has_clock_gone_back = until - LONGEST_MS < self._fresh_from
        self._fresh_from = until - LONGEST_MS
        self._fresh = self._fresh.where(self._fresh.time >= self._fresh_from)
        if self._fresh.size_bytes > most_bytes or has_clock_gone_back:
            self.let_go()

    def let_go(self) -> None:
        """Let go of all that was sealed: what is still to be rolled up is read again."""
        self._fresh, self._fresh_files = no_rows(), set()

    def _is_fresh(self, hour: int) -> bool:
        start, end = hour - LONGEST_MS, hour + HOUR_MS
        segments = self.tables.segments(self.kind.raw.name, start / 1000, end / 1000)
        return self._fresh_from <= start and all(segment.file in self._fresh_files for segment in segments)

    def roll(self, hour: int, settled: int, keep: tuple[int, int], memory: Memory) -> bool:
        """Roll up one hour again from all that is known of it; false if that has to wait.

        ``keep``: from when on minutes and quarters are kept, epoch milliseconds.
        """
        day = hour // DAY_MS * DAY_MS
        is_gone = self.is_gone(hour)
        is_whole = not is_gone and not self.is_hurt(hour)
        late = () if is_whole else self._unrolled_in(day)
        if any(self._fences.get(segment.file, self.fence) > settled for segment in late):
            return False  # the journal may give these samples again, and then nobody could tell
        minutes: list[Segment | None] = []
        quarters: list[Segment | None] = []
        # What came late for a day that was forgotten goes with its rollups, so all its hours are done at once.
        hours = [each for each in self.due_hours(day + DAY_MS) if each >= day] if is_gone else [hour]
        for each in hours:
            for keys, grid, coarse in self._grids(each, late if not is_whole else None, memory):
                if each >= keep[0]:
                    minutes.append(self._write_rollup(self.kind.minute, keys, grid, day))
                if each >= keep[1]:
                    partition = each // QUARTER_PARTITION_MS * QUARTER_PARTITION_MS
                    quarters.append(self._write_rollup(self.kind.quarter, keys, coarse, partition))
        dirty = {each: serial for each, serial in self.dirty.items() if each not in hours}
        rolled = min(dirty.values(), default=self._last_serial() + 1) - 1
        self.tables.commit(
            add=[*minutes, *quarters], remove=late if is_gone else (), settled={self._rolled_word: rolled}
        )
        self.dirty = dirty
        for segment in late if is_gone else ():
            self._fences.pop(segment.file, None)
        return True

    def _last_serial(self) -> int:
        return max((segment.serial for segment in self.tables.segments(self.kind.raw.name)), default=0)

    def _unrolled_in(self, day: int) -> tuple[Segment, ...]:
        found = self.tables.segments(self.kind.raw.name, day / 1000, (day + DAY_MS) / 1000)
        return tuple(s for s in found if s.partition * 1000 == day and self._is_unrolled(s))

    def _grids(
        self, hour: int, late: tuple[Segment, ...] | None, memory: Memory
    ) -> Iterator[tuple[list[SeriesKey], Grid, Grid]]:
        """Give the minutes and quarters of an hour, so many subjects at once."""
        start, end = hour - LONGEST_MS, hour + HOUR_MS
        name = self.kind.raw.name
        part = Part(name, start / 1000, (end - 1) / 1000) if late is None else Part(name, segments=late)
        numbers: list[int] = []
        if late is None and self._is_fresh(hour):
            numbers = _subjects_of(self._fresh, start, end)
            keys = [memory.subjects.keys[number] for number in numbers]
        else:
            keys = ask_keys(self.tables, self.kind, part, start if late is None else hour, end)
        for first in range(0, len(keys), SUBJECTS_AT_ONCE):
            own = keys[first : first + SUBJECTS_AT_ONCE]
            if numbers:
                rows = self._fresh.of(numbers[first : first + SUBJECTS_AT_ONCE], start, end)
            else:
                rows, _ = ask_rows(self.tables, self.kind, part, own, self.kind.metrics, start, end)
            metrics = tuple(metric for metric in self.kind.metrics if metric in rows.values)
            grid = Grid(len(own), hour, MINUTE_MS, HOUR_MS // MINUTE_MS, metrics, len(self.kind.states))
            grid.add_rows(rows)
            coarse = grid.coarser(QUARTER_MS // MINUTE_MS)
            if late is not None:
                for each, shape in ((grid, self.kind.minute), (coarse, self.kind.quarter)):
                    add_rollups(each, self.tables, self.kind, shape, own, hour, end)
            yield own, grid, coarse

    def _write_rollup(
        self, shape: Shape, keys: list[SeriesKey], grid: Grid, partition: int
    ) -> Segment | None:
        subject, step = np.nonzero((grid.samples > 0) | (grid.seconds.sum(axis=2) > 0))
        columns = self._key_columns(subject.astype(np.int32), keys)
        columns["time"] = (grid.start + step * grid.step).astype("datetime64[ms]")
        columns["samples"] = grid.samples[subject, step].astype(np.int32)
        mean = grid.mean
        for number, metric in enumerate(grid.metrics):
            parts = self.kind.parts_of(metric)
            finer = 1000 if self.kind.mean_type_of(metric) == "DOUBLE" or parts == 1 else 10 * parts
            if self.kind.mean_type_of(metric) == "BIGINT":
                finer = 1
            columns[f"{metric}_mean"] = rounded(mean[number][subject, step], finer)
            columns[f"{metric}_low"] = grid.low[number][subject, step]
            columns[f"{metric}_high"] = grid.high[number][subject, step]
        for number, state in enumerate(self.kind.states):
            columns[f"state_{state}"] = grid.seconds[subject, step, number]
        return self.tables.write(shape.name, columns, partition=partition // 1000)

    # -- merging and forgetting

    def merge_some(self, now: int) -> bool:
        """Make few files of many, somewhere; false if nothing is to be done."""
        return self._merge_raw(now) or self._merge_rollups(now)

    def _merge_raw(self, now: int) -> bool:
        for day, segments in self._by_partition(self.kind.raw):
            if day + DAY_MS + HOUR_MS > now or any(day <= hour < day + DAY_MS for hour in self.dirty):
                continue
            fresh = [segment for segment in segments if segment.level == 0]
            is_first = len(fresh) == len(segments)
            if len(segments) < 2 or not (len(fresh) >= LATE_SEGMENTS or is_first):
                continue
            splice(self.tables, segments, level=1)
            return True
        return False

    def _merge_rollups(self, now: int) -> bool:
        for shape, least_ms in ((self.kind.minute, MERGE_HOURS * HOUR_MS), (self.kind.quarter, DAY_MS)):
            for partition, segments in self._by_partition(shape):
                length = DAY_MS if shape is self.kind.minute else QUARTER_PARTITION_MS
                groups: dict[int, list[Segment]] = {}
                is_over = partition + length + HOUR_MS <= now
                level = 2 if is_over else 1
                for segment in segments:
                    block = 0 if is_over else int(segment.start * 1000) // least_ms
                    groups.setdefault(block, []).append(segment)
                for block, group in groups.items():
                    is_due = is_over or (block + 1) * least_ms + HOUR_MS <= now
                    if is_due and len(group) > 1 and any(segment.level < level for segment in group):
                        rows = sum(segment.rows for segment in group)
                        rows_at_once = max(ROLLUP_ROWS, rows // MOST_PARTS + 1)
                        splice(self.tables, group, level=level, rows_at_once=rows_at_once)
                        return True
        return False

    def _by_partition(self, shape: Shape) -> list[tuple[int, tuple[Segment, ...]]]:
        found: dict[int, list[Segment]] = {}
        for segment in self.tables.segments(shape.name):
            found.setdefault(segment.partition * 1000, []).append(segment)
        return [(partition, tuple(segments)) for partition, segments in sorted(found.items())]

    def forget(self, raw_from: int, minute_from: int, quarter_from: int) -> None:
        """Remove days of raw samples and rollups that are wholly before a time, unless still to be rolled up."""
        remove: list[Segment] = []
        settled: dict[str, int] = {}
        gone = [
            (day, segments)
            for day, segments in self._by_partition(self.kind.raw)
            if day + DAY_MS <= raw_from and not any(day <= hour < day + DAY_MS for hour in self.dirty)
        ]
        for day, segments in gone:
            remove += segments
            settled[self._whole_word] = max(
                day // DAY_MS + 1, settled.get(self._whole_word, self.whole_from // DAY_MS)
            )
        for shape, limit in ((self.kind.minute, minute_from), (self.kind.quarter, quarter_from)):
            remove += [s for s in self.tables.segments(shape.name) if s.end * 1000 < limit]
        if remove:
            self.tables.commit(remove=remove, settled=settled)


def days_of(time: NDArray[np.int64]) -> NDArray[np.int64]:
    """List the days that moments are of, in order: mostly one."""
    if len(time) and (first := time.min() // DAY_MS) == time.max() // DAY_MS:
        return np.array([first])
    return np.unique(time // DAY_MS)


def _hours(start: float, end: float) -> range:
    first = math.floor(start * 1000) // HOUR_MS * HOUR_MS
    return range(first, math.floor(end * 1000) + 1, HOUR_MS)


def _subjects_of(rows: Rows, start: int, end: int) -> list[int]:
    return [int(number) for number in np.unique(rows.subject[(rows.time >= start) & (rows.time < end)])]
