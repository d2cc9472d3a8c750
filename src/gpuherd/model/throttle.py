"""Decide which of many similar events are logged."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from msgspec import Struct

__all__ = ["Throttle"]


class _Window(Struct):
    since: float
    taken: int = 0
    skipped: int = 0


class Throttle:
    """Lets ``limit`` events per kind and window pass, and counts the others. Takes monotonic seconds as an argument."""

    def __init__(self, *, limit: int = 1, window_seconds: float = 60.0, max_kinds: int = 256) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._max_kinds = max_kinds
        self._windows: OrderedDict[Hashable, _Window] = OrderedDict()

    def take(self, now: float, kind: Hashable = None) -> int | None:
        """Return how many events were skipped before this one; None if this one is to be skipped, too."""
        window = self._windows.setdefault(kind, _Window(now))
        while len(self._windows) > self._max_kinds:
            self._windows.popitem(last=False)
        if now - window.since > self._window_seconds:
            window.since, window.taken = now, 0
        if window.taken >= self._limit:
            window.skipped += 1
            return None
        window.taken += 1
        skipped, window.skipped = window.skipped, 0
        return skipped
