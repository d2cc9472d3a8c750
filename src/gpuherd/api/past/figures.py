"""Use in numbers that people read: hours, shares, energy and cost out of summed-up seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from gpuherd.history.settings import UsageSettings
from gpuherd.history.usage.asking import UseRow, UseSums
from gpuherd.model.history import MissingPart, UsageFigures

__all__ = ["Prices", "missing_before", "missing_between", "no_figures"]

HOUR = 3600.0
JOULES_PER_KWH = 3.6e6
GIB = 2**30
BEFORE = "no data before this time"
UNWATCHED = "no data"
QUARTER_SECONDS = 900.0


class Prices:
    """What use costs."""

    def __init__(self, settings: UsageSettings) -> None:
        self._settings = settings
        self._has_hours = settings.cost_per_gpu_hour is not None or bool(settings.cost_per_gpu_hour_by_type)

    @property
    def currency(self) -> str | None:
        """What costs are given in; none if none are told."""
        has_any = self._has_hours or self._settings.cost_per_kwh is not None
        return self._settings.currency if has_any else None

    def figures(self, row: UseRow) -> UsageFigures:
        """Give a row's numbers."""
        return self.of(row.sums, row.by_type)

    def of(self, sums: UseSums, by_type: Mapping[str, UseSums]) -> UsageFigures:
        """Give numbers; ``by_type`` is the same use by the devices' types, whose prices may differ."""
        known = sums.gpu_seconds - sums.unknown_seconds
        idle_seconds = max(0.0, sums.gpu_seconds - sums.busy_seconds - sums.unknown_seconds)
        energy = None if sums.joules is None else sums.joules / JOULES_PER_KWH
        return UsageFigures(
            gpu_hours=sums.gpu_seconds / HOUR,
            busy_hours=sums.busy_seconds / HOUR,
            idle_hours=idle_seconds / HOUR,
            unknown_hours=sums.unknown_seconds / HOUR,
            efficiency=_share(sums.busy_seconds, known),
            mean_utilization=_share(sums.work_seconds, known),
            memory_gib_hours=sums.memory_byte_seconds / GIB / HOUR,
            energy_kwh=energy,
            cost=self._cost({name: part.gpu_seconds for name, part in by_type.items()}, energy),
            idle_cost=self._hours_cost(
                {
                    name: part.gpu_seconds - part.busy_seconds - part.unknown_seconds
                    for name, part in by_type.items()
                }
            ),
        )

    def _hours_cost(self, seconds_by_type: Mapping[str, float]) -> float | None:
        if not self._has_hours:
            return None
        settings = self._settings
        return sum(
            max(0.0, seconds)
            / HOUR
            * (settings.cost_per_gpu_hour_by_type.get(name, settings.cost_per_gpu_hour or 0.0))
            for name, seconds in seconds_by_type.items()
        )

    def _cost(self, seconds_by_type: Mapping[str, float], energy_kwh: float | None) -> float | None:
        hours = self._hours_cost(seconds_by_type)
        price = self._settings.cost_per_kwh
        energy = None if price is None or energy_kwh is None else price * energy_kwh
        return None if hours is None and energy is None else (hours or 0.0) + (energy or 0.0)


def no_figures(prices: Prices) -> UsageFigures:
    """Give the numbers of someone who used nothing."""
    nothing = UseSums(
        held_seconds=0.0,
        gpu_seconds=0.0,
        busy_seconds=0.0,
        unknown_seconds=0.0,
        work_seconds=0.0,
        memory_byte_seconds=0.0,
        joules=None,
    )
    return prices.of(nothing, {})


def missing_before(
    missing: Iterable[MissingPart], begins_at: float | None, start: float, end: float
) -> tuple[MissingPart, ...]:
    """Add the time of which nothing can be known, as nothing was remembered yet or is not any more."""
    first = end if begins_at is None else min(begins_at, end)
    before = [MissingPart(start=start, end=first, reason=BEFORE)] if first > start else []
    return (*before, *missing)


def missing_between(
    edges: Sequence[float], is_known: Sequence[bool], begins_at: float | None, end: float
) -> tuple[MissingPart, ...]:
    """Tell the steps of which nothing is known although remembering had begun; neighbours are one part.

    A step that has only just begun is not told: what is in it may still be on its way.
    """
    parts: list[MissingPart] = []
    for (start, stop), known in zip(pairwise(edges), is_known, strict=True):
        first, last = max(start, end if begins_at is None else begins_at), min(stop, end)
        if known or last - first < QUARTER_SECONDS:
            continue
        if parts and parts[-1].end == first:
            first = parts.pop().start
        parts.append(MissingPart(start=first, end=last, reason=UNWATCHED))
    return tuple(parts)


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None
