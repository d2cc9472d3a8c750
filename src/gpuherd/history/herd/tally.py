"""Sums over the herd, of samples as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, NOT_JUDGED, Floats, Samples, SeriesKey
from gpuherd.history.herd.shapes import CLASSES, SUMS
from gpuherd.history.herd.stretches import FIRST_SECONDS, Covered, Stretches
from gpuherd.history.places import Places
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import DISTRIBUTION_EDGES

__all__ = ["MINUTE_SECONDS", "OTHER_TYPES", "Sums", "Tally", "added", "measures_of"]

MINUTE_SECONDS = 60
MOST_TYPES = 256
"""Types beyond so many count together: nodes may call theirs whatever they like."""
OTHER_TYPES = "other"
MOST_FIRSTS = 2**15
"""Devices of which the first sample waits for the second; the oldest is given up for another."""
MOST_DEVICES = 2**18
"""With more than this, those that were not heard of for longest are forgotten."""
_UTILIZATION = DEVICE_METRICS.index("utilization_gpu")
_POWER = DEVICE_METRICS.index("power_watts")
_MEMORY = DEVICE_METRICS.index("memory_used_bytes")
_STATES = len(DEVICE_STATES)
_IN_USE = (DEVICE_STATES.index("busy"), DEVICE_STATES.index("held"))
_FIRST_CLASS = SUMS.index("in_use_0_seconds")
_FIRST_GPU = SUMS.index("gpu_free")
_IS_POWER = np.array([name.startswith("power_") for name in SUMS], np.float64)
_IS_COVERED = np.array([name == "covered_seconds" for name in SUMS], np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """A row for each minute and type that there was something of; may hold the same one several times."""

    minute: NDArray[np.int64]
    """Epoch seconds."""
    type: NDArray[np.int32]
    """Number of the type."""
    values: Floats
    """Rows × SUMS."""

    def __len__(self) -> int:
        return len(self.minute)


_Piece = tuple[NDArray[np.int64], Floats, Floats, Floats]
"""Stretches of time: of which type, from when, until when, and what is added in each second."""


class _First(NamedTuple):
    time: float
    type: int
    measures: Floats


class Tally:
    """Knows when each device was seen last, so that a sample can stand for the time since then.

    A device that is forgotten begins anew: its next sample stands for as long as the one after it.
    """

    def __init__(self, most_devices: int = MOST_DEVICES) -> None:
        self._most_devices = most_devices
        self.types: list[str] = [""]
        """The first is that of GPUs which are split."""
        self._type_numbers: dict[str, int] = {"": 0}
        self._devices: dict[tuple[str, str], int] = {}
        self._places = Places(self._place)
        self._stretches = Stretches()
        self._firsts: dict[int, _First] = {}
        """Of devices seen once: it is not known yet for how long that sample stands."""
        self._covered: dict[int, Covered] = {}
        """Of each type, whichever of its devices it was."""
        self._heard = np.empty(0, np.int64)
        """In which addition a device was heard of last."""
        self._additions = 0

    @property
    def devices(self) -> int:
        """How many it remembers."""
        return len(self._devices)

    def add(self, samples: Samples) -> Sums:
        """Sum up samples of devices. A GPU without a type is partitioned: its slices count instead, but for its power.

        Slices do not know what they draw.
        """
        if len(self._devices) > self._most_devices:
            self._forget()
        numbers, types = self._places.of(samples)
        device = numbers[samples.subject] if len(numbers) else np.empty(0, np.int64)
        order = np.lexsort((samples.time, device))
        device, time = device[order], samples.time[order]
        if not len(device):
            return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
        self._additions += 1
        self._heard[device] = self._additions
        subject = samples.subject[order]
        measures = measures_of(
            samples.values[order],
            samples.state[order],
            samples.memory_total[subject],
            None if samples.share is None else samples.share[subject],
        )
        row, start, end = self._stretches.of(device, time)
        own = types[subject]
        measures[own == 0] *= _IS_POWER
        pieces = [(own[row], start, end, measures[row]), *self._first_ones(device, time, own, measures)]
        pieces += self._newly_covered(pieces)
        return _by_minute(*(np.concatenate(column) for column in zip(*pieces, strict=True)))

    def _first_ones(
        self, device: NDArray[np.int64], time: Floats, types: NDArray[np.int64], measures: Floats
    ) -> Iterator[_Piece]:
        """Hold first samples back until there is a second, and give those of which there is one now."""
        rows = np.flatnonzero(np.append(True, device[1:] != device[:-1]))
        usual = self._stretches.usual[device[rows]]
        if self._firsts:
            for number, seconds in zip(device[rows].tolist(), usual.tolist(), strict=True):
                first = self._firsts.pop(number, None) if seconds > 0 else None
                if first is not None and seconds <= FIRST_SECONDS:
                    for start, end in self._stretches.fill(number, first.time - seconds, first.time):
                        yield (
                            np.array([first.type]),
                            np.array([start]),
                            np.array([end]),
                            first.measures[np.newaxis],
                        )
        for row in rows[np.isnan(usual)].tolist():
            if len(self._firsts) >= MOST_FIRSTS:
                del self._firsts[next(iter(self._firsts))]
            self._firsts[int(device[row])] = _First(float(time[row]), int(types[row]), measures[row].copy())

    def _newly_covered(self, pieces: list[_Piece]) -> list[_Piece]:
        """Tell of which time something is known that nothing was known of before."""
        types, starts, ends = (np.concatenate([piece[place] for piece in pieces]) for place in range(3))
        covered = []
        for number in np.unique(types).tolist():
            chosen = types == number
            fresh = self._covered.setdefault(number, Covered()).add(starts[chosen], ends[chosen])
            if fresh:
                edges = np.array(fresh)
                covered.append(
                    (
                        np.full(len(fresh), number),
                        edges[:, 0],
                        edges[:, 1],
                        np.tile(_IS_COVERED, (len(fresh), 1)),
                    )
                )
        return covered

    def _place(self, key: SeriesKey) -> tuple[int, int]:
        """Give the numbers of a device and its type."""
        return self._number(key.node_id, key.uuid), self._type(key.type)

    def _number(self, node_id: str, uuid: str) -> int:
        number = self._devices.setdefault((node_id, uuid), len(self._devices))
        if number >= len(self._heard):
            self._heard = np.concatenate((self._heard, np.zeros(max(64, len(self._heard)), np.int64)))
            self._stretches.make_room(len(self._heard))
        return number

    def _forget(self) -> None:
        """Forget the quarter of the devices that were not heard of for longest, and number the others anew."""
        order = np.argsort(self._heard[: len(self._devices)], kind="stable")
        kept = np.sort(order[len(order) - self._most_devices // 4 * 3 :])
        identities = list(self._devices)  # in order of their numbers
        self._devices = {identities[number]: place for place, number in enumerate(kept)}
        self._stretches.keep(kept)
        self._firsts = {
            place: self._firsts[number]
            for place, number in enumerate(kept.tolist())
            if number in self._firsts
        }
        self._heard = self._heard[kept]
        self._places.forget()

    def _type(self, name: str) -> int:
        if len(self.types) >= MOST_TYPES and name not in self._type_numbers:
            name = OTHER_TYPES
        number = self._type_numbers.setdefault(name, len(self.types))
        if number == len(self.types):
            self.types.append(name)
        return number


def measures_of(
    values: Floats, state: NDArray[np.uint8], memory_total: Floats, share: Floats | None = None
) -> Floats:
    """Give what each sample adds in a second. ``share``: what part of a GPU it is of; none: all of one."""
    rows = len(values)
    parts = np.ones(rows) if share is None else share
    measures = np.zeros((rows, len(SUMS)))
    place = np.where(state == NOT_JUDGED, _STATES, np.minimum(state, _STATES - 1))
    measures[np.arange(rows), place] = 1.0
    measures[np.arange(rows), _FIRST_GPU + place] = parts
    work, power, used = values[:, _UTILIZATION], values[:, _POWER], values[:, _MEMORY]
    for name, known_name, column in (
        ("utilization_seconds", "utilization_known_seconds", work),
        ("power_joules", "power_known_seconds", power),
    ):
        measures[:, SUMS.index(name)] = np.nan_to_num(column)
        measures[:, SUMS.index(known_name)] = ~np.isnan(column)
    is_known = ~np.isnan(used) & (memory_total > 0)
    measures[:, SUMS.index("memory_used_byte_seconds")] = np.where(is_known, used, 0.0)
    measures[:, SUMS.index("memory_total_byte_seconds")] = np.where(is_known, memory_total, 0.0)
    in_use = np.flatnonzero(np.isin(state, _IN_USE) & ~np.isnan(work))
    number = np.clip(np.searchsorted(DISTRIBUTION_EDGES, work[in_use], side="right") - 1, 0, CLASSES - 1)
    measures[in_use, _FIRST_CLASS + number] = parts[in_use]
    return measures


def _by_minute(type_number: NDArray[np.int64], start: Floats, end: Floats, measures: Floats) -> Sums:
    if not len(start):
        return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
    first = np.floor(start / MINUTE_SECONDS).astype(np.int64)
    last = np.maximum(first, np.ceil(end / MINUTE_SECONDS).astype(np.int64) - 1)
    pieces = last - first + 1
    row = np.repeat(np.arange(len(first)), pieces)
    minute = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    edge = minute * MINUTE_SECONDS
    seconds = np.maximum(0.0, np.minimum(end[row], edge + MINUTE_SECONDS) - np.maximum(start[row], edge))
    kinds = int(type_number.max()) + 1
    cells, place = np.unique((minute - first.min()) * kinds + type_number[row], return_inverse=True)
    values = _summed(measures[row] * seconds[:, np.newaxis], place, len(cells))
    edges = (cells // kinds + first.min()) * MINUTE_SECONDS
    return Sums(edges, (cells % kinds).astype(np.int32), values)


def _summed(values: Floats, place: NDArray[np.int64], cells: int) -> Floats:
    """Add up rows by where they belong; every cell has some."""
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(cells))
    sums: Floats = np.add.reduceat(values[order], starts, axis=0) if cells else np.zeros((0, values.shape[1]))
    return sums


def added(pieces: list[Sums]) -> Sums:
    """Add up what is of the same minute and type; sorted by both."""
    if not pieces:
        return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
    minute = np.concatenate([piece.minute for piece in pieces])
    type_number = np.concatenate([piece.type for piece in pieces]).astype(np.int64)
    if not len(minute):
        return pieces[0]
    kinds = int(type_number.max()) + 1
    cells, place = np.unique(minute * kinds + type_number, return_inverse=True)
    values = _summed(np.concatenate([piece.values for piece in pieces]), place, len(cells))
    return Sums(cells // kinds, (cells % kinds).astype(np.int32), values)
