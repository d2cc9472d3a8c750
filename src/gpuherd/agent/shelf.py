"""Frames in memory, and what is needed to understand the first of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from gpuherd.agent.numbering import Entry, FrameKind

__all__ = ["Shelf", "context_before"]


def context_before(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The facts and table frames in force after ``entries``: what is needed to understand the next frame."""
    facts = table = None
    for entry in entries:
        if entry.kind is FrameKind.FACTS:
            facts, table = entry, None  # a table belongs to the facts before it
        elif entry.kind is FrameKind.TABLE:
            table = entry
    return tuple(entry for entry in (facts, table) if entry is not None)


class Shelf:
    """Frames in memory, oldest first, and the facts and table in force before the first of them."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.context: tuple[Entry, ...] = ()
        self.size_bytes = 0

    def put(self, entry: Entry) -> None:
        """Add the newest frame."""
        self.entries.append(entry)
        self.size_bytes += len(entry.message)

    def take_oldest(self) -> None:
        """Let go of the oldest frame."""
        entry = self.entries.popleft()
        self.size_bytes -= len(entry.message)
        if entry.kind is not FrameKind.SAMPLE:
            self.context = context_before((*self.context, entry))

    def forget(self, through_seq: int) -> None:
        """Let go of the frames up to a number."""
        while self.entries and self.entries[0].seq <= through_seq:
            self.take_oldest()

    def reaches(self, seq: int) -> bool:
        """Whether this frame is here, with all that came after it."""
        return bool(self.entries) and self.entries[0].seq <= seq

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """The frames after ``after_seq``, and what is in force before the first of them."""
        earlier = (*self.context, *(entry for entry in self.entries if entry.seq <= after_seq))
        return tuple(entry for entry in self.entries if entry.seq > after_seq), context_before(earlier)
