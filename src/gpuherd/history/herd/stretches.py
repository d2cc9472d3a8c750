"""For which time a sample stands: none of it twice, whatever comes late or again."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats

__all__ = ["FIRST_SECONDS", "Covered", "Stretches"]

LONGEST_SECONDS = 4000.0
"""However seldom a device is sampled, a sample does not stand for longer than this: an hour, and some delay."""
FIRST_SECONDS = 900.0
"""If the first two samples of a device are farther apart, that may as well be a gap: it is not counted."""
MAX_GAPS = 8
"""Of one device; the oldest is given up for a newer one."""
MOST_WITH_GAPS = 2**15
"""With gaps in the time of more devices than this, those of the device that had its first longest ago are given up."""
MAX_COVERED = 1024
_PATIENCE = 3.0
"""A sample stands for the time since the one before; if that is so many times the usual, only for the usual."""
_TOUCH_SECONDS = 1e-3
"""What is no farther apart than this is not apart."""

Gap = tuple[float, float]


class Stretches:
    """Knows what time of each device has been counted: all from its first to its last sample but for some gaps."""

    def __init__(self) -> None:
        self._first = np.empty(0)
        """From when on a device's time is counted; all before is open to what comes late."""
        self._last = np.empty(0)
        """Time of the latest sample of each device."""
        self._late = np.empty(0)
        """Time of the latest of those that came after a later one."""
        self.usual = np.empty(0)
        """How far a device's samples usually are apart; NaN is unknown."""
        self._gaps: dict[int, list[Gap]] = {}

    def make_room(self, devices: int) -> None:
        """Make room for devices of these numbers."""
        if devices > len(self._last):
            more = np.full(max(64, devices), np.nan)
            self._first, self._last, self._late, self.usual = (
                np.concatenate((each, more)) for each in (self._first, self._last, self._late, self.usual)
            )

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Keep only these devices, numbered anew in this order."""
        self._first, self._last, self._late, self.usual = (
            each[numbers] for each in (self._first, self._last, self._late, self.usual)
        )
        self._gaps = {
            place: self._gaps[number] for place, number in enumerate(numbers.tolist()) if number in self._gaps
        }

    def of(self, device: NDArray[np.int64], time: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Give the stretches of time that samples stand for: whose row, from when, until when.

        Rows are sorted by device and time. A late sample has only what is still open of its stretch.
        """
        is_late = time <= self._last[device]  # false if it was never seen
        before = np.where(is_late, self._late[device], self._last[device])
        follows = np.zeros(len(device), np.bool_)
        follows[1:] = (device[1:] == device[:-1]) & (is_late[1:] == is_late[:-1])
        before[1:][follows[1:]] = time[:-1][follows[1:]]
        start = time - self._seconds(device, time - before)
        is_first = np.isnan(self._last[device]) & ~follows
        self._first[device[is_first]] = start[is_first]
        for store, rows in ((self._last, ~is_late), (self._late, is_late)):
            store[device[rows]] = time[rows]  # sorted by time: the last one stays
        for row in np.flatnonzero(~is_late & (start - before > _TOUCH_SECONDS)).tolist():
            gaps = self._gaps_of(int(device[row]))
            gaps.append((float(before[row]), float(start[row])))
            del gaps[:-MAX_GAPS]
        on_time = np.flatnonzero(~is_late & (time > start))
        late, starts, ends = [], [], []
        for row in np.flatnonzero(is_late & (time > start)).tolist():
            for begin, end in self.fill(int(device[row]), float(start[row]), float(time[row])):
                late.append(row)
                starts.append(begin)
                ends.append(end)
        return (
            np.concatenate((on_time, np.array(late, np.int64))),
            np.concatenate((start[on_time], np.array(starts, np.float64))),
            np.concatenate((time[on_time], np.array(ends, np.float64))),
        )

    def fill(self, device: int, start: float, end: float) -> list[Gap]:
        """Give what is still open of a stretch of a device's time; it is not open any more."""
        filled, left = [], []
        for gap in self._gaps_of(device):
            begin, until = max(gap[0], start), min(gap[1], end)
            if begin >= until:
                left.append(gap)
                continue
            filled.append((begin, until))
            left += [
                part for part in ((gap[0], begin), (until, gap[1])) if part[1] - part[0] > _TOUCH_SECONDS
            ]
        if filled:
            self._gaps[device] = left[-MAX_GAPS:]
        return filled

    def _gaps_of(self, device: int) -> list[Gap]:
        gaps = self._gaps.get(device)
        if gaps is None:
            if len(self._gaps) >= MOST_WITH_GAPS:
                given_up = next(iter(self._gaps))
                del self._gaps[given_up]
                self._first[given_up] = -math.inf  # nothing is open any more
            gaps = self._gaps[device] = [(-math.inf, float(self._first[device]))]
        return gaps

    def _seconds(self, device: NDArray[np.int64], distance: Floats) -> Floats:
        """Tell how long each sample stands for, and learn what is usual."""
        distance = distance.copy()
        distance[~(distance >= 0) | (distance > LONGEST_SECONDS)] = np.nan  # the first, or time ran backwards
        is_repeated = distance == 0
        known = np.flatnonzero(distance > 0)
        firsts = known[::-1]  # of several the first remains
        guess = self.usual.copy()
        is_new = np.isnan(guess[device[firsts]])
        guess[device[firsts[is_new]]] = distance[firsts[is_new]]
        usual = guess[device]
        with np.errstate(invalid="ignore"):
            seconds = np.where(distance <= _PATIENCE * usual, distance, usual)
            is_doubtful = np.isnan(self.usual[device]) & (usual > FIRST_SECONDS)
        if is_doubtful.any():
            is_doubtful[np.setdiff1d(known, known[np.unique(device[known], return_index=True)[1]])] = False
        latest = guess.copy()
        latest[device[known]] = distance[known]
        # Slowly: one lost sample does not make a longer interval.
        self.usual = np.where(latest > guess, np.minimum(latest, 1.3 * guess), (guess + latest) / 2)
        seconds[is_repeated | is_doubtful] = 0.0
        return np.nan_to_num(seconds)


class Covered:
    """Of which time anything is known, as a few stretches; the oldest are forgotten."""

    def __init__(self) -> None:
        self._starts: list[float] = []
        self._ends: list[float] = []

    def add(self, starts: Floats, ends: Floats) -> list[Gap]:
        """Cover stretches; gives what was not covered before."""
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        reach = np.maximum.accumulate(ends[order])
        heads = np.flatnonzero(np.append(True, starts[1:] > reach[:-1] + _TOUCH_SECONDS))
        fresh: list[Gap] = []
        for start, end in zip(
            starts[heads].tolist(), reach[np.append(heads[1:], len(starts)) - 1].tolist(), strict=True
        ):
            fresh += self._cover(start, end)
        return fresh

    def _cover(self, start: float, end: float) -> Sequence[Gap]:
        first = last = bisect_left(self._ends, start - _TOUCH_SECONDS)
        fresh, reached = [], start
        while last < len(self._starts) and self._starts[last] <= end + _TOUCH_SECONDS:
            if self._starts[last] > reached:
                fresh.append((reached, self._starts[last]))
            reached = max(reached, self._ends[last])
            last += 1
        if reached < end:
            fresh.append((reached, end))
        if last > first:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
        del self._starts[:-MAX_COVERED], self._ends[:-MAX_COVERED]
        return fresh
