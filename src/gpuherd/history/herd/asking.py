# ruff: noqa: S608 - SQL is put together of names of ours and whole numbers
"""Sums of the herd out of files and memory, in little memory however long the range and however many types."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats
from gpuherd.history.herd.shapes import MINUTE, QUARTER, SUMS
from gpuherd.history.herd.sink import QUARTER_SECONDS, HerdSink
from gpuherd.history.tables.engine import TooLong
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import MissingPart

__all__ = ["Stretch"]

DEADLINE_SECONDS = 20.0
ROWS_AT_ONCE = 1_000_000
"""Telling types apart step by step takes some 50 bytes a row."""
_SILENT = ("stale", "offline")
_SILENT_SECONDS = " + ".join(f"coalesce(sum(state_{state}), 0)" for state in _SILENT)
_STILL_SILENT = f"greatest(0, 1 - coalesce(sum(state_not_judged), 0) / nullif({_SILENT_SECONDS}, 0))"
"""What share of silent devices sent nothing later either: samples that come late are of such devices."""
_NET = ", ".join(
    f"sum({name}) * {_STILL_SILENT} AS {name}"
    if name.partition("_")[2] in _SILENT
    else f"sum({name}) AS {name}"
    for name in SUMS
)
_DEVICE_SECONDS = " + ".join(f"sum(state_{state})" for state in (*DEVICE_STATES, "not_judged"))


class Stretch:
    """What is kept from one time on and before another, as it is now; they are whole steps apart.

    For one question: all that is asked of it is answered within ``DEADLINE_SECONDS``, or raises ``TooLong``.
    """

    def __init__(self, tables: Tables, sink: HerdSink, first: int, end: int, step: int) -> None:
        self.first, self.end, self.step = first, end, step
        self._tables = tables
        self._until = time.monotonic() + DEADLINE_SECONDS
        waiting, names = sink.waiting()
        inside = (waiting.minute >= first) & (waiting.minute < end)
        self._minute, self._values = waiting.minute[inside], waiting.values[inside]
        self._type = np.array([_text(name) for name in names], object)[waiting.type[inside]]
        # Of days that are not put in order yet, the minutes tell more than the quarters do.
        pieces = tables.segments(MINUTE.name, first, end)
        open_days = {segment.partition for segment in pieces if segment.level == 0}
        folded = {segment.partition for segment in pieces if segment.level}
        from_minutes = {d for d in open_days | folded if step % QUARTER_SECONDS or d in open_days}
        kept_quarters = tables.segments(QUARTER.name, first, end)
        only_quarters = {s.partition for s in kept_quarters} - folded
        self._minutes = tuple(s for s in pieces if s.partition in from_minutes)
        self._quarters = tuple(
            s for s in kept_quarters if s.partition not in from_minutes or s.partition in only_quarters
        )

    @property
    def missing(self) -> tuple[MissingPart, ...]:
        """What had to be given up."""
        found = [self._tables.missing(shape.name, self.first, self.end) for shape in (MINUTE, QUARTER)]
        return tuple(dict.fromkeys(part for parts in found for part in parts))

    def sums(
        self,
        columns: Sequence[str] = SUMS,
        *,
        type: str | None = None,  # noqa: A002 - as everywhere
        between: tuple[int, int] | None = None,
    ) -> Floats:
        """Add up each step, of one type or of all: steps × columns. ``between``: only the steps of this time."""
        first, end = between or (self.first, self.end)
        found = self._ask(
            f"{self._step_from(first)}, {_added(columns)}", first, end, type=type, ending="GROUP BY 1"
        )
        values = np.zeros(((end - first) // self.step, len(columns)))
        if len(found["step"]):
            values[found["step"].astype(np.int64)] = np.stack([found[name] for name in columns], axis=1)
        return values

    def by_type(self, columns: Sequence[str], most: int) -> dict[str, Floats]:
        """Add up all of it, of each of the types with most device-hours."""
        found = self._ask(
            f"type, {_added(columns)}",
            self.first,
            self.end,
            ending=f"GROUP BY 1 HAVING {_DEVICE_SECONDS} > 0 ORDER BY {_DEVICE_SECONDS} DESC, type LIMIT {most}",
        )
        values = np.stack([found[name].astype(np.float64) for name in columns], axis=1)
        return dict(zip(map(str, found["type"]), values, strict=True))

    def covered(self) -> Floats:
        """Tell of how many seconds of each step something is known: those of the type that was seen longest."""
        values = np.zeros((self.end - self.first) // self.step)
        wanted = f"{self._step_from(self.first)}, sum(covered_seconds) AS seen"
        longest = "SELECT step, max(seen) AS seen FROM ({inner}) GROUP BY step"
        for first, end in self._pieces():
            found = self._ask(wanted, first, end, ending="GROUP BY step, hash(type)", outer=longest)
            values[found["step"].astype(np.int64)] = found["seen"]
        return values

    # -- inside

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Cut it where steps begin, so that no piece has many more rows than can be told apart at once."""
        begin, rows = self.first, 0
        for segment in sorted((*self._minutes, *self._quarters), key=lambda each: each.start):
            cut = self.first + (int(segment.start) - self.first) // self.step * self.step
            if rows and rows + segment.rows > ROWS_AT_ONCE and cut > begin:
                yield begin, cut
                begin, rows = cut, 0
            rows += segment.rows
        yield begin, self.end

    def _step_from(self, first: int) -> str:
        return f"(epoch_ms(time) // 1000 - {first}) // {self.step} AS step"

    def _ask(
        self,
        wanted: str,
        first: int,
        end: int,
        *,
        ending: str,
        type: str | None = None,  # noqa: A002 - as everywhere
        outer: str = "{inner}",
    ) -> dict[str, NDArray[Any]]:
        parts = {
            name: Part(table, segments=tuple(s for s in segments if s.start < end and s.end >= first))
            for name, table, segments in (
                ("minutes", MINUTE.name, self._minutes),
                ("quarters", QUARTER.name, self._quarters),
            )
        }
        source = "SELECT * FROM {minutes} UNION ALL BY NAME SELECT * FROM {quarters}"
        inside = (self._minute >= first) & (self._minute < end)
        arrays: dict[str, dict[str, NDArray[Any]]] = {}
        if inside.any():
            source += " UNION ALL BY NAME SELECT * FROM waiting"
            columns = {name: self._values[inside, place] for place, name in enumerate(SUMS)}
            moments = (self._minute[inside] * 1000).astype("datetime64[ms]")
            arrays["waiting"] = {"time": moments, "type": self._type[inside], **columns}
        only = "" if type is None else " AND type = ?"
        net = (
            f"SELECT time, type, {_NET} FROM ({source}) WHERE time >= make_timestamp_ms({first * 1000}) "
            f"AND time < make_timestamp_ms({end * 1000}){only} GROUP BY time, type"
        )
        inner = f"SELECT {wanted} FROM ({net}) {ending}"
        left = self._until - time.monotonic()
        if left <= 0:
            raise TooLong(f"history: no result within {DEADLINE_SECONDS:g} s; request a shorter range")
        return self._tables.query(
            outer.replace("{inner}", inner),
            parts,
            () if type is None else (_text(type),),
            arrays=arrays,
            deadline_seconds=left,
        ).columns


def _added(columns: Sequence[str]) -> str:
    # Null where all files are older than a column.
    return ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in columns)


def _text(name: str) -> str:
    """Give a name as files have it."""
    return name.encode("utf-8", "replace").decode()
