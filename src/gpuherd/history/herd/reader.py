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
from gpuherd.history.herd.asking import Stretch
from gpuherd.history.herd.shapes import CLASSES, SUMS
from gpuherd.history.herd.sink import DAY_SECONDS, QUARTER_SECONDS, HerdSink
from gpuherd.history.herd.tally import MINUTE_SECONDS, OTHER_TYPES
from gpuherd.history.store import MAX_POINTS, Steps
from gpuherd.history.tables.tables import Tables
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

Told = TypeVar("Told")

MOST_TYPES = 64
"""An answer tells of so many types, those with most device-hours: nodes may call theirs whatever they like."""
AT_ONCE_SECONDS = 366 * DAY_SECONDS
"""Of years of quarters of an hour, so much is in memory at once."""
_PLACE = {name: place for place, name in enumerate(SUMS)}
_SEEN = tuple(f"gpu_{word}" for word in ("free", "booked", "busy", "held", "unknown", "not_judged"))
_UNUSED = 2
"""So many of these, the first ones, were used by nobody."""
_STATES = tuple(f"state_{state}" for state in DEVICE_STATES)
_GPU_STATES = tuple(f"gpu_{state}" for state in DEVICE_STATES)
_HEARD = [place for place, state in enumerate(DEVICE_STATES) if state not in ("stale", "offline")]
_CLASSES = tuple(f"in_use_{number}_seconds" for number in range(CLASSES))
_OVER_TIME = SUMS[: _PLACE["in_use_0_seconds"]]


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the herd could have given, in GPU-hours, a slice being a part of a GPU; none if nothing is known."""

    seen_hours: float | None
    """Seen, and without fault."""
    free_hours: float | None
    """Of these, used by nobody."""


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

        def ask(stretch: Stretch) -> tuple[Floats, Floats, dict[str, Floats], tuple[MissingPart, ...]]:
            named = stretch.by_type(("covered_seconds",), MOST_TYPES)
            return stretch.sums(_OVER_TIME, type=type), stretch.covered(), named, stretch.missing

        sums, seen, types, missing = self._ask(first, step, steps, ask)
        times = first + step * np.arange(steps)
        # What was covered twice around a new start of the hub is no more time than there was.
        passed = self._clock() - times
        covered = np.minimum(seen, np.where((passed > 0) & (passed < step), passed, step))
        is_known = covered > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            # What came late was not judged: it is known that the devices were there, not what they were.
            sums[:, _PLACE["state_unknown"]] += sums[:, _PLACE["state_not_judged"]]
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
            times=times.astype(np.float64).tolist(),
            types=tuple(sorted(types)),
            devices=devices,
            utilization_gpu=_numbers(work, is_known),
            memory_ratio=_numbers(memory, is_known),
            power_watts=_numbers(power, is_known),
            missing=missing,
        )

    def hours(self, start: float, end: float, *, zone: ZoneInfo, type: str | None = None) -> HourMap:  # noqa: A002
        """Tell when the herd is busy, by the hour of the week as clocks in a zone show it."""
        first, steps = _quarters(start, end)

        def ask(stretch: Stretch) -> tuple[Floats, tuple[MissingPart, ...]]:
            cells = np.zeros((7 * 24, len(DEVICE_STATES)))
            for begin in range(stretch.first, stretch.end, AT_ONCE_SECONDS):
                between = begin, min(stretch.end, begin + AT_ONCE_SECONDS)
                sums = stretch.sums(_GPU_STATES, type=type, between=between)
                quarters = np.flatnonzero(sums.any(axis=1))
                np.add.at(cells, hours_of_week(begin + quarters * QUARTER_SECONDS, zone), sums[quarters])
            return cells.reshape(7, 24, -1), stretch.missing

        cells, missing = self._ask(first, QUARTER_SECONDS, steps, ask)
        total = cells[:, :, _HEARD].sum(axis=2)

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
            missing=missing,
        )

    def distribution(self, start: float, end: float, *, type: str | None = None) -> Distribution:  # noqa: A002
        """Tell how well the devices that were in use worked."""
        first, steps = _quarters(start, end)

        def ask(stretch: Stretch) -> tuple[Floats, dict[str, Floats], tuple[MissingPart, ...]]:
            total = stretch.sums(_CLASSES, type=type)[0]
            if type is None:
                return total, stretch.by_type(_CLASSES, MOST_TYPES), stretch.missing
            is_known = bool(stretch.sums(_STATES, type=type).any())
            return total, {type: total} if is_known else {}, stretch.missing

        total, by_type, missing = self._ask(first, steps * QUARTER_SECONDS, 1, ask)
        rest = total - sum(by_type.values(), np.zeros(CLASSES))
        if len(by_type) == MOST_TYPES and float(rest.max()) > 1.0:  # more than what rounding leaves
            by_type[OTHER_TYPES] = by_type.get(OTHER_TYPES, np.zeros(CLASSES)) + np.maximum(rest, 0.0)
        return Distribution(
            start=float(first),
            end=float(first + steps * QUARTER_SECONDS),
            edges=list(DISTRIBUTION_EDGES),
            hours=(total / 3600.0).tolist(),
            by_type={name: (by_type[name] / 3600.0).tolist() for name in sorted(by_type)},
            missing=missing,
        )

    def capacity(self, start: float, end: float, *, type: str | None = None) -> Capacity:  # noqa: A002
        """Tell what could have been used."""
        first, steps = _quarters(start, end)
        sums = self._ask(first, steps * QUARTER_SECONDS, 1, lambda stretch: stretch.sums(_SEEN, type=type)[0])
        seen = float(sums.sum()) / 3600.0
        if not seen:
            return Capacity(None, None)
        return Capacity(seen, float(sums[:_UNUSED].sum()) / 3600.0)

    def begins_at(self) -> float | None:
        """Tell since when the herd has been watched, as far as that is still kept; none if never."""
        return self._sink.begins_at()

    def watched(self, edges: Sequence[float]) -> Floats:
        """Tell for how many seconds of each step anything was watched; ``edges``: at full quarters of an hour."""
        first, quarters = _quarters(edges[0], edges[-1])
        covered = self._ask(first, QUARTER_SECONDS, quarters, lambda stretch: stretch.covered())
        seconds = np.minimum(covered, QUARTER_SECONDS)
        starts = (np.asarray(edges[:-1]) - first) // QUARTER_SECONDS
        watched: Floats = np.add.reduceat(seconds, starts.astype(np.int64))
        return watched

    # -- inside

    def _ask(self, first: int, step: int, steps: int, ask: Callable[[Stretch], Told]) -> Told:
        """Ask about so many steps from a time on, again if sums moved from one place to another meanwhile."""
        for _ in range(20):
            version = self._sink.version
            if version % 2 == 0:
                told = ask(Stretch(self._tables, self._sink, first, first + step * steps, step))
                if self._sink.version == version:
                    return told
            time.sleep(0.01)
        raise Failed("history: the herd's totals are being rewritten; try again")


def hours_of_week(times: NDArray[np.int64], zone: ZoneInfo) -> NDArray[np.int64]:
    """Give the hour of the week, from Monday midnight on, that clocks in a zone show at times in epoch seconds.

    Times are quarters of an hour, because not all zones are whole hours away; an hour comes twice when clocks are set
    back. Clocks are looked up once a day, and one by one on days on which they are changed.
    """
    days, place = np.unique(times // DAY_SECONDS, return_inverse=True)
    begins = np.array([_offset(int(day) * DAY_SECONDS, zone) for day in days], np.int64)
    ends = np.array([_offset((int(day) + 1) * DAY_SECONDS, zone) for day in days], np.int64)
    offsets = begins[place]
    for changed in np.flatnonzero((begins != ends)[place]):
        offsets[changed] = _offset(int(times[changed]), zone)
    # The epoch began on a Thursday.
    hours: NDArray[np.int64] = ((times + offsets) // 3600 + 3 * 24) % (7 * 24)
    return hours


def _offset(moment: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _quarters(start: float, end: float) -> tuple[int, int]:
    first = math.floor(start / QUARTER_SECONDS) * QUARTER_SECONDS
    return first, max(1, math.ceil((end - first) / QUARTER_SECONDS))


def _numbers(values: Floats, is_known: NDArray[np.bool_]) -> Numbers:
    return [
        float(v) if known and not math.isnan(v) else None for v, known in zip(values, is_known, strict=True)
    ]
