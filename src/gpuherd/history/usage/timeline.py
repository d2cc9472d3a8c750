"""Which of a node's time has been counted: all but some holes, which samples that come late may fill."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuherd.history.usage.seats import Place, Seats

__all__ = ["MAX_FRONTS", "NOBODY", "Front", "Shown", "Timeline"]

MAX_FRONTS = 16
"""Of one node; the oldest hole is given up for a newer one. What comes late usually comes in one or two runs."""
NOBODY = -1
"""Number of the stay on a seat that is not taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a sample showed, kept for the time before it, as bytes of arrays."""

    seats: Seats
    numbers: bytes
    """int64: of each seat, the number of the stay on it, or NOBODY."""
    memory: bytes
    """float64: of each seat, the memory that counts as its own; NaN if all is unknown."""
    values: bytes
    """float64: of each device, the columns that are counted by."""


class Front:
    """Up to where a stretch of a node's samples has been counted, and who was there then.

    From ``at`` to ``end`` nothing is counted yet. The node's last front has no end: there live samples come. Of all
    others, ``after`` is what the sample at the end showed.
    """

    __slots__ = ("after", "at", "end", "energy", "numbers", "seats", "taken")

    def __init__(self, at: float, seats: Seats | None = None) -> None:
        self.at = at
        self.end = math.inf
        self.after: Shown | None = None
        self.seats = seats
        self.numbers = b""
        self.taken = b""
        """bool: which seats were taken."""
        self.energy = b""
        """float64: of each device, what its energy counter said; empty if that is not known any more."""

    def forget(self, since: float) -> None:
        """Forget who was there before a moment; that nothing was counted then is still known."""
        if self.at < since:
            self.seats, self.numbers, self.taken, self.energy = None, b"", b"", b""
        if self.end < since:
            self.after = None

    def present(self) -> Iterator[tuple[Place, int]]:
        """List who was there and the numbers of their stays."""
        if self.seats is not None:
            numbers = np.frombuffer(self.numbers, np.int64).tolist()
            for place, number in zip(self.seats.places, numbers, strict=True):
                if number != NOBODY:
                    yield place, number


class Timeline:
    """A node's fronts, by time."""

    __slots__ = ("fronts", "node_id")

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        # Before its first sample all is open: what an agent has kept may be older than the first that comes.
        self.fronts = [Front(-math.inf)]

    @property
    def newest(self) -> float:
        """Time of the newest sample."""
        return self.fronts[-1].at

    def find(self, time: float) -> int | None:
        """Give the position of the front whose hole a moment is in; none if that time has been counted."""
        fronts = self.fronts
        for position in range(len(fronts) - 1, -1, -1):
            front = fronts[position]
            if front.at < time:
                return position if time < front.end else None
        return None

    def split(self, position: int, time: float) -> Front:
        """Start a new front within a hole, or where live samples come; the hole before it ends there."""
        before = self.fronts[position]
        front = Front(time)
        front.end, front.after = before.end, before.after
        before.end, before.after = time, None
        self.fronts.insert(position + 1, front)
        return front

    def last_seen(self, number: int) -> float:
        """Tell when a stay was last seen, as far as the fronts know; minus infinity if it is on none of them."""
        for front in reversed(self.fronts):
            if number in np.frombuffer(front.numbers, np.int64).tolist():
                return front.at
        return -math.inf
