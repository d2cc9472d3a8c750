"""Use that is not in a file of its own yet: a page for each file of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import USE_MEASURES, Floats, SessionKey, Uses
from gpuherd.history.usage.counting import added

__all__ = ["Page", "Rows", "joined_rows"]

MAX_SLOTS = 8
"""Slots whose rows are looked for, to add to them; what is further back makes rows of its own."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Stays within slots; the same may be in several rows, which add up."""

    keys: tuple[SessionKey, ...]
    slot: NDArray[np.int64]
    first: Floats
    last: Floats
    measures: Floats

    def __len__(self) -> int:
        return len(self.keys)


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Put rows one after the other."""
    if not parts:
        nothing = np.empty(0)
        return Rows((), np.empty(0, np.int64), nothing, nothing, np.empty((0, len(USE_MEASURES))))
    return Rows(
        tuple(key for part in parts for key in part.keys),
        np.concatenate([part.slot for part in parts]),
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
        np.concatenate([part.measures for part in parts]),
    )


class Page:
    """Rows that grow. Stays go by their numbers; of each slot there is an array that says where a number's row is."""

    def __init__(self) -> None:
        self._count = 0
        self._keys: list[SessionKey] = []
        self._numbers = np.empty(0, np.int64)
        self._slot = np.empty(0, np.int64)
        self._first = np.empty(0)
        self._last = np.empty(0)
        self._measures = np.empty((0, len(USE_MEASURES)))
        self._places: dict[int, NDArray[np.int64]] = {}
        self.commands: dict[SessionKey, tuple[str, float]] = {}
        """Command lines and when they were seen."""

    def __len__(self) -> int:
        return self._count

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of all stays on the page, some of them several times."""
        return self._numbers[: self._count]

    def add(self, uses: Uses, numbers: NDArray[np.int64], capacity: int) -> None:
        """Add what was counted. ``numbers``: of each key; all are below ``capacity``."""
        number = numbers[uses.session]
        slots = np.unique(uses.slot)
        for slot in slots[-MAX_SLOTS:].tolist():
            rows = np.flatnonzero(uses.slot == slot)
            self._add_slot(slot, rows, uses, number[rows], capacity)
        if len(slots) > MAX_SLOTS:
            older = np.flatnonzero(uses.slot < slots[-MAX_SLOTS])
            self._append(older, uses, number[older])
        if any(uses.commands):
            for key, command, last in zip(uses.keys, uses.commands, _last_of(uses), strict=True):
                if command is not None:
                    self.commands[key] = (command, last)

    def rename(self, keys: dict[SessionKey, SessionKey]) -> None:
        """Give stays other names."""
        self._keys = [keys.get(key, key) for key in self._keys]
        for key in keys:
            self.commands.pop(key, None)

    def rows(self) -> Rows:
        """Give a copy of all rows."""
        count = self._count
        return Rows(
            tuple(self._keys),
            self._slot[:count].copy(),
            self._first[:count].copy(),
            self._last[:count].copy(),
            self._measures[:count].copy(),
        )

    def _add_slot(
        self,
        slot: int,
        rows: NDArray[np.int64],
        uses: Uses,
        number: NDArray[np.int64],
        capacity: int,
    ) -> None:
        places = self._places.get(slot)
        if places is None or len(places) < capacity:
            grown = np.full(capacity + capacity // 4 + 64, -1, np.int64)
            if places is not None:
                grown[: len(places)] = places
            elif len(self._places) >= MAX_SLOTS:
                del self._places[min(self._places)]
            places = self._places[slot] = grown
        place = places[number]
        is_new = place < 0
        if is_new.any():
            new = rows[is_new]
            places[number[is_new]] = np.arange(self._count, self._count + len(new))
            self._append(new, uses, number[is_new])
            if is_new.all():
                return
            rows, place = rows[~is_new], place[~is_new]
        self._first[place] = np.minimum(self._first[place], uses.first[rows])
        self._last[place] = np.maximum(self._last[place], uses.last[rows])
        self._measures[place] = added(self._measures[place], uses.measures[rows])

    def _append(self, rows: NDArray[np.int64], uses: Uses, number: NDArray[np.int64]) -> None:
        start, self._count = self._count, self._count + len(rows)
        if self._count > len(self._slot):
            self._grow(max(2 * len(self._slot), self._count, 256))
        own = slice(start, self._count)
        self._numbers[own] = number
        self._slot[own], self._first[own], self._last[own] = (
            uses.slot[rows],
            uses.first[rows],
            uses.last[rows],
        )
        self._measures[own] = uses.measures[rows]
        self._keys += [uses.keys[place] for place in uses.session[rows].tolist()]

    def _grow(self, size: int) -> None:
        for name in ("_numbers", "_slot", "_first", "_last", "_measures"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)


def _last_of(uses: Uses) -> list[float]:
    last = np.full(len(uses.keys), -np.inf)
    np.maximum.at(last, uses.session, uses.last)
    return last.tolist()
