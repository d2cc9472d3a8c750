"""A herd's numbers as sensors tell them, the same on every run: for comparing stores of samples with each other.

Jobs come and go; while one runs, utilisation wavers in whole percents, memory climbs to a plateau, power follows the
work with noise, temperature follows power with inertia, clocks jump between a few levels, and energy counts up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, Samples, SeriesKey

__all__ = ["METRICS", "START", "HerdData"]

Floats = NDArray[np.float64]

METRICS = (
    "utilization_gpu",
    "utilization_memory",
    "memory_used_bytes",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "fan_ratio",
    "clock_sm_hertz",
    "clock_memory_hertz",
    "performance_state",
    "throttle_reasons",
    "energy_joules",
)
"""The twelve that are told; the rest of DEVICE_METRICS is unknown here."""
START = 1_790_812_800.0
"""2026-10-01 00:00 UTC."""
MIB = float(2**20)
TYPES = {"H100 80GB": (700.0, 80), "A100 40GB": (400.0, 40), "RTX 4090": (450.0, 24)}
_COLUMNS = np.array([DEVICE_METRICS.index(name) for name in METRICS])
_FREE, _BUSY, _HELD = 0, 1, 2


@dataclass(frozen=True)
class HerdData:
    """So many devices, eight to a node, sampled at equal distances."""

    devices: int = 800
    interval_seconds: float = 10.0
    seed: int = 6

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """Give every device, in order."""
        return tuple(
            SeriesKey(
                f"node-{number // 8:04}", f"GPU-{number:08x}-5eed-4a11-8000-{number:012x}", self._type(number)
            )
            for number in range(self.devices)
        )

    def _type(self, number: int) -> str:
        return tuple(TYPES)[number // 8 % len(TYPES)]

    def device(self, number: int, start: float, steps: int) -> tuple[Floats, NDArray[np.uint8]]:
        """Give one device from a midnight on: steps × METRICS, and its states."""
        random = np.random.default_rng((self.seed, number, int(start)))
        limit, gibibytes = TYPES[self._type(number)]
        job = self._phases(random, steps)
        level, wavering, share = random.uniform((0.2, 0.0, 0.1), (1.0, 0.12, 0.97), (job[-1] + 1, 3)).T
        is_work = random.random(len(level)) < 0.65
        level[~is_work] = 0.0
        wavering[~is_work] = 0.0
        is_held = ~is_work & (random.random(len(level)) < 0.4)
        share[~is_work & ~is_held] = 0.0

        work = level[job] + wavering[job] * random.standard_normal(steps)
        pauses = is_work[job] & (random.random(steps) < 0.01)  # a checkpoint is written
        work[pauses] *= 0.2
        work = np.clip(np.round(work, 2), 0.0, 1.0)
        memory = np.clip(
            np.round(work * 0.55 + 0.02 * random.standard_normal(steps) * (work > 0), 2), 0.0, 1.0
        )
        began = np.maximum.accumulate(np.where(np.diff(job, prepend=job[0] - 1) > 0, np.arange(steps), 0))
        filled = np.minimum(1.0, (np.arange(steps) - began + 3) / 12)
        used = np.round(share[job] * filled * (gibibytes - 1) * 1024) * MIB + 451 * MIB
        power = 0.13 * limit + 0.8 * limit * work + (1.5 + 6.0 * (work > 0)) * random.standard_normal(steps)
        power = np.round(np.clip(power, 20.0, limit), 1)
        temperature = np.round(27 + 45 * _follow(power / limit, self.interval_seconds / 90.0))
        is_hot = work > 0.97
        clock = np.where(work > 0, np.where(is_hot, 1_755e6, 1_980e6), 345e6)
        wobbles = (work > 0) & (random.random(steps) < 0.08)
        clock[wobbles] -= 15e6 * random.integers(1, 12, int(wobbles.sum()))
        values = np.column_stack(
            [
                *(work, memory, used, temperature, power),
                np.full(steps, limit),
                np.round(np.clip((temperature - 30) / 60, 0.3, 1.0), 2),
                clock,
                np.where(work > 0, 2_619e6, 405e6),
                np.where(work > 0, 0.0, 8.0),
                np.where(work > 0, np.where(is_hot, 4.0, 0.0), 1.0),
                np.round(1e7 + random.integers(10**8) + np.cumsum(power) * self.interval_seconds, 3),
            ]
        )
        states = np.where(is_work[job], _BUSY, np.where(is_held[job], _HELD, _FREE)).astype(np.uint8)
        return values, states

    def _phases(self, random: np.random.Generator, steps: int) -> NDArray[np.int64]:
        """Number the jobs, and the times between them, that follow each other."""
        lengths = random.exponential(5400.0 / self.interval_seconds, 4 + steps // 20) + 6
        return np.searchsorted(np.cumsum(lengths), np.arange(steps))

    def day(self, start: float = START, seconds: float = 86_400.0) -> Iterator[Samples]:
        """Give all devices from a midnight on, one moment after the other."""
        steps = int(seconds / self.interval_seconds)
        values = np.empty((steps, self.devices, len(METRICS)))
        states = np.empty((steps, self.devices), np.uint8)
        for number in range(self.devices):
            values[:, number], states[:, number] = self.device(number, start, steps)
        keys = self.keys
        total = np.array([TYPES[key.type][1] * 1024 * MIB for key in keys])
        subject = np.arange(self.devices, dtype=np.int32)
        spread = (
            (np.arange(self.devices) // 8 % 97) / 97.0 * min(1.0, self.interval_seconds)
        )  # nodes are not in step
        spread = np.round(spread, 3)
        for step in range(steps):
            full = np.full((self.devices, len(DEVICE_METRICS)), np.nan)
            full[:, _COLUMNS] = values[step]
            yield Samples(
                keys=keys,
                subject=subject,
                time=start + step * self.interval_seconds + spread,
                values=full,
                state=states[step],
                memory_total=total,
            )


def _follow(target: Floats, rate: float) -> Floats:
    """Give what lags behind ``target``: the temperature of something that is heated."""
    weights = np.exp(-rate * np.arange(60))
    weights /= weights.sum()
    return np.convolve(np.concatenate([np.full(59, target[0]), target]), weights, mode="valid")
