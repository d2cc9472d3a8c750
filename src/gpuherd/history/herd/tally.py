"""Sums over the herd, of samples as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, NOT_JUDGED, Floats, Samples, SeriesKey, Unsampled
from gpuherd.history.herd.shapes import CLASSES, SUMS
from gpuherd.history.herd.stretches import FIRST_SECONDS, Covered, Stretches
from gpuherd.history.places import Places
from gpuherd.model.devices import DEVICE_STATES, is_worldwide
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
_MEASURED = [DEVICE_METRICS.index(name) for name in ("utilization_gpu", "power_watts", "memory_used_bytes")]
_STATES = len(DEVICE_STATES)
_PLACE_OF_STATE = np.minimum(np.arange(256), _STATES - 1)
_PLACE_OF_STATE[NOT_JUDGED] = _STATES
_IS_IN_USE = np.isin(np.arange(256), (DEVICE_STATES.index("busy"), DEVICE_STATES.index("held")))
_WORK = SUMS.index("utilization_seconds")
_JOULES = SUMS.index("power_joules")
_BYTES = SUMS.index("memory_used_byte_seconds")
"""Behind each of these is how long, or of how much, it was known."""
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


_Piece = tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64]]
"""Stretches of time: of which type, from when, until when, and where it says what is added in each second."""


class _Heard(NamedTuple):
    """Samples sorted by device and time."""

    device: NDArray[np.int64]
    time: Floats
    type: NDArray[np.int64]
    values: Floats
    """Rows × _MEASURED."""
    state: NDArray[np.uint8]
    memory_total: Floats
    share: Floats


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

    def add(self, *batches: Samples) -> Sums:
        """Sum up samples of devices, those of each batch after those of the ones before it.

        A GPU without a type is partitioned: its slices count instead, but for its power, which they do not know. What
        can be done for all batches at once is: much of it takes as long for ten samples as for a thousand.
        """
        if len(self._devices) > self._most_devices:
            self._forget()
        heard = [self._sorted(samples) for samples in batches if len(samples)]
        if not heard:
            return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
        types = np.concatenate([each.type for each in heard])
        measures = _measures_of(*(np.concatenate([each[place] for each in heard]) for place in range(3, 7)))
        is_split = types == 0
        if is_split.any():
            measures[is_split] *= _IS_POWER
        pieces: list[_Piece] = []
        more: list[Floats] = []
        first = 0
        for each in heard:
            self._additions += 1
            self._heard[each.device] = self._additions
            row, start, end = self._stretches.of(each.device, each.time)
            pieces.append((each.type[row], start, end, first + row))
            for type_number, begin, until, own in self._first_ones(each, measures, first):
                place = np.array([len(measures) + len(more)])
                pieces.append((np.array([type_number]), np.array([begin]), np.array([until]), place))
                more.append(own)
            first += len(each.device)
        known = _joined(pieces)
        more.append(_IS_COVERED)
        covered = self._newly_covered(*known[:3], len(measures) + len(more) - 1)
        return _by_minute(*_joined([known, *covered]), np.concatenate((measures, more)))

    def add_unsampled(self, pieces: Sequence[Unsampled]) -> Sums:
        """Sum up devices that sent no samples. Samples that come later are added; readers take out what they fill."""
        known = [piece for piece in pieces if piece.end > piece.start and 0 <= piece.state < _STATES]
        if not known:
            return Sums(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, len(SUMS))))
        measures = np.zeros((len(known) + 1, len(SUMS)))
        for row, piece in enumerate(known):
            measures[row, piece.state] = piece.devices
            measures[row, _FIRST_GPU + piece.state] = piece.gpus
        measures[-1] = _IS_COVERED
        types = np.array([self._type(piece.type) for piece in known], np.int64)
        starts, ends = (np.array([getattr(piece, name) for piece in known]) for name in ("start", "end"))
        covered = self._newly_covered(types, starts, ends, len(known))
        return _by_minute(*_joined([(types, starts, ends, np.arange(len(known))), *covered]), measures)

    def _sorted(self, samples: Samples) -> _Heard:
        """Give samples by device and time."""
        numbers, types = self._places.of(samples)
        subject = samples.subject
        heard = _Heard(
            device=numbers[subject],
            time=samples.time,
            type=types[subject],
            values=samples.values[:, _MEASURED],
            state=samples.state,
            memory_total=samples.memory_total[subject],
            share=np.ones(len(subject)) if samples.share is None else samples.share[subject],
        )
        if bool((heard.device[1:] > heard.device[:-1]).all()):
            return heard
        order = np.lexsort((heard.time, heard.device))
        return _Heard._make(column[order] for column in heard)

    def _first_ones(
        self, heard: _Heard, measures: Floats, first_row: int
    ) -> Iterator[tuple[int, float, float, Floats]]:
        """Hold first samples back until there is a second, and give those of which there is one now.

        With their type, the stretch of time they stand for, and what is added in each second of it.
        """
        device = heard.device
        rows = np.flatnonzero(np.append(True, device[1:] != device[:-1]))
        usual = self._stretches.usual[device[rows]]
        if self._firsts:
            for number, seconds in zip(device[rows].tolist(), usual.tolist(), strict=True):
                first = self._firsts.pop(number, None) if seconds > 0 else None
                if first is not None and seconds <= FIRST_SECONDS:
                    for start, end in self._stretches.fill(number, first.time - seconds, first.time):
                        yield first.type, start, end, first.measures
        for row in rows[np.isnan(usual)].tolist():
            if len(self._firsts) >= MOST_FIRSTS:
                del self._firsts[next(iter(self._firsts))]
            self._firsts[int(device[row])] = _First(
                float(heard.time[row]), int(heard.type[row]), measures[first_row + row].copy()
            )

    def _newly_covered(
        self, types: NDArray[np.int64], starts: Floats, ends: Floats, place: int
    ) -> list[_Piece]:
        """Tell of which time something is known that nothing was known of before."""
        covered = []
        for number in np.flatnonzero(np.bincount(types, minlength=1)).tolist():
            chosen = types == number
            fresh = self._covered.setdefault(number, Covered()).add(starts[chosen], ends[chosen])
            if fresh:
                edges = np.array(fresh)
                covered.append(
                    (np.full(len(fresh), number), edges[:, 0], edges[:, 1], np.full(len(fresh), place))
                )
        return covered

    def _place(self, key: SeriesKey) -> tuple[int, int]:
        """Give the numbers of a device and its type."""
        return self._number(key.node_id, key.uuid), self._type(key.type)

    def _number(self, node_id: str, uuid: str) -> int:
        # A card that two nodes report is one.
        owner = "" if is_worldwide(uuid) else node_id
        number = self._devices.setdefault((owner, uuid), len(self._devices))
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


def measures_of(values: Floats, state: NDArray[np.uint8], memory_total: Floats, share: Floats) -> Floats:
    """Give what each sample adds in a second. ``values``: rows × DEVICE_METRICS; ``share``: part of a GPU."""
    return _measures_of(values[:, _MEASURED], state, memory_total, share)


def _measures_of(values: Floats, state: NDArray[np.uint8], memory_total: Floats, share: Floats) -> Floats:
    """Give what each sample adds in a second. ``values``: those of _MEASURED; ``share``: what part of a GPU it is."""
    rows = np.arange(len(values))
    measures = np.zeros((len(values), len(SUMS)))
    place = _PLACE_OF_STATE[state]
    measures[rows, place] = 1.0
    measures[rows, _FIRST_GPU + place] = share
    is_known = ~np.isnan(values)
    known = np.where(is_known, values, 0.0)
    measures[:, _WORK], measures[:, _WORK + 1] = known[:, 0], is_known[:, 0]
    measures[:, _JOULES], measures[:, _JOULES + 1] = known[:, 1], is_known[:, 1]
    is_told = is_known[:, 2] & (memory_total > 0)
    measures[:, _BYTES] = np.where(is_told, known[:, 2], 0.0)
    measures[:, _BYTES + 1] = np.where(is_told, memory_total, 0.0)
    in_use = np.flatnonzero(_IS_IN_USE[state] & is_known[:, 0])
    number = np.clip(np.searchsorted(DISTRIBUTION_EDGES, known[in_use, 0], side="right") - 1, 0, CLASSES - 1)
    measures[in_use, _FIRST_CLASS + number] = share[in_use]
    return measures


def _joined(pieces: Sequence[_Piece]) -> _Piece:
    types, starts, ends, places = zip(*pieces, strict=True)
    return np.concatenate(types), np.concatenate(starts), np.concatenate(ends), np.concatenate(places)


def _by_minute(
    type_number: NDArray[np.int64], start: Floats, end: Floats, place: NDArray[np.int64], measures: Floats
) -> Sums:
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
    cell = (minute - first.min()) * kinds + type_number[row]
    is_narrow = int(cell.max()) < 2**16  # these are sorted without comparing them
    order = np.argsort(cell.astype(np.uint16) if is_narrow else cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    cells = cell[order[starts]]
    added_in_each = measures[place[row[order]]] * seconds[order, np.newaxis]
    edges = (cells // kinds + first.min()) * MINUTE_SECONDS
    return Sums(edges, (cells % kinds).astype(np.int32), np.add.reduceat(added_in_each, starts, axis=0))


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
