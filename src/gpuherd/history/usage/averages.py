"""Moving averages with a time constant: what is that long ago counts a third of what is now."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gpuherd.history.batch import Floats

__all__ = ["DAY", "REACH", "TWO_HOURS", "WEEK", "moving_mean", "weights"]

TWO_HOURS, DAY, WEEK = 7_200.0, 86_400.0, 604_800.0
REACH = 6.0
"""How many time constants are looked back: what is older would be a quarter of a percent."""


def weights(start: ArrayLike, end: ArrayLike, now: float, seconds: float) -> Floats:
    """Give what a constant 1 from ``start`` to ``end`` adds to the average at ``now``; nothing for what is to come."""
    first = np.minimum(np.asarray(start, np.float64), now)
    last = np.minimum(np.asarray(end, np.float64), now)
    return np.exp((last - now) / seconds) - np.exp((first - now) / seconds)


def moving_mean(edges: ArrayLike, values: ArrayLike, now: float, seconds: float) -> float | None:
    """Average a step function, NaN where it is unknown; none if nothing of it is known.

    ``edges``: bounds of the steps, one more than there are ``values``. What is unknown does not count, not even as
    nothing.
    """
    bounds, steps = np.asarray(edges, np.float64), np.asarray(values, np.float64)
    weight = weights(bounds[:-1], bounds[1:], now, seconds)
    known = ~np.isnan(steps)
    total = float(weight[known].sum())
    return float((weight[known] * steps[known]).sum()) / total if total > 0 else None
