"""Sums on steps of time: what rollups and answers are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import NOT_JUDGED, Floats
from gpuherd.history.embedded.rows import Rows

__all__ = ["LONGEST_MS", "Grid", "lasting"]

LONGEST_MS = 900_000
"""However seldom a device is sampled, its state is not taken to last longer than this without another sample."""
_ALONE_MS = 30_000
"""How long the state of a single sample lasts: nobody knows how far apart they usually are."""
_PATIENCE = 3
"""A state lasts until the next sample, but no longer than so many times their usual distance."""


class Grid:
    """Subjects × steps: number, sum, least and greatest of each metric, and seconds in each state."""

    def __init__(
        self, subjects: int, start: int, step: int, steps: int, metrics: Sequence[str], states: int
    ) -> None:
        self.start = start
        self.step = step
        """Milliseconds, as all times here."""
        self.steps = steps
        self.subjects = subjects
        self.metrics = tuple(metrics)
        self.samples = np.zeros((subjects, steps), np.int64)
        shape = (len(self.metrics), subjects, steps)
        self.weight = np.zeros(shape)
        """Samples in which each metric is known."""
        self.total = np.zeros(shape)
        self.low = np.full(shape, np.nan)
        self.high = np.full(shape, np.nan)
        self.seconds = np.zeros((subjects, steps, states))

    @property
    def end(self) -> int:
        """Where the last step ends."""
        return self.start + self.step * self.steps

    def add_rows(
        self, rows: Rows, *, states_from: int | None = None, states_until: int | None = None
    ) -> None:
        """Add samples; their subjects are positions. States count within bounds; rows before these say how it began."""
        if self.seconds.shape[2]:
            self._add_states(
                rows,
                self.start if states_from is None else max(states_from, self.start),
                self.end if states_until is None else min(states_until, self.end),
            )
        inside = (rows.time >= self.start) & (rows.time < self.end)
        if states_from is not None:
            inside &= rows.time >= states_from
        if not inside.all():
            rows = rows.where(inside)
        if not len(rows):
            return
        place = rows.subject.astype(np.int64) * self.steps + (rows.time - self.start) // self.step
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        cells = place[starts]
        self.samples.reshape(-1)[cells] += np.diff(starts, append=len(place))
        for number, metric in enumerate(self.metrics):
            column = rows.values.get(metric)
            if column is None:
                continue
            known = ~np.isnan(column)
            is_whole = bool(known.all())
            values = column.astype(np.float64)
            self._add_cells(
                number,
                cells,
                np.diff(starts, append=len(place))
                if is_whole
                else np.add.reduceat(known, starts, dtype=np.int64),
                np.add.reduceat(values if is_whole else np.where(known, values, 0.0), starts),
                np.fmin.reduceat(values, starts),
                np.fmax.reduceat(values, starts),
            )

    def add_rolled(
        self,
        cells: NDArray[np.int64],
        samples: NDArray[np.int64],
        metrics: dict[str, tuple[Floats, Floats, Floats, Floats]],
        states: Sequence[Floats],
    ) -> None:
        """Add sums of shorter steps: of each metric weight, sum, least and greatest.

        ``cells``: subject × steps + step, each once.
        """
        self.samples.reshape(-1)[cells] += samples
        for number, metric in enumerate(self.metrics):
            if metric in metrics:
                self._add_cells(number, cells, *metrics[metric])
        for state, seconds in enumerate(states):
            self.seconds.reshape(-1, self.seconds.shape[2])[cells, state] += np.nan_to_num(seconds)

    def _add_cells(
        self,
        metric: int,
        cells: NDArray[np.int64],
        weight: NDArray[Any],
        total: Floats,
        low: Floats,
        high: Floats,
    ) -> None:
        self.weight[metric].reshape(-1)[cells] += weight
        self.total[metric].reshape(-1)[cells] += total
        lows, highs = self.low[metric].reshape(-1), self.high[metric].reshape(-1)
        lows[cells] = np.fmin(lows[cells], low)
        highs[cells] = np.fmax(highs[cells], high)

    @property
    def mean(self) -> Floats:
        """Mean of each metric; NaN where it is not known."""
        with np.errstate(invalid="ignore"):
            return self.total / self.weight

    def coarser(self, times: int) -> Grid:
        """Give the same on steps that are so many times as long; they must come out even."""
        grid = Grid(
            self.subjects,
            self.start,
            self.step * times,
            self.steps // times,
            self.metrics,
            self.seconds.shape[2],
        )
        shape = (self.subjects, grid.steps, times)
        grid.samples = self.samples.reshape(shape).sum(axis=2)
        grid.weight = self.weight.reshape(-1, *shape).sum(axis=3)
        grid.total = self.total.reshape(-1, *shape).sum(axis=3)
        grid.low = np.fmin.reduce(self.low.reshape(-1, *shape), axis=3)
        grid.high = np.fmax.reduce(self.high.reshape(-1, *shape), axis=3)
        grid.seconds = self.seconds.reshape(*shape, -1).sum(axis=2)
        return grid

    def _add_states(self, rows: Rows, start: int, end: int) -> None:
        begins, ends = lasting(rows, end)
        begins = np.maximum(begins, start)
        judged = (ends > begins) & (rows.state != NOT_JUDGED) & (rows.state < self.seconds.shape[2])
        subject, state = rows.subject[judged].astype(np.int64), rows.state[judged].astype(np.int64)
        begins, ends = begins[judged], ends[judged]
        first, last = (begins - self.start) // self.step, (ends - 1 - self.start) // self.step
        if not len(first):
            return
        if bool((last > first).any()):  # over several steps: one piece in each
            pieces = last - first + 1
            row = np.repeat(np.arange(len(first)), pieces)
            step = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
            edge = self.start + step * self.step
            begins, ends = np.maximum(begins[row], edge), np.minimum(ends[row], edge + self.step)
            subject, state, first = subject[row], state[row], step
        width = self.seconds.shape[2]
        places = (subject * self.steps + first) * width + state
        sums = np.bincount(places, (ends - begins) / 1000.0, self.seconds.size)
        self.seconds += sums.reshape(self.seconds.shape)


def lasting(rows: Rows, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tell from when to when each sample stands for its subject's state, at most until ``end``."""
    count = len(rows)
    if not count:
        return rows.time, rows.time
    starts = np.flatnonzero(np.diff(rows.subject, prepend=-1))
    sizes = np.diff(starts, append=count)
    is_last = np.zeros(count, np.bool_)
    is_last[starts + sizes - 1] = True
    following = np.append(rows.time[1:], 0)
    following[is_last] = np.maximum(end, rows.time[is_last])
    gaps = following - rows.time
    inner = np.where(is_last, np.iinfo(np.int64).max, gaps)
    least = np.minimum.reduceat(inner, starts)
    greatest = np.maximum.reduceat(gaps, starts)
    limit = np.where(sizes > 1, greatest, _ALONE_MS)
    # If no gap is much longer than the shortest, none is cut whatever the usual one is.
    for group in np.flatnonzero((sizes > 1) & (greatest > _PATIENCE * least)):
        own = gaps[starts[group] : starts[group] + sizes[group] - 1]
        limit[group] = _PATIENCE * float(np.median(own))
    lasts = np.minimum(gaps, np.repeat(np.minimum(limit, LONGEST_MS), sizes))
    return rows.time, np.minimum(rows.time + lasts, end)
