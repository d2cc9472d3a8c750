# ruff: noqa: S608 - SQL is put together of quoted names only
"""Making sorted files of several that are sorted already: read as columns, put in order by a few numbers, written once.

DuckDB would sort all that a row holds; here only the order is worked out, which takes a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.engine import named
from gpuherd.history.tables.parts import Part, may_agree
from gpuherd.history.tables.segments import Segment, Shape
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded, Sortable
from gpuherd.model.errors import Failed

__all__ = ["splice"]

MOST_ROWS = 400_000
"""Of one file: what takes some 70 MB while it is made, or 200 if it has very many columns."""
_NARROW = 2**16


def splice(tables: Tables, segments: Sequence[Segment], *, level: int, rows_at_once: int = MOST_ROWS) -> None:
    """Replace segments of one partition by few, cut where the first column of the order changes.

    Of rows that agree in what is unique, the one written last stays. ``rows_at_once``: how many a file has, nearly.
    ``Outdated`` if one of them went away meanwhile, ``Unreadable`` if one is damaged and was set aside.
    """
    work = _Splicing(tables, tuple(segments), level)
    made: list[Segment | None] = []
    try:
        for condition, parameters in work.ranges(min(rows_at_once, MOST_ROWS)):
            made.append(work.piece(condition, parameters))
        work.check()
    except BaseException:
        tables.discard(*made)
        raise
    tables.commit(add=made, remove=segments)


@dataclass(frozen=True, slots=True)
class _Owners:
    """Who rows are of: each set of strings once, in order, and what it is called by in rows."""

    hashes: NDArray[np.uint64]
    strings: dict[str, NDArray[Any]]
    rows: NDArray[np.int64]
    ranks: NDArray[np.int64]
    """Where it is in the order: those who differ only in what is no part of it have the same."""

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Tell of each row whose it is. Rows of the same owner mostly follow each other."""
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        by_hash = np.argsort(self.hashes)
        found = by_hash[np.searchsorted(self.hashes[by_hash], hashes[starts])]
        return np.repeat(found, np.diff(starts, append=len(hashes)))


class _Splicing:
    def __init__(self, tables: Tables, segments: tuple[Segment, ...], level: int) -> None:
        self._tables = tables
        self._segments = segments
        self._level = level
        self._shape: Shape = tables.shapes[segments[0].table]
        kinds = self._shape.columns
        self._strings = [name for name in kinds if kinds[name] == "VARCHAR"]
        # Those of the order first.
        self._strings.sort(key=lambda name: (*self._shape.order_by, name).index(name))
        self._is_doubtful = may_agree(self._shape, segments)
        self._part = Part(self._shape.name, segments=segments, with_serial=self._is_doubtful)
        self._owners = self._find_owners()
        self._rows_left = int(self._owners.rows.sum())
        told = tables.told_columns(segments)
        self._told = [name for name in kinds if name not in self._strings and name in told]
        """Columns of numbers that are known of anyone: most tables have some that nobody tells."""

    def _find_owners(self) -> _Owners:
        names = ", ".join(map(named, self._strings))
        found = self._tables.read(
            f"SELECT hash({names}) AS hash, {names}, count(*) AS rows FROM {{part}} GROUP BY ALL ORDER BY {names}",
            {"part": self._part},
        )
        hashes = found.pop("hash")
        if len(np.unique(hashes)) != len(hashes):
            raise Failed(f"history: files of {self._shape.name} cannot be separated by owner")
        is_next = np.zeros(len(hashes), np.bool_)
        for name in self._shape.order_by:
            if name in found:
                is_next[1:] |= found[name][1:] != found[name][:-1]
        strings = {name: found[name] for name in self._strings}
        return _Owners(hashes, strings, found["rows"], np.cumsum(is_next))

    def check(self) -> None:
        """Raise ``Failed`` unless all rows were written: what is replaced is deleted."""
        if self._rows_left:
            raise Failed(
                f"history: {self._rows_left} rows of {self._shape.name} were not found again and remain"
            )

    def ranges(self, rows_at_once: int) -> list[tuple[str, list[object]]]:
        """Give conditions that part the rows where the first column changes, so that each piece has few."""
        texts = self._owners.strings[self._strings[0]]
        rows = self._owners.rows
        is_next = np.append(False, texts[1:] != texts[:-1])
        is_next &= np.array([text is not None for text in texts.tolist()], np.bool_)
        starts = np.flatnonzero(is_next)
        piece = (np.cumsum(rows) - rows) // rows_at_once
        is_cut = np.diff(piece[starts], prepend=0) > 0
        edges: list[object] = texts[starts[is_cut]].tolist()
        if not edges:
            return [("true", [])]
        first = named(self._strings[0])
        return [
            (f"{first} < ?", edges[:1]),
            *((f"{first} >= ? AND {first} < ?", list(pair)) for pair in pairwise(edges)),
            # Nulls come last in any order.
            (f"({first} >= ? OR {first} IS NULL)", edges[-1:]),
        ]

    def piece(self, condition: str, parameters: list[object]) -> Segment | None:
        """Write what meets a condition, sorted; durable and not listed."""
        names = ", ".join(map(named, self._strings))
        numbers = [*self._told, *(["serial"] if self._is_doubtful else [])]
        columns = "".join(f", {named(name)}" for name in numbers)
        found = self._tables.read(
            f"SELECT hash({names}) AS hash{columns} FROM {{part}} WHERE {condition}",
            {"part": self._part},
            parameters,
        )
        self._rows_left -= len(found["hash"])
        owner = self._owners.places(found.pop("hash"))
        order = _order(self._owners.ranks[owner], found[self._shape.time], found.pop("serial", None))
        owner = owner[order]
        given: dict[str, Sortable] = {}
        for name, texts in self._owners.strings.items():
            words = {text: place for place, text in enumerate(dict.fromkeys(texts.tolist()))}
            code = np.array([words[text] for text in texts.tolist()], np.int32)
            given[name] = Coded(code[owner], list(words))
        for name in list(found):
            given[name] = found.pop(name)[order]
        partition = self._segments[0].partition
        return self._tables.write(self._shape.name, given, partition=partition, level=self._level)


def _order(
    owner: NDArray[np.int64], time: NDArray[Any], serial: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Sort by owner and time; of the same moment, what was written last comes last."""
    if serial is None:
        # Numbers of so few bits are sorted without comparing them; and files mostly follow each other in time.
        is_narrow = int(owner.max(initial=0)) < _NARROW
        order = np.argsort(owner.astype(np.uint16) if is_narrow else owner, kind="stable")
        owners, times = owner[order], time[order]
        if bool(((times[1:] > times[:-1]) | (owners[1:] != owners[:-1])).all()):
            return order
        return np.lexsort((time, owner))
    return np.lexsort((serial, time, owner))
