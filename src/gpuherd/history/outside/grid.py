"""The grid of equal steps that an answer comes on."""

from __future__ import annotations

import math

import numpy as np

from gpuherd.history.batch import Floats
from gpuherd.history.store import MAX_POINTS, Steps

__all__ = ["choose_step", "counted_states", "grid_times", "points"]

_JITTER = 0.95
"""Samples that are said to come every 10 seconds come after 9.9 now and then."""


def points(start: float, end: float, step: float) -> int:
    """Count the steps that a range touches."""
    return max(math.ceil(end / step) - math.floor(start / step), 1)


def choose_step(start: float, end: float, max_points: int, spacing: float | None = None) -> int:
    """Choose the finest step with no more points than asked for, and not finer than the samples are apart."""
    wanted = min(max(max_points, 1), MAX_POINTS)
    for step in Steps:
        if points(start, end, step) <= wanted and (spacing is None or step >= spacing * _JITTER):
            return step
    return Steps[-1]


def grid_times(start: float, end: float, step: float) -> Floats:
    """Give the start of each step that a range touches, from the last on if there are too many."""
    first = math.floor(start / step)
    count = points(start, end, step)
    skipped = max(count - MAX_POINTS, 0)
    return (np.arange(skipped, count, dtype=np.float64) + first) * step


def counted_states(
    times: Floats, codes: Floats, grid: Floats, step: float, states: int, seconds_each: float
) -> Floats:
    """Sum up in which state a device was for how long: each sample stands for the same time, a step is not exceeded."""
    place = np.floor((times - grid[0]) / step).astype(np.int64)
    code = codes.astype(np.int64)
    good = (place >= 0) & (place < len(grid)) & (code >= 0) & (code < states)
    flat = np.bincount(place[good] * states + code[good], minlength=len(grid) * states)
    seconds = flat.reshape(len(grid), states) * seconds_each
    total = seconds.sum(axis=1, keepdims=True)
    scale = np.minimum(1.0, step / np.maximum(total, step))
    scaled: Floats = seconds * scale
    return scaled
