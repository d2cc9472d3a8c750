"""When a sample was taken, by the hub's clock: what nodes write is believed unless it is plainly off."""

from __future__ import annotations

import math

__all__ = ["TOLERANCE_SECONDS", "NodeTime"]

TOLERANCE_SECONDS = 2.0
"""Clocks that are apart by less than this are taken as one; it is also the delay that is no reason for doubt."""
SURE_AFTER_SAMPLES = 3
PACE = 0.5
"""Samples that come at least this share of their interval apart have not queued up somewhere."""


class NodeTime:
    """What to add to one node's times. A sample comes after it was taken, never before: that decides most cases."""

    def __init__(self, last_time: float = -math.inf) -> None:
        """``last_time``: of the sample before, by the node's clock."""
        self.offset_seconds = 0.0
        self._last_time = last_time
        self._last_received = -math.inf
        self._late = 0
        self._least_late = math.inf

    @property
    def is_right(self) -> bool:
        """Whether the node's clock is believed, and there is no doubt about it."""
        return self.offset_seconds == 0.0 and self._late == 0

    def greet(self, time: float, received: float, round_trip_seconds: float) -> None:
        """Take the node's time; ``received`` is the hub's wall clock.

        The node read its clock at some moment of the round trip, which started when the hub sent its last message. This
        bounds the offset from both sides, as in NTP. An offset within the bounds is kept, however late the hello was
        read: a busy hub must not shift the times of spooled samples.
        """
        latest = received - time
        earliest = latest - round_trip_seconds
        if earliest - TOLERANCE_SECONDS <= self.offset_seconds <= latest + TOLERANCE_SECONDS:
            return
        if math.isinf(round_trip_seconds):
            self._set(latest)
        else:
            # Half of a short round trip is the way back. A long one was mostly spent in the hub, after the hello.
            self._set(earliest + min(round_trip_seconds, TOLERANCE_SECONDS) / 2)

    def hub_moved(self, seconds: float) -> None:
        """The hub's clock was set: what it was ahead of the node, it is ahead by this much more."""
        self._set(self.offset_seconds + seconds)

    def live(
        self,
        time: float,
        received: float,
        monotonic: float,
        interval_seconds: float,
        age_seconds: float = 0.0,
    ) -> float:
        """Give when a live sample was taken. ``age_seconds``: how old it may be when it comes."""
        behind = received - time - self.offset_seconds
        if behind < -TOLERANCE_SECONDS:
            self._set(received - time)  # from the future: the clocks differ, for certain
        elif behind > TOLERANCE_SECONDS + age_seconds:
            self._doubt(time, received, monotonic, interval_seconds)
        else:
            self._late = 0
        self._last_time, self._last_received = time, monotonic
        return min(time + self.offset_seconds, received)

    def _doubt(self, time: float, received: float, monotonic: float, interval_seconds: float) -> None:
        """Tell a clock that was set back from a sample that was long on its way."""
        if time <= self._last_time:
            self._set(received - time)
            return
        if self._late and monotonic - self._last_received < PACE * interval_seconds:
            self._late = 0
        self._late += 1
        self._least_late = received - time if self._late == 1 else min(self._least_late, received - time)
        if self._late >= SURE_AFTER_SAMPLES:
            self._set(self._least_late)

    def past(self, time: float, now: float) -> float:
        """Give when a sample that comes late was taken."""
        return min(time + self.offset_seconds, now)

    def _set(self, offset_seconds: float) -> None:
        self.offset_seconds = offset_seconds if abs(offset_seconds) > TOLERANCE_SECONDS else 0.0
        self._late = 0
