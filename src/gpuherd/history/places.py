"""Own numbers of subjects, found by those that samples come with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Numbering, Samples, SeriesKey

__all__ = ["Places"]

Pairs = NDArray[np.int64]
MOST_KNOWN = 2**18
"""With more keys than this they are asked for again: a device that changes its type has many."""


class Places:
    """Two numbers of each subject, asked for once, or again after so many others. In one thread at a time."""

    def __init__(self, find: Callable[[SeriesKey], tuple[int, int]]) -> None:
        self._find = find
        self._known: dict[SeriesKey, tuple[int, int]] = {}
        self._numbering: Numbering | None = None
        self._table = np.empty((0, 2), np.int64)
        self._is_filled = np.empty(0, np.bool_)

    def of(self, samples: Samples) -> tuple[Pairs, Pairs]:
        """Give both numbers of each of the samples' keys."""
        numbers = samples.numbers
        if samples.numbering is None or numbers is None:
            pairs = np.array([self._pair(key) for key in samples.keys], np.int64).reshape(-1, 2)
            return pairs[:, 0], pairs[:, 1]
        if samples.numbering is not self._numbering:
            self._numbering, self._table = samples.numbering, np.empty((0, 2), np.int64)
            self._is_filled = np.empty(0, np.bool_)
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._table):
            more = 2 * most - len(self._table)
            self._table = np.concatenate((self._table, np.zeros((more, 2), np.int64)))
            self._is_filled = np.concatenate((self._is_filled, np.zeros(more, np.bool_)))
        for place in np.flatnonzero(~self._is_filled[numbers]):
            self._table[numbers[place]] = self._pair(samples.keys[place])
            self._is_filled[numbers[place]] = True
        pairs = self._table[numbers]
        return pairs[:, 0], pairs[:, 1]

    def forget(self) -> None:
        """Ask for all of them again: their numbers are not what they were."""
        self._known.clear()
        self._is_filled[:] = False

    def _pair(self, key: SeriesKey) -> tuple[int, int]:
        pair = self._known.get(key)
        if pair is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            pair = self._known[key] = self._find(key)
        return pair
