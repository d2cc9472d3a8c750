"""Reading many links in one go: a hub that wakes up for each sample by itself spends most of its time waking up."""

from __future__ import annotations

import asyncio
import math

__all__ = ["PacedLink", "Pacer"]

LONGEST_STEP_SECONDS = 0.25
STEPS_PER_INTERVAL = 8
LEEWAY_STEPS = 0.25
"""How long before its group a round should be there: nodes are always a little slower than their interval."""
INTERVALS_SECONDS = (0.8, 10.0)
"""Shorter ones would be delayed too much; longer ones would notice too late that a link has ended, and are rare."""


class PacedLink:
    """A link's transport, and when it was last woken up."""

    __slots__ = ("number", "transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.number = -1


class Pacer:
    """Lets a link rest after its round until the next one is due, and wakes links up in groups.

    The socket is not read meanwhile: no event reaches the loop. A sample waits for its group by up to one step, a
    quarter of a second or an eighth of the interval, and so does the end of a link by up to an interval and a step.
    """

    def __init__(self, interval_seconds: float) -> None:
        shortest, longest = INTERVALS_SECONDS
        self._is_used = shortest <= interval_seconds <= longest
        # A whole number of steps makes an interval: links stay with their group.
        self._steps = max(STEPS_PER_INTERVAL, math.ceil(interval_seconds / LONGEST_STEP_SECONDS))
        self._step_seconds = interval_seconds / self._steps
        self._groups: dict[int, list[PacedLink]] = {}

    def rest(self, link: PacedLink) -> None:
        """Read no more of a link until its next round should be there."""
        transport = link.transport
        if not self._is_used or transport.is_closing() or not transport.is_reading():
            return
        loop = asyncio.get_running_loop()
        now = loop.time() / self._step_seconds
        # A round that had been waiting will wait the same time for the next group; one that came late needs leeway.
        is_in_step = now < link.number + 0.5
        number = self._steps + (link.number if is_in_step else math.ceil(now + LEEWAY_STEPS))
        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = []
            loop.call_at(number * self._step_seconds, self._wake, number)
        link.number = number
        transport.pause_reading()
        group.append(link)

    def _wake(self, number: int) -> None:
        for link in self._groups.pop(number):
            if not link.transport.is_closing():
                link.transport.resume_reading()
