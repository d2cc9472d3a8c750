"""Use is summed up in slots of a quarter of an hour, and in hours when it is old."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats

__all__ = ["HOUR_SECONDS", "SLOT_SECONDS", "Pieces", "ceiled", "cut", "floored"]

SLOT_SECONDS = 900
HOUR_SECONDS = 3600


def floored(time: float, seconds: int = SLOT_SECONDS) -> float:
    """Give the start of the slot that a moment is in."""
    return time // seconds * seconds


def ceiled(time: float, seconds: int = SLOT_SECONDS) -> float:
    """Give the end of the slot that a moment is in; itself, if it is a bound."""
    return -(-time // seconds) * seconds


class Pieces(NamedTuple):
    """Stretches of time cut at the bounds of slots."""

    source: NDArray[np.int64]
    """Of each piece, the stretch it is from."""
    slot: NDArray[np.int64]
    first: Floats
    last: Floats


def cut(start: Floats, end: Floats) -> Pieces:
    """Cut stretches at the bounds of slots; one that ends at a bound is in the slot before, unless it has no length."""
    first_slot = np.floor_divide(start, SLOT_SECONDS).astype(np.int64)
    last_slot = np.ceil(end / SLOT_SECONDS).astype(np.int64) - 1
    last_slot = np.maximum(last_slot, first_slot)
    counts = last_slot - first_slot + 1
    source = np.arange(len(start))
    if counts.size and counts.max() > 1:
        source = np.repeat(source, counts)
        offset = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        slot = (first_slot[source] + offset) * SLOT_SECONDS
        return Pieces(
            source, slot, np.maximum(start[source], slot), np.minimum(end[source], slot + SLOT_SECONDS)
        )
    return Pieces(source, first_slot * SLOT_SECONDS, start, end)
