"""When to look: a steady beat."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["Ticks"]


class Ticks:
    """A steady beat on the monotonic clock: late work skips beats, it never catches up in a burst."""

    def __init__(self, interval_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.interval_seconds = interval_seconds
        self._monotonic = monotonic
        self._next_at = monotonic()

    def wait_seconds(self) -> float:
        """Move on to the next beat that is still to come and say how far it is."""
        now = self._monotonic()
        self._next_at = min(self._next_at, now)  # out of turn: the beat begins anew
        missed = math.floor((now - self._next_at) / self.interval_seconds)
        self._next_at += self.interval_seconds * (missed + 1)
        return self.left_seconds()

    def left_seconds(self) -> float:
        """Say how far the next beat is."""
        return max(self._next_at - self._monotonic(), 0.0)
