"""Sums over the herd, of samples as they come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, NOT_JUDGED, Floats, Samples, SeriesKey
from gpuherd.history.herd.shapes import CLASSES, SUMS
from gpuherd.history.places import Places
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import DISTRIBUTION_EDGES

__all__ = ["MINUTE_SECONDS", "OTHER_TYPES", "Sums", "Tally", "added", "measures_of"]

MINUTE_SECONDS = 60
LONGEST_SECONDS = 900.0
"""However seldom a device is sampled, a sample does not stand for longer than this."""
MOST_TYPES = 256
"""Types beyond so many count together: nodes may call theirs whatever they like."""
OTHER_TYPES = "other"
MOST_DEVICES = 2**18
"""With more than this, those that were not heard of for longest are forgotten."""
_PATIENCE = 3.0
"""A sample stands for the time since the one before; if that is so many times the usual, only for the usual."""
_UTILIZATION = DEVICE_METRICS.index("utilization_gpu")
_POWER = DEVICE_METRICS.index("power_watts")
_MEMORY = DEVICE_METRICS.index("memory_used_bytes")
_STATES = len(DEVICE_STATES)
_IN_USE = (DEVICE_STATES.index("busy"), DEVICE_STATES.index("held"))
_FIRST_CLASS = SUMS.index("in_use_0_seconds")


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


class Tally:
    """Knows when each device was seen last, so that a sample can stand for the time since then.

    A device that is forgotten begins anew: its next sample stands for no time.
    """

    def __init__(self, most_devices: int = MOST_DEVICES) -> None:
        self._most_devices = most_devices
        self.types: list[str] = []
        self._type_numbers: dict[str, int] = {}
        self._devices: dict[tuple[str, str], int] = {}
        self._places = Places(self._place)
        self._last = np.empty(0)
        """Time of the latest sample of each device."""
        self._late = np.empty(0)
        """Time of the latest of those that came after a later one."""
        self._usual = np.empty(0)
        """How far a device's samples usually are apart; NaN is unknown."""
        self._heard = np.empty(0, np.int64)
        """In which addition a device was heard of last."""
        self._additions = 0

    @property
    def devices(self) -> int:
        """How many it remembers."""
        return len(self._devices)

    def add(self, samples: Samples) -> Sums:
        """Sum up samples of devices. A GPU without a type is partitioned: its slices count instead."""
        if len(self._devices) > self._most_devices:
            self._forget()
        numbers, types = self._places.of(samples)
        device = numbers[samples.subject] if len(numbers) else np.empty(0, np.int64)
        chosen = np.flatnonzero(device >= 0)
        order = chosen[np.lexsort((samples.time[chosen], device[chosen]))]
        device, time = device[order], samples.time[order]
        if not len(device):
            return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
        self._additions += 1
        self._heard[device] = self._additions
        seconds = self._seconds(device, time)
        subject = samples.subject[order]
        measures = measures_of(samples.values[order], samples.state[order], samples.memory_total[subject])
        return _by_minute(device, types[subject], time - seconds, time, measures)

    def _place(self, key: SeriesKey) -> tuple[int, int]:
        """Give the numbers of a device and its type, below zero for one that does not count."""
        return (self._number(key.node_id, key.uuid), self._type(key.type)) if key.type else (-1, -1)

    def _number(self, node_id: str, uuid: str) -> int:
        number = self._devices.setdefault((node_id, uuid), len(self._devices))
        if number >= len(self._last):
            more = np.full(max(64, len(self._last)), np.nan)
            self._last, self._late, self._usual = (
                np.concatenate((each, more)) for each in (self._last, self._late, self._usual)
            )
            self._heard = np.concatenate((self._heard, np.zeros(len(more), np.int64)))
        return number

    def _forget(self) -> None:
        """Forget the quarter of the devices that were not heard of for longest, and number the others anew."""
        order = np.argsort(self._heard[: len(self._devices)], kind="stable")
        kept = np.sort(order[len(order) - self._most_devices // 4 * 3 :])
        identities = list(self._devices)  # in order of their numbers
        self._devices = {identities[number]: place for place, number in enumerate(kept)}
        self._last, self._late, self._usual = (each[kept] for each in (self._last, self._late, self._usual))
        self._heard = self._heard[kept]
        self._places.forget()

    def _type(self, name: str) -> int:
        if len(self.types) >= MOST_TYPES and name not in self._type_numbers:
            name = OTHER_TYPES
        number = self._type_numbers.setdefault(name, len(self.types))
        if number == len(self.types):
            self.types.append(name)
        return number

    def _seconds(self, device: NDArray[np.int64], time: Floats) -> Floats:
        """Tell how long each sample stands for; rows are sorted by device and time."""
        is_late = time <= self._last[device]  # false if it was never seen
        before = np.where(is_late, self._late[device], self._last[device])
        follows = np.zeros(len(device), np.bool_)
        follows[1:] = (device[1:] == device[:-1]) & (is_late[1:] == is_late[:-1])
        before[1:][follows[1:]] = time[:-1][follows[1:]]
        distance = time - before
        distance[~(distance >= 0) | (distance > LONGEST_SECONDS)] = np.nan  # the first, or time ran backwards
        is_repeated = distance == 0
        known = np.flatnonzero(distance > 0)
        firsts = known[::-1]  # of several the first remains
        guess = self._usual.copy()
        is_new = np.isnan(guess[device[firsts]])
        guess[device[firsts[is_new]]] = distance[firsts[is_new]]
        usual = guess[device]
        with np.errstate(invalid="ignore"):
            seconds = np.where(distance <= _PATIENCE * usual, distance, usual)
        latest = guess.copy()
        latest[device[known]] = distance[known]
        # Slowly: one lost sample does not make a longer interval.
        self._usual = np.where(latest > guess, np.minimum(latest, 1.3 * guess), (guess + latest) / 2)
        for store, rows in ((self._last, ~is_late), (self._late, is_late)):
            store[device[rows]] = time[rows]  # sorted by time: the last one stays
        seconds[is_repeated] = 0.0
        return np.nan_to_num(seconds)


def measures_of(values: Floats, state: NDArray[np.uint8], memory_total: Floats) -> Floats:
    """Give what each sample adds in a second."""
    rows = len(values)
    measures = np.zeros((rows, len(SUMS)))
    place = np.where(state == NOT_JUDGED, _STATES, np.minimum(state, _STATES - 1))
    measures[np.arange(rows), place] = 1.0
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
    measures[in_use, _FIRST_CLASS + number] = 1.0
    return measures


def _by_minute(
    device: NDArray[np.int64], type_number: NDArray[np.int64], start: Floats, end: Floats, measures: Floats
) -> Sums:
    first = np.floor(start / MINUTE_SECONDS).astype(np.int64)
    last = np.maximum(first, np.ceil(end / MINUTE_SECONDS).astype(np.int64) - 1)
    pieces = last - first + 1
    row = np.repeat(np.arange(len(first)), pieces)
    minute = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    edge = minute * MINUTE_SECONDS
    seconds = np.maximum(0.0, np.minimum(end[row], edge + MINUTE_SECONDS) - np.maximum(start[row], edge))
    # How long anything was known of: of each minute, the device that was seen longest.
    kinds, devices = int(type_number.max()) + 1, int(device.max()) + 1
    cell = (minute - first.min()) * kinds + type_number[row]
    own, own_place = np.unique(cell * devices + device[row], return_inverse=True)
    seen = np.bincount(own_place, seconds)
    cells, place = np.unique(own // devices, return_inverse=True)
    covered = np.zeros(len(cells))
    np.maximum.at(covered, place, seen)
    values = _summed(measures[row] * seconds[:, np.newaxis], place[own_place], len(cells))
    values[:, SUMS.index("covered_seconds")] = covered
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
