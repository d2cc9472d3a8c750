"""Samples as columns, sorted by subject and time, each moment of a subject once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Samples, SeriesKey
from gpuherd.history.embedded.kinds import Kind, rounded
from gpuherd.history.places import Places

__all__ = ["Rows", "Subjects", "joined", "no_rows", "packed"]

Numbers = NDArray[Any]
_FEW = 16
"""Up to so many subjects are looked up one by one."""
_NARROW = 2**16
_NOBODY = SeriesKey("")


class Subjects:
    """Devices or hosts, numbered until they are forgotten; then others have their numbers.

    Whoever compares numbers with those of rows sees to it that nothing is forgotten in between.
    """

    def __init__(self) -> None:
        self.keys: list[SeriesKey] = []
        """By number."""
        self._numbers: dict[tuple[str, str], int] = {}
        self._free: list[int] = []
        self._places = Places(lambda key: (self.number(key), 0))

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, samples: Samples) -> NDArray[np.int32]:
        """Give the number of each row's subject."""
        numbers: NDArray[np.int32] = self._places.of(samples)[0][samples.subject].astype(np.int32)
        return numbers

    def number(self, key: SeriesKey) -> int:
        """Give a subject's number; a new type of a known device replaces the old one."""
        identity = (key.node_id, key.uuid)
        number = self._numbers.get(identity)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.keys[number] = key
            else:
                number = len(self.keys)
                self.keys.append(key)
            self._numbers[identity] = number
        elif key.type and self.keys[number].type != key.type:
            self.keys[number] = key
        return number

    def find(self, key: SeriesKey) -> int:
        """Give a subject's number, below zero if it has none."""
        return self._numbers.get((key.node_id, key.uuid), -1)

    def keep(self, numbers: NDArray[np.int32]) -> None:
        """Forget all but these."""
        left = set(numbers.tolist())
        gone = [number for number in self._numbers.values() if number not in left]
        self._numbers = {identity: number for identity, number in self._numbers.items() if number in left}
        for number in gone:
            self.keys[number] = _NOBODY
        self._free += gone
        self._places.forget()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Samples of some subjects."""

    subject: NDArray[np.int32]
    time: NDArray[np.int64]
    """UTC epoch milliseconds."""
    state: NDArray[np.uint8]
    values: Mapping[str, Numbers]
    """By metric; NaN is unknown. A metric that nobody told is left out."""

    def __len__(self) -> int:
        return len(self.time)

    @property
    def size_bytes(self) -> int:
        """What they take in memory."""
        kept = self.subject.nbytes + self.time.nbytes + self.state.nbytes
        return kept + sum(column.nbytes for column in self.values.values())

    def where(self, chosen: NDArray[Any] | slice) -> Rows:
        """Give some of them, in order."""
        if not isinstance(chosen, slice) and chosen.dtype == np.bool_:
            if chosen.all():
                return self
            if not chosen.any():
                return no_rows()
        values = {name: column[chosen] for name, column in self.values.items()}
        return Rows(self.subject[chosen], self.time[chosen], self.state[chosen], values)

    def of(self, subjects: Sequence[int], start: int, end: int) -> Rows:
        """Give those of some subjects from a time on and before another; subjects become positions in the list."""
        if len(subjects) > _FEW:
            places = np.full(max(int(self.subject.max(initial=0)), *subjects) + 2, -1, np.int32)
            places[np.asarray(subjects)] = np.arange(len(subjects))
            places[-1] = -1  # where those that were never seen, numbered -1, have ended up
            position = places[self.subject]
            chosen = (position >= 0) & (self.time >= start) & (self.time < end)
            found = self.where(chosen)
            return joined([Rows(position[chosen], found.time, found.state, found.values)])
        pieces: list[Rows] = []
        for place, number in enumerate(subjects):
            first, last = np.searchsorted(self.subject, [number, number + 1])
            first, last = first + np.searchsorted(self.time[first:last], [start, end])
            if first < last:
                piece = self.where(slice(first, last))
                own = np.full(last - first, place, np.int32)
                pieces.append(Rows(own, piece.time, piece.state, piece.values))
        return joined(pieces)


def no_rows() -> Rows:
    """Give samples of nothing."""
    return Rows(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.uint8), {})


def packed(kind: Kind, samples: Iterable[Samples], subjects: Subjects) -> Rows:
    """Make rows of samples, rounded to what is kept."""
    given = list(samples)
    if not given:
        return no_rows()
    matrix = np.concatenate([each.values for each in given])
    rows = joined(
        [
            Rows(
                subject=np.concatenate([subjects.numbers(each) for each in given]),
                time=np.rint(np.concatenate([each.time for each in given]) * 1000).astype(np.int64),
                state=np.concatenate([each.state for each in given]),
                values={"row": np.arange(len(matrix))},
            )
        ]
    )
    order = rows.values["row"]
    values: dict[str, Numbers] = {}
    for place, metric in enumerate(kind.metrics):
        column = matrix[:, place]
        if not np.isnan(column).all():
            kept = rounded(column[order], kind.parts_of(metric))
            values[metric] = kept.astype(np.float32) if kind.type_of(metric) == "FLOAT" else kept
    return Rows(rows.subject, rows.time, rows.state, values)


def joined(pieces: Sequence[Rows]) -> Rows:
    """Make one of several; where two tell of the same moment, the later one in the list counts."""
    pieces = [piece for piece in pieces if len(piece)]
    if not pieces:
        return no_rows()
    if len(pieces) == 1:
        return _ordered(pieces[0])
    names = dict.fromkeys(name for piece in pieces for name in piece.values)
    values: dict[str, Numbers] = {}
    for name in names:
        columns = [piece.values.get(name) for piece in pieces]
        kind = np.result_type(*(column.dtype for column in columns if column is not None), np.float32)
        values[name] = np.concatenate(
            [
                np.full(len(piece), np.nan, kind) if column is None else column
                for piece, column in zip(pieces, columns, strict=True)
            ]
        )
    return _ordered(
        Rows(
            np.concatenate([piece.subject for piece in pieces]),
            np.concatenate([piece.time for piece in pieces]),
            np.concatenate([piece.state for piece in pieces]),
            values,
        )
    )


def _ordered(rows: Rows) -> Rows:
    subject, time = rows.subject, rows.time
    same = subject[1:] == subject[:-1]
    if bool(((subject[1:] > subject[:-1]) | (same & (time[1:] > time[:-1]))).all()):
        return rows
    order = _order(subject, time)
    subject, time = subject[order], time[order]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (subject[1:] != subject[:-1]) | (time[1:] != time[:-1])
    return rows.where(order if is_last.all() else order[is_last])


def _order(subject: NDArray[np.int32], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort by subject and time; stable: of the same moment, the later one stays behind."""
    if int(subject.min()) >= 0 and int(subject.max()) < _NARROW:
        # Numbers of so few bits are sorted without comparing them; and time mostly goes on from piece to piece.
        order = np.argsort(subject.astype(np.uint16), kind="stable")
        subjects, times = subject[order], time[order]
        if bool(((times[1:] >= times[:-1]) | (subjects[1:] != subjects[:-1])).all()):
            return order
    return np.lexsort((time, subject))
