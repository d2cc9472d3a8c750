"""Compares bookings with who was on their devices."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise

from gpuherd.history.usage.answers import BookedSpan, BookedUse
from gpuherd.model.people import person_key

__all__ = ["Presence", "booked_use"]

Presence = tuple[str | None, float, float, float, float, float]
"""User, start and length of the slot, first and last seen in it, seconds counted of that."""


def booked_use(span: BookedSpan, rows: Sequence[Presence]) -> BookedUse:
    """Tell how long of a booking its holder was there, only others were, and nobody was.

    However many are there at the same time, it is the time of one.
    """
    holders = {person_key(name) for name in span.users}
    own: list[tuple[float, float, float]] = []
    anyone: list[tuple[float, float, float]] = []
    for user, slot, seconds, first, last, held in rows:
        start, end = max(span.start, first, slot), min(span.end, last, slot + seconds)
        if end > start:
            # It may have been away in between: then it was there for a part of every moment.
            piece = (start, end, min(1.0, held / (last - first)))
            anyone.append(piece)
            if user is not None and person_key(user) in holders:
                own.append(piece)
    booked, used, present = max(0.0, span.end - span.start), _union(own), _union(anyone)
    others, unused = max(0.0, present - used), max(0.0, booked - present)
    return BookedUse(span.id, span.node_id, span.uuid, booked, used, others, unused)


def _union(pieces: list[tuple[float, float, float]]) -> float:
    """Add up the time that is in any of the pieces (start, end, which part of it counts), at each moment the most."""
    waiting = sorted(pieces, reverse=True)
    edges = sorted({edge for start, end, _ in pieces for edge in (start, end)})
    present: list[tuple[float, float]] = []
    total = 0.0
    for left, right in pairwise(edges):
        while waiting and waiting[-1][0] <= left:
            _, end, part = waiting.pop()
            heapq.heappush(present, (-part, end))
        while present and present[0][1] <= left:
            heapq.heappop(present)
        if present:
            total += (right - left) * -present[0][0]
    return total
