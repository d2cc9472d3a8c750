"""Answers from memory, raw samples and rollups, joined without a seam."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gpuherd.history.batch import SeriesKey
from gpuherd.history.embedded.asking import add_rollups, ask_rows
from gpuherd.history.embedded.grid import LONGEST_MS, Grid
from gpuherd.history.embedded.memory import Memory
from gpuherd.history.embedded.rows import Rows, joined
from gpuherd.history.embedded.shelf import DAY_MS, HOUR_MS, MINUTE_MS, QUARTER_MS, Shelf
from gpuherd.history.store import MAX_POINTS, SeriesAnswer, SeriesQuery, Steps, SubjectAnswer
from gpuherd.history.tables.engine import TooLong
from gpuherd.history.tables.tables import Part
from gpuherd.model.history import MissingPart, Resolution

__all__ = ["read_series"]

MAX_CELLS = 4_000_000
"""Numbers in one answer: with more subjects or metrics it has fewer points."""
DEADLINE_SECONDS = 20.0
_PROBED = 8
"""So many subjects tell how far samples are apart."""
_DEVICE_HOURS = 400
"""Raw samples that are worked on at once; at one a second these are some 100 MB."""
_NEARLY = 0.95
"""Samples that are apart by a step but for this are not further apart than it."""
_RESOLUTIONS: Mapping[int, Resolution] = {0: "raw", MINUTE_MS: "minute", QUARTER_MS: "quarter_hour"}


def read_series(
    query: SeriesQuery, shelf: Shelf, memory: Memory, kept: Mapping[str, int], now: int
) -> SeriesAnswer:
    """Answer a question about one kind of subjects; ``kept``: from when on raw samples and rollups are, in ms."""
    return _Reading(query, shelf, memory, kept, now).answer()


@dataclass
class _Reading:
    query: SeriesQuery
    shelf: Shelf
    memory: Memory
    kept: Mapping[str, int]
    now: int
    begun: float = field(default_factory=time.monotonic)
    missing: dict[MissingPart, None] = field(default_factory=dict)
    fetched: tuple[int, int, Rows] | None = None

    def __post_init__(self) -> None:
        query, kind = self.query, self.shelf.kind
        self.start, self.end = math.floor(query.start * 1000), math.ceil(query.end * 1000)
        self.metrics = tuple(metric for metric in query.metrics if metric in kind.metrics)
        self.states = len(kind.states) if query.with_states else 0
        width = max(1, len(query.subjects) * (3 * len(self.metrics) + self.states))
        self.points = max(1, min(query.max_points, MAX_POINTS, MAX_CELLS // width))
        longest = Steps[-1] * 1000 * self.points
        if self.end - self.start > longest:
            self._miss(self.start, self.end - longest, "the range is too long for so few points")
            self.start = self.end - longest
        # Memory before the list of hours to be rolled up, and that before files: a sample that moves on meanwhile is
        # found twice rather than not at all, and counts once.
        self.blocks, self.numbers = self.memory.look(query.subjects)
        self.dirty = tuple(self.shelf.dirty)

    def answer(self) -> SeriesAnswer:
        base, grid = self._grid()
        mean = grid.mean.transpose(1, 2, 0)
        low, high = grid.low.transpose(1, 2, 0), grid.high.transpose(1, 2, 0)
        places = [
            self.metrics.index(metric) if metric in self.metrics else -1 for metric in self.query.metrics
        ]
        if -1 in places:  # a metric that is not known here is unknown
            unknown = np.full((*mean.shape[:2], 1), np.nan)
            mean, low, high = (np.concatenate((each, unknown), axis=2) for each in (mean, low, high))
        subjects = tuple(
            SubjectAnswer(
                key=key,
                mean=mean[number][:, places],
                low=low[number][:, places],
                high=high[number][:, places],
                states=grid.seconds[number] if self.query.with_states else None,
            )
            for number, key in enumerate(self.query.subjects)
        )
        return SeriesAnswer(
            query=self.query,
            step_seconds=grid.step / 1000,
            resolution=_RESOLUTIONS[base],
            times=(grid.start + grid.step * np.arange(grid.steps)) / 1000,
            subjects=subjects,
            missing=tuple(self.missing),
        )

    # -- how finely

    def _grid(self) -> tuple[int, Grid]:
        least = (self.end - self.start) / self.points
        base = self._base(least)
        distance = 0.0
        if base == 0:
            self._fetch()
            distance = self._distance()
        least = max(least, base, _NEARLY * distance)
        while True:
            step = self._step(least)
            base = max(base, self._base(step))
            grid = self._filled(base, step)
            times_too_fine = _sparseness(grid, is_jittery=base == 0 and step < 1.5 * distance)
            if times_too_fine <= 1 or step == Steps[-1] * 1000:
                return base, grid
            least = max(step + 1, _NEARLY * step * times_too_fine)

    def _step(self, least: float) -> int:
        for seconds in Steps:
            step = seconds * 1000
            if step >= least and math.ceil(self.end / step) - self.start // step <= self.points + 1:
                return step
        return Steps[-1] * 1000

    def _base(self, least: float) -> int:
        """Choose what to make it from: the coarsest that is fine enough, and is kept for all of the range."""
        raw_from = max(self.kept["raw"] // DAY_MS * DAY_MS, self.shelf.whole_from)
        if least >= QUARTER_MS or self.start < self.kept["minute"] // DAY_MS * DAY_MS:
            return QUARTER_MS
        if self._step(least) >= MINUTE_MS or self.start < raw_from:
            return MINUTE_MS
        return 0

    def _fetch(self) -> None:
        """Get the samples of a range that is short, with what may be needed on both sides of it, in one question."""
        if len(self.query.subjects) * (self.end - self.start) <= _DEVICE_HOURS * HOUR_MS:
            start, end = self.start - LONGEST_MS - MINUTE_MS, self.end + MINUTE_MS
            self.fetched = (start, end, self._raw(start, end, self.query.subjects, self.metrics))

    def _distance(self) -> float:
        """Tell how far samples usually are apart, in milliseconds; of several subjects, the largest."""
        rows = self._raw(self.start, self.end, self.query.subjects[:_PROBED], ())
        gaps = np.diff(rows.time)
        inner = np.diff(rows.subject) == 0
        usual = [np.median(gaps[inner & (rows.subject[1:] == n)]) for n in np.unique(rows.subject[1:][inner])]
        return float(max(usual, default=0.0))

    # -- putting it together

    def _filled(self, base: int, step: int) -> Grid:
        start = self.start // step * step
        steps = max(1, math.ceil(self.end / step) - start // step)
        grid = Grid(len(self.query.subjects), start, step, steps, self.metrics, self.states)
        if base == 0:
            raw = [(grid.start, grid.end)]
        else:
            raw = self._raw_stretches(grid)
            whole = [stretch for stretch in raw if not self.shelf.is_gone(stretch[0])]
            shape = self.shelf.kind.minute if base == MINUTE_MS else self.shelf.kind.quarter
            missing = add_rollups(
                grid,
                self.shelf.tables,
                self.shelf.kind,
                shape,
                self.query.subjects,
                grid.start,
                grid.end,
                outside=whole,
                with_states=self.query.with_states,
                deadline_seconds=self._time_left(),
            )
            self.missing |= dict.fromkeys(missing)
        for begin, end in raw:
            self._add_raw(grid, begin, end)
        return grid

    def _raw_stretches(self, grid: Grid) -> list[tuple[int, int]]:
        """List the hours that rollups do not tell of wholly, joined where they follow each other."""
        hours = {hour for hour in self.dirty if grid.start - HOUR_MS < hour < grid.end}
        for block in self.blocks:
            found = np.unique(block.time // HOUR_MS) * HOUR_MS
            hours |= {int(hour) for hour in found if grid.start - HOUR_MS < hour < grid.end}
        stretches: list[tuple[int, int]] = []
        for hour in sorted(hours):
            if hour + HOUR_MS <= self.now and not self.shelf.is_gone(hour) and self.shelf.is_hurt(hour):
                continue  # rollups know what the file that cannot be read held
            is_next = stretches and stretches[-1][1] == hour
            if is_next and self.shelf.is_gone(hour) == self.shelf.is_gone(stretches[-1][0]):
                stretches[-1] = (stretches[-1][0], hour + HOUR_MS)
            else:
                stretches.append((hour, hour + HOUR_MS))
        return stretches

    def _add_raw(self, grid: Grid, begin: int, end: int) -> None:
        begin, end = max(begin, grid.start), min(end, grid.end)
        piece = max(1, _DEVICE_HOURS // max(1, len(self.query.subjects))) * HOUR_MS
        while begin < end:
            until = min(end, (begin // HOUR_MS * HOUR_MS) + piece)
            margin = LONGEST_MS if self.states else 0
            rows = self._raw(begin - margin, until, self.query.subjects, self.metrics)
            grid.add_rows(rows, states_from=begin, states_until=max(begin, min(until, self.now)))
            begin = until

    def _raw(self, start: int, end: int, keys: tuple[SeriesKey, ...], metrics: tuple[str, ...]) -> Rows:
        if self.fetched is not None and self.fetched[0] <= start and end <= self.fetched[1]:
            rows = self.fetched[2]
            return rows.where((rows.time >= start) & (rows.time < end) & (rows.subject < len(keys)))
        shelf = self.shelf
        part = Part(shelf.kind.raw.name, start / 1000, (end - 1) / 1000)
        pieces: list[Rows] = []
        if keys and shelf.tables.segments(part.table, part.start, part.end):
            rows, missing = ask_rows(
                shelf.tables,
                shelf.kind,
                part,
                keys,
                metrics,
                start,
                end,
                deadline_seconds=self._time_left(),
            )
            pieces.append(rows)
            self.missing |= dict.fromkeys(missing)
        else:
            missing = shelf.tables.missing(part.table, part.start, part.end)
            self.missing |= dict.fromkeys(missing)
        numbers = self.numbers[: len(keys)]
        return joined([*pieces, *(block.of(numbers, start, end) for block in self.blocks)])

    def _time_left(self) -> float:
        left = DEADLINE_SECONDS - (time.monotonic() - self.begun)
        if left <= 0:
            raise TooLong(
                f"history: no result within {DEADLINE_SECONDS:g} s; request a shorter range or less detail"
            )
        return left

    def _miss(self, start: int, end: int, reason: str) -> None:
        self.missing[MissingPart(start=start / 1000, end=end / 1000, reason=reason)] = None


def _sparseness(grid: Grid, *, is_jittery: bool) -> float:
    """Tell how many steps samples are usually apart: with more than one, gaps would be seen where there are none."""
    subject, step = np.nonzero(grid.samples)
    gaps = np.diff(step)[np.diff(subject) == 0]
    if not len(gaps):
        return 1.0
    usual = float(np.median(gaps))
    return 2.0 if usual <= 1 and is_jittery and bool((gaps == 2).any()) else usual
