# ruff: noqa: S608 - SQL is put together of names of ours and whole numbers
"""Tells of the whole herd: over time, by hour of the week, by how well it worked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats
from gpuherd.history.herd.shapes import CLASSES, MINUTE, QUARTER, SUMS
from gpuherd.history.herd.sink import QUARTER_SECONDS, HerdSink
from gpuherd.history.herd.tally import MINUTE_SECONDS
from gpuherd.history.store import MAX_POINTS, Steps
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.errors import Failed
from gpuherd.model.history import (
    DISTRIBUTION_EDGES,
    Distribution,
    HerdSeries,
    HourMap,
    MissingPart,
    Numbers,
    Resolution,
)

__all__ = ["Capacity", "HerdReader"]

T = TypeVar("T")

DEADLINE_SECONDS = 20.0
KEPT = "SELECT * FROM {minutes} UNION ALL BY NAME SELECT * FROM {quarters}"
_PLACE = {name: place for place, name in enumerate(SUMS)}
_SEEN = tuple(_PLACE[f"state_{word}"] for word in ("free", "busy", "held", "booked", "unknown", "not_judged"))
_UNUSED = tuple(_PLACE[f"state_{word}"] for word in ("free", "booked"))


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the herd could have given, in device-hours; none if nothing is known."""

    seen_hours: float | None
    """Seen, and without fault."""
    free_hours: float | None
    """Of these, used by nobody."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    types: tuple[str, ...]
    values: Floats
    """Types × steps × SUMS."""
    missing: tuple[MissingPart, ...]

    def of(self, type_name: str | None) -> Floats:
        """Give the sums of one type, or of all."""
        chosen = [number for number, name in enumerate(self.types) if type_name is None or name == type_name]
        sums: Floats = self.values[chosen].sum(axis=0)
        return sums

    @property
    def covered(self) -> Floats:
        """Seconds of each step of which something is known, of whatever type."""
        covered: Floats = np.max(self.values[:, :, _PLACE["covered_seconds"]], axis=0, initial=0.0)
        return covered


class HerdReader:
    """Answers from files and from what waits to be in one. Blocking; from any thread."""

    def __init__(self, tables: Tables, sink: HerdSink, *, clock: Callable[[], float] = time.time) -> None:
        self._tables = tables
        self._sink = sink
        self._clock = clock

    def series(
        self,
        start: float,
        end: float,
        *,
        type: str | None = None,  # noqa: A002 - as everywhere
        max_points: int = 500,
    ) -> HerdSeries:
        """Tell how many devices were in which state, how busy they were and what they drew, step by step."""
        points = max(1, min(max_points, MAX_POINTS))
        longest = Steps[-1] * points
        start = max(start, end - longest)
        is_old = start < self._sink.minutes_from(self._clock())
        least = max(QUARTER_SECONDS if is_old else MINUTE_SECONDS, (end - start) / points)
        step = next((seconds for seconds in Steps if seconds >= least), Steps[-1])
        first = math.floor(start / step) * step
        steps = max(1, math.ceil(end / step) - first // step)
        resolution: Resolution = "quarter_hour" if step >= QUARTER_SECONDS else "minute"
        table = self._ask(first, step, steps)
        sums = table.of(type)
        covered = np.minimum(table.covered, step)
        is_known = covered > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            devices: dict[str, Numbers] = {
                state: _numbers(sums[:, _PLACE[f"state_{state}"]] / covered, is_known)
                for state in DEVICE_STATES
            }
            work = sums[:, _PLACE["utilization_seconds"]] / sums[:, _PLACE["utilization_known_seconds"]]
            memory = (
                sums[:, _PLACE["memory_used_byte_seconds"]] / sums[:, _PLACE["memory_total_byte_seconds"]]
            )
            power = np.where(
                sums[:, _PLACE["power_known_seconds"]] > 0, sums[:, _PLACE["power_joules"]] / covered, np.nan
            )
        return HerdSeries(
            start=float(start),
            end=float(end),
            step_seconds=float(step),
            resolution=resolution,
            times=[float(first + step * number) for number in range(steps)],
            types=tuple(sorted(table.types)),
            devices=devices,
            utilization_gpu=_numbers(work, is_known),
            memory_ratio=_numbers(memory, is_known),
            power_watts=_numbers(power, is_known),
            missing=table.missing,
        )

    def hours(self, start: float, end: float, *, zone: ZoneInfo, type: str | None = None) -> HourMap:  # noqa: A002
        """Tell when the herd is busy, by the hour of the week as clocks in a zone show it."""
        first, steps = _quarters(start, end)
        table = self._ask(first, QUARTER_SECONDS, steps)
        sums = table.of(type)[:, : len(DEVICE_STATES)]
        cells = np.zeros((7, 24, len(DEVICE_STATES)))
        for number in np.flatnonzero(sums.sum(axis=1)):
            # Quarters of an hour, because not all zones are whole hours away; twice an hour when clocks are set back.
            moment = datetime.fromtimestamp(first + int(number) * QUARTER_SECONDS, zone)
            cells[moment.weekday(), moment.hour] += sums[number]
        total = cells.sum(axis=2)

        def share(state: str) -> list[Numbers]:
            with np.errstate(invalid="ignore"):
                shares = cells[:, :, DEVICE_STATES.index(state)] / total
            return [_numbers(row, known) for row, known in zip(shares, np.greater(total, 0.0), strict=True)]

        return HourMap(
            start=float(first),
            end=float(first + steps * QUARTER_SECONDS),
            zone=zone.key,
            busy=share("busy"),
            held=share("held"),
            free=share("free"),
            hours=(total / 3600.0).tolist(),
            missing=table.missing,
        )

    def distribution(self, start: float, end: float, *, type: str | None = None) -> Distribution:  # noqa: A002
        """Tell how well the devices that were in use worked."""
        first, steps = _quarters(start, end)
        table = self._ask(first, steps * QUARTER_SECONDS, 1)
        begin = _PLACE["in_use_0_seconds"]
        hours = table.values[:, 0, begin : begin + CLASSES] / 3600.0
        by_type = {
            name: [float(each) for each in row]
            for name, row in zip(table.types, hours, strict=True)
            if type is None or name == type
        }
        return Distribution(
            start=float(first),
            end=float(first + steps * QUARTER_SECONDS),
            edges=list(DISTRIBUTION_EDGES),
            hours=[sum(column) for column in zip(*by_type.values(), strict=True)] or [0.0] * CLASSES,
            by_type=dict(sorted(by_type.items())),
            missing=table.missing,
        )

    def capacity(self, start: float, end: float, *, type: str | None = None) -> Capacity:  # noqa: A002
        """Tell what could have been used."""
        first, steps = _quarters(start, end)
        sums = self._ask(first, steps * QUARTER_SECONDS, 1).of(type)[0]
        seen = float(sums[list(_SEEN)].sum()) / 3600.0
        if not seen:
            return Capacity(None, None)
        return Capacity(seen, float(sums[list(_UNUSED)].sum()) / 3600.0)

    def watched(self, edges: Sequence[float]) -> Floats:
        """Tell for how many seconds of each step anything was watched; ``edges``: at full quarters of an hour."""
        first, quarters = _quarters(edges[0], edges[-1])
        seconds = self._steady(lambda: self._watched_quarters(first, quarters))
        starts = (np.asarray(edges[:-1]) - first) // QUARTER_SECONDS
        watched: Floats = np.add.reduceat(seconds, starts.astype(np.int64))
        return watched

    # -- inside

    def _ask(self, first: int, step: int, steps: int) -> _Table:
        """Add up what is kept in so many steps from a time on."""
        return self._steady(lambda: self._sums(first, step, steps))

    def _steady(self, look: Callable[[], T]) -> T:
        """Look while nothing moves between memory and files."""
        for _ in range(20):
            version = self._sink.version
            if version % 2 == 0:
                found = look()
                if self._sink.version == version:
                    return found
            time.sleep(0.01)
        raise Failed("history: the herd's numbers are being put in order; try again")

    def _parts(self, first: int, end: int, step: int) -> dict[str, Part]:
        """Give the files to ask, which together hold everything once."""
        # Of days that are not put in order yet, the minutes tell more than the quarters do.
        pieces = self._tables.segments(MINUTE.name, first, end)
        open_days = {segment.partition for segment in pieces if segment.level == 0}
        folded = {segment.partition for segment in pieces if segment.level}
        from_minutes = {d for d in open_days | folded if step % QUARTER_SECONDS or d in open_days}
        kept_quarters = self._tables.segments(QUARTER.name, first, end)
        only_quarters = {s.partition for s in kept_quarters} - folded
        minutes = Part(MINUTE.name, segments=tuple(s for s in pieces if s.partition in from_minutes))
        quarters = Part(
            QUARTER.name,
            segments=tuple(
                s for s in kept_quarters if s.partition not in from_minutes or s.partition in only_quarters
            ),
        )
        return {"minutes": minutes, "quarters": quarters}

    def _watched_quarters(self, first: int, quarters: int) -> Floats:
        end = first + quarters * QUARTER_SECONDS
        waiting, _ = self._sink.waiting()
        found = self._tables.query(
            f"SELECT (epoch_ms(time) // 1000 - {first}) // {QUARTER_SECONDS} AS step, sum(covered) AS covered FROM ("
            "SELECT time, max(covered) AS covered FROM (SELECT time, type, sum(covered_seconds) AS covered FROM "
            f"({KEPT}) WHERE {_between(first, end)} GROUP BY time, type) GROUP BY time) GROUP BY step",
            self._parts(first, end, QUARTER_SECONDS),
            deadline_seconds=DEADLINE_SECONDS,
        )
        seconds = np.zeros(quarters)
        seconds[found.columns["step"].astype(np.int64)] = found.columns["covered"]
        inside = (waiting.minute >= first) & (waiting.minute < end)
        minutes, place = np.unique(waiting.minute[inside], return_inverse=True)
        longest = np.zeros(len(minutes))
        np.maximum.at(longest, place, waiting.values[inside, _PLACE["covered_seconds"]])
        np.add.at(seconds, (minutes - first) // QUARTER_SECONDS, longest)
        return np.minimum(seconds, QUARTER_SECONDS)

    def _sums(self, first: int, step: int, steps: int) -> _Table:
        end = first + step * steps
        waiting, names = self._sink.waiting()
        sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
        found = self._tables.query(
            f"SELECT type, (epoch_ms(time) // 1000 - {first}) // {step} AS step, {sums} FROM ({KEPT}) "
            f"WHERE {_between(first, end)} GROUP BY ALL",
            self._parts(first, end, step),
            deadline_seconds=DEADLINE_SECONDS,
        )
        types = sorted({*found.columns["type"], *(names[number] for number in np.unique(waiting.type))})
        values = np.zeros((len(types), steps, len(SUMS)))
        places = {name: number for number, name in enumerate(types)}
        rows = np.array([places[name] for name in found.columns["type"]], np.int64)
        columns = np.stack([found.columns[name].astype(np.float64) for name in SUMS], axis=1)
        np.add.at(values, (rows, found.columns["step"].astype(np.int64)), columns)
        inside = (waiting.minute >= first) & (waiting.minute < end)
        rows = np.array([places[names[number]] for number in waiting.type[inside]], np.int64)
        np.add.at(values, (rows, (waiting.minute[inside] - first) // step), waiting.values[inside])
        missing = [self._tables.missing(shape.name, first, end) for shape in (MINUTE, QUARTER)]
        present = np.flatnonzero(np.abs(values).sum(axis=(1, 2)))
        return _Table(
            tuple(types[number] for number in present),
            values[present],
            tuple(dict.fromkeys(part for parts in missing for part in parts)),
        )


def _between(first: int, end: int) -> str:
    return f"time >= make_timestamp_ms({first * 1000}) AND time < make_timestamp_ms({end * 1000})"


def _quarters(start: float, end: float) -> tuple[int, int]:
    first = math.floor(start / QUARTER_SECONDS) * QUARTER_SECONDS
    return first, max(1, math.ceil((end - first) / QUARTER_SECONDS))


def _numbers(values: Floats, is_known: NDArray[np.bool_]) -> Numbers:
    return [
        float(v) if known and not math.isnan(v) else None for v, known in zip(values, is_known, strict=True)
    ]
