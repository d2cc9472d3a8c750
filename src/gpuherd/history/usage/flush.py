"""Stretches of time of many nodes, worked out at once rather than node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats, SessionKey, Uses, no_uses
from gpuherd.history.usage.counting import COUNTED, JOULES, Stretch, count
from gpuherd.history.usage.register import Register
from gpuherd.history.usage.seats import Seats
from gpuherd.history.usage.slots import cut
from gpuherd.history.usage.timeline import NOBODY, Shown, Timeline

__all__ = ["Flush", "joined", "offsets"]

Numbers = NDArray[np.int64]


class Flush:
    """What is counted together: one entry a stretch of time before a sample; of arrays their bytes."""

    def __init__(self) -> None:
        self.seats: list[Seats] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.numbers: list[bytes] = []
        self.counts: list[bytes] = []
        """bool: seats whose stay was there at both ends."""
        self.memory: list[bytes] = []
        self.values: list[bytes] = []
        self.energy_before: list[bytes] = []
        self.commands: dict[int, str] = {}
        """By the number of the stay."""
        self.noted: dict[str, Timeline] = {}
        """Nodes whose holes have changed."""

    def add(self, shown: Shown, start: float, end: float, counts: bytes, energy_before: bytes) -> None:
        """Add an entry."""
        self.seats.append(shown.seats)
        self.start.append(start)
        self.end.append(end)
        self.numbers.append(shown.numbers)
        self.counts.append(counts)
        self.memory.append(shown.memory)
        self.values.append(shown.values)
        self.energy_before.append(energy_before)

    def uses(self, register: Register, busy_utilization: float) -> Uses:
        """Work out all entries, by stay and slot. Stays that were not there before have a row with nothing in it."""
        if not self.seats:
            return no_uses()
        device_counts = np.array([len(its.uuids) for its in self.seats])
        seat_counts = np.array([len(its.places) for its in self.seats])
        start, end = np.array(self.start), np.array(self.end)
        numbers, counts = joined(self.numbers, np.int64), joined(self.counts, np.bool_)
        device = joined([its.device for its in self.seats], np.int32) + offsets(device_counts, seat_counts)
        source = joined([its.source for its in self.seats], np.int32) + offsets(device_counts, device_counts)
        rows = np.flatnonzero(counts)
        measures = count(
            Stretch(
                seconds=np.repeat(end - start, device_counts),
                values=joined(self.values, np.float64).reshape(-1, len(COUNTED)),
                energy_before=joined(self.energy_before, np.float64),
                weight=joined([its.weight for its in self.seats], np.float64),
                source=source,
                device=device[rows],
                memory=joined(self.memory, np.float64)[rows],
            ),
            busy_utilization,
        )
        came = np.flatnonzero((numbers != NOBODY) & ~counts)
        if came.size:
            nothing = np.zeros((len(came), measures.shape[1]))
            nothing[:, JOULES] = np.nan  # no time, so nothing was told
            rows, measures = np.concatenate([rows, came]), np.concatenate([measures, nothing])
        if not rows.size:
            return no_uses()
        entry = np.repeat(np.arange(len(end)), seat_counts)[rows]
        last = end[entry]
        first = np.where(counts[rows], start[entry], last)
        pieces = cut(first, last)
        if len(pieces.source) > len(rows):
            whole = (last - first)[pieces.source]
            part = np.divide(pieces.last - pieces.first, whole, out=np.ones(len(whole)), where=whole > 0)
            measures = measures[pieces.source] * part[:, None]
        return _by_stay(
            register,
            self.commands,
            numbers[rows][pieces.source],
            pieces.slot,
            pieces.first,
            pieces.last,
            measures,
        )


def _by_stay(
    register: Register,
    commands: dict[int, str],
    numbers: Numbers,
    slot: Numbers,
    first: Floats,
    last: Floats,
    measures: Floats,
) -> Uses:
    """Add up rows of the same stay and slot."""
    own = np.arange(len(numbers))
    row_of = np.empty(register.capacity, np.int64)
    row_of[numbers] = own
    if np.array_equal(row_of[numbers], own):
        distinct, session = numbers, own
    else:
        distinct, session = np.unique(numbers, return_inverse=True)
        order = np.lexsort((slot, session))
        session, slot, measures = session[order], slot[order], measures[order]
        is_other = (session[1:] != session[:-1]) | (slot[1:] != slot[:-1])
        starts = np.flatnonzero(np.concatenate([[True], is_other]))
        is_told = np.logical_or.reduceat(~np.isnan(measures[:, JOULES]), starts)
        measures = np.add.reduceat(np.nan_to_num(measures), starts, axis=0)
        measures[~is_told, JOULES] = np.nan
        first, last = np.minimum.reduceat(first[order], starts), np.maximum.reduceat(last[order], starts)
        session, slot = session[starts], slot[starts]
    listed = distinct.tolist()
    keys: list[SessionKey | None] = register.keys
    return Uses(
        keys=tuple([key for number in listed if (key := keys[number]) is not None]),
        commands=tuple(map(commands.get, listed)) if commands else (None,) * len(listed),
        session=session.astype(np.int32),
        slot=slot,
        first=first,
        last=last,
        measures=measures,
        numbers=distinct,
    )


def joined(parts: Sequence[bytes], dtype: Any) -> NDArray[Any]:
    """Read the bytes of many arrays as one."""
    return np.frombuffer(b"".join(parts), dtype)


def offsets(counts: Numbers, repeats: Numbers) -> Numbers:
    """Give where each one's part of the joined rows starts, as often as it has rows of another kind."""
    return np.repeat(np.cumsum(counts) - counts, repeats)
