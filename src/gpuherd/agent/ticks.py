"""When to look: a steady beat."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Slowness", "Ticks"]

REMEMBERED_READINGS = 3
LONGEST_SECONDS = 60.0
"""Slower than this, a node may well be called stale."""


class Ticks:
    """A steady beat on the monotonic clock: late work skips beats, it never catches up in a burst."""

    def __init__(self, interval_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.interval_seconds = interval_seconds
        self._monotonic = monotonic
        self._next_at = monotonic()
        self._put_off_seconds = 0.0

    def put_off(self, seconds: float) -> None:
        """Delay all beats after the next one by some seconds."""
        self._put_off_seconds = seconds

    def wait_seconds(self) -> float:
        """Move on to the next beat that is still to come and say how far it is."""
        now = self._monotonic()
        self._next_at = min(self._next_at, now)  # out of turn: the beat begins anew
        missed = math.floor((now - self._next_at) / self.interval_seconds)
        self._next_at += self.interval_seconds * (missed + 1) + self._put_off_seconds
        self._put_off_seconds = 0.0
        return self.left_seconds()

    def left_seconds(self) -> float:
        """Say how far the next beat is."""
        return max(self._next_at - self._monotonic(), 0.0)


class Slowness:
    """Says how far apart samples are while reading takes longer than the interval: a slow driver is no silent node."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=REMEMBERED_READINGS)

    def note(self, seconds: float) -> None:
        """Count a reading that took this long."""
        self._seconds.append(seconds)

    def interval_seconds(self, usual_seconds: float) -> float | None:
        """Give the time between samples as the last readings make it; ``None`` if that is the usual one."""
        slowest = max(self._seconds, default=0.0)
        if slowest <= usual_seconds:
            return None
        return min(math.ceil(slowest / usual_seconds) * usual_seconds, LONGEST_SECONDS)

    def is_lasting(self, usual_seconds: float) -> bool:
        """Whether more than one reading in a row was slow; the first of a probe always takes its time."""
        return len(self._seconds) > 1 and min(list(self._seconds)[-2:]) > usual_seconds
