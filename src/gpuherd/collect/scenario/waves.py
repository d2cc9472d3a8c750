"""What a simulated metric is worth at a moment: nothing (not supported), a constant, or a waveform.

``sim/wave.c`` computes the same formulas in the same order of operations, so that both readers of a scenario agree
to the last bit.
"""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta, Struct

__all__ = [
    "Metric",
    "Noise",
    "Number",
    "Ramp",
    "Sine",
    "Square",
    "Steps",
    "Sum",
    "Wave",
    "quantised",
    "value_at",
]

_MASK = 2**64 - 1

# Bounds keep every sum and quotient finite.
Number = Annotated[int, Meta(ge=-(10**18), le=10**18)] | Annotated[float, Meta(ge=-1e18, le=1e18)]
Period = Annotated[float, Meta(ge=1e-6, le=1e18)]


class Wave(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="wave"
):
    """A value that changes with scenario time, clamped to [minimum, maximum]."""

    minimum: Number | None = None
    maximum: Number | None = None

    def _at(self, t: float) -> float | None:
        raise NotImplementedError

    def value_at(self, t: float) -> float | None:
        """The value ``t`` seconds into the scenario; ``None`` = not supported then."""
        value = self._at(t)
        if value is None:
            return None
        if self.minimum is not None and value < self.minimum:
            return float(self.minimum)
        if self.maximum is not None and value > self.maximum:
            return float(self.maximum)
        return value


class Sine(Wave, frozen=True, kw_only=True, tag="sine"):
    """``mean + amplitude · sin 2π(t/period + phase)``; ``phase`` in periods."""

    mean: Number
    amplitude: Number
    period: Period
    phase: Number = 0.0

    def _at(self, t: float) -> float:
        return self.mean + self.amplitude * math.sin(2.0 * math.pi * (t / self.period + self.phase))


class Square(Wave, frozen=True, kw_only=True, tag="square"):
    """``high`` during the first ``duty`` of each period, ``low`` during the rest."""

    low: Number
    high: Number
    period: Period
    duty: Number = 0.5
    phase: Number = 0.0

    def _at(self, t: float) -> float:
        return float(self.high if _fraction(t / self.period + self.phase) < self.duty else self.low)


class Noise(Wave, frozen=True, kw_only=True, tag="noise"):
    """Random within ``mean ± amplitude``: a new value every ``period`` seconds, linear between."""

    mean: Number
    amplitude: Number
    period: Period = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**53)] = 0

    def _at(self, t: float) -> float:
        position = t / self.period
        base = math.floor(position)
        here, following = _random_at(self.seed, base), _random_at(self.seed, base + 1)
        return self.mean + self.amplitude * (2.0 * (here + (following - here) * (position - base)) - 1.0)


class Ramp(Wave, frozen=True, kw_only=True, tag="ramp"):
    """``start + per_second · t``, for counters."""

    start: Number = 0.0
    per_second: Number

    def _at(self, t: float) -> float:
        return self.start + self.per_second * t


class Steps(Wave, frozen=True, kw_only=True, tag="steps"):
    """The last value whose time has come; starts over every ``repeat`` seconds if that is above zero."""

    steps: Annotated[tuple[tuple[Number, Number | None], ...], Meta(min_length=1)]
    repeat: Annotated[float, Meta(ge=0, le=1e18)] = 0.0

    def __post_init__(self) -> None:
        if 0 < self.repeat < 1e-6:
            raise ValueError("`repeat` must be 0 or at least 1e-6")
        times = [time for time, _ in self.steps]
        if times != sorted(times):
            raise ValueError("`steps` must be in chronological order")

    def _at(self, t: float) -> float | None:
        if self.repeat > 0:
            t = _fraction(t / self.repeat) * self.repeat
        current = self.steps[0][1]
        for time, value in self.steps[1:]:
            if time > t:
                break
            current = value
        return None if current is None else float(current)


class Sum(Wave, frozen=True, kw_only=True, tag="sum"):
    """The sum of its parts; not supported while one of them is not."""

    parts: Annotated[tuple[Metric, ...], Meta(min_length=1)]

    def _at(self, t: float) -> float | None:
        total = 0.0
        for part in self.parts:
            value = value_at(part, t)
            if value is None:
                return None
            total += value
        return total


Metric = Number | Sine | Square | Noise | Ramp | Steps | Sum | None
"""``None`` = not supported."""


def value_at(metric: Metric, t: float) -> float | None:
    """The metric's value ``t`` seconds into the scenario; ``None`` = not supported then."""
    if metric is None:
        return None
    return metric.value_at(t) if isinstance(metric, Wave) else float(metric)


def quantised(value: float, limit: int = 2**63) -> int:
    """Round half up and clamp to ``[0, limit]``: NVML counts in unsigned integers."""
    return min(max(math.floor(value + 0.5), 0), limit)


def _fraction(x: float) -> float:
    return x - math.floor(x)


def _random_at(seed: int, step: int) -> float:
    """splitmix64: a number in [0, 1) that depends only on the seed and the step."""
    z = (seed * 0x9E3779B97F4A7C15 + step * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    z ^= z >> 31
    return (z >> 11) * 2.0**-53
