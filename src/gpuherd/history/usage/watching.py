"""When the herd was watched at all: only then nobody on a device means that it was free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats
from gpuherd.history.tables.engine import Columns
from gpuherd.history.usage.slots import SLOT_SECONDS, ceiled, floored

__all__ = ["Watching", "watched_slots"]

LEAST_SECONDS = 30.0
"""A slot of which less was watched was not: a first sample also stands for the time just before it."""


class Watching(Protocol):
    """Who knows when the herd was watched, whether anyone was on it or not."""

    def begins_at(self) -> float | None:
        """From when on, UTC epoch seconds; none if never."""

    def watched(self, edges: Sequence[float]) -> Floats:
        """For how many seconds of each step; ``edges`` are at full quarters of an hour."""


def watched_slots(herd: Watching | None, start: float, end: float, used: Columns) -> tuple[Floats, Floats]:
    """Give the bounds of the slots in a range in which anything was watched; without a herd to ask, it was in all.

    ``used``: slots, short or long, that have use. They were watched even if the herd's numbers are lost.
    """
    first = floored(start)
    count = max(1, round((ceiled(end) - first) / SLOT_SECONDS))
    edges = first + SLOT_SECONDS * np.arange(count + 1.0)
    is_watched = np.ones(count, np.bool_)
    if herd is not None:
        is_watched = np.greater_equal(herd.watched(edges.tolist()), LEAST_SECONDS) | _is_within(edges, used)
    return edges[:-1][is_watched], edges[1:][is_watched]


def _is_within(edges: Floats, slots: Columns) -> NDArray[np.bool_]:
    """Tell of each step whether it is in any of these slots."""
    start = slots["slot"].astype(np.float64)
    change = np.zeros(len(edges) + 1, np.int64)
    np.add.at(change, np.searchsorted(edges, start), 1)
    np.add.at(change, np.searchsorted(edges, start + slots["slot_seconds"].astype(np.float64)), -1)
    is_within: NDArray[np.bool_] = np.cumsum(change)[: len(edges) - 1] > 0
    return is_within
