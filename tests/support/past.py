"""Samples of the past to keep and to ask for, and what an answer about them must be, worked out the long way."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, NOT_JUDGED, Batch, Samples, SeriesKey
from gpuherd.model.devices import DEVICE_STATES

__all__ = ["Kept", "batch_of", "device_keys"]

Row = tuple[SeriesKey, float, Mapping[str, float], int]
"""Whose, when, what, and the state."""


def device_keys(count: int, type: str = "H100") -> tuple[SeriesKey, ...]:  # noqa: A002 - as in the key
    """Make devices, two to a node."""
    return tuple(SeriesKey(f"node-{number // 2}", f"GPU-{number}", type) for number in range(count))


def batch_of(rows: Iterable[Row], *, written_at: float = 0.0) -> Batch:
    """Make a batch of rows of devices and, without uuid, of hosts."""
    chosen = list(rows)
    return Batch(
        written_at=written_at,
        devices=_samples([row for row in chosen if row[0].uuid], DEVICE_METRICS),
        hosts=_samples([row for row in chosen if not row[0].uuid], HOST_METRICS),
    )


def _samples(rows: Sequence[Row], metrics: tuple[str, ...]) -> Samples:
    keys = tuple(dict.fromkeys(key for key, *_ in rows))
    values = np.full((len(rows), len(metrics)), np.nan)
    for number, (_, _, numbers, _) in enumerate(rows):
        for metric, value in numbers.items():
            values[number, metrics.index(metric)] = value
    return Samples(
        keys=keys,
        subject=np.array([keys.index(key) for key, *_ in rows], np.int32),
        time=np.array([time for _, time, _, _ in rows], np.float64),
        values=values,
        state=np.array([state for *_, state in rows], np.uint8),
        memory_total=np.full(len(keys), 80.0 * 2**30),
    )


@dataclass
class Kept:
    """All that was taken, each moment of a device once."""

    rows: dict[SeriesKey, dict[int, tuple[Mapping[str, float], int]]] = field(default_factory=dict)

    def add(self, rows: Iterable[Row]) -> None:
        """Remember; a moment that comes again replaces what was known of it."""
        for key, time, numbers, state in rows:
            own = self.rows.setdefault(SeriesKey(key.node_id, key.uuid), {})
            own[round(time * 1000)] = (numbers, state)

    def samples(
        self, key: SeriesKey, start: float, end: float
    ) -> list[tuple[float, Mapping[str, float], int]]:
        """List what there is of a device from a time on and before another, in order."""
        own = self.rows.get(SeriesKey(key.node_id, key.uuid), {})
        times = sorted(own)
        first, last = (
            0 if np.isinf(edge) and edge < 0 else bisect_left(times, edge * 1000) for edge in (start, end)
        )
        return [(time / 1000, *own[time]) for time in times[first:last]]

    def expected(
        self, key: SeriesKey, metric: str, times: NDArray[np.float64], step: float
    ) -> tuple[list[float], list[float], list[float]]:
        """Give mean, least and greatest in each step; NaN where nothing is known."""
        mean, low, high = [], [], []
        for time in times:
            known = [numbers.get(metric, np.nan) for _, numbers, _ in self.samples(key, time, time + step)]
            known = [value for value in known if not np.isnan(value)]
            mean.append(sum(known) / len(known) if known else np.nan)
            low.append(min(known, default=np.nan))
            high.append(max(known, default=np.nan))
        return mean, low, high

    def state_seconds(
        self, key: SeriesKey, times: NDArray[np.float64], step: float, usual: float, until: float
    ) -> NDArray[np.float64]:
        """Give seconds in each state in each step: until the next sample, but at most three times the usual."""
        seconds = np.zeros((len(times), len(DEVICE_STATES)))
        own = self.samples(key, -np.inf, np.inf)
        for number, (time, _, state) in enumerate(own):
            following = own[number + 1][0] if number + 1 < len(own) else until
            end = min(following, time + 3 * usual, until)
            if state == NOT_JUDGED:
                continue
            for place, begin in enumerate(times):
                seconds[place, state] += max(0.0, min(end, begin + step) - max(time, begin))
        return seconds
