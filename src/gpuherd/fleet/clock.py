"""Time as an argument: wall time for showing, monotonic time for ages and durations."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Two readings of time; a jump of the wall clock must not move the monotonic one."""

    def wall(self) -> float:
        """Give UTC epoch seconds; may jump."""

    def monotonic(self) -> float:
        """Give seconds that only move forward."""


class SystemClock:
    """The machine's clocks. Monotonic time goes on through suspend, so that old data is old after it."""

    def wall(self) -> float:
        """Give the machine's idea of UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Give CLOCK_BOOTTIME."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)
