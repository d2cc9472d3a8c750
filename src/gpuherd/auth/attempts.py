"""Failed attempts, counted per sender in bounded memory."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from gpuherd.model.errors import Refused

__all__ = ["FailedAttempts"]


class _Count(Struct):
    since: float
    failures: int = 0


class FailedAttempts:
    """Lets each sender fail ``limit`` times per window. ``clock`` gives monotonic seconds as an argument."""

    def __init__(self, *, limit: int = 20, window_seconds: float = 60.0, max_senders: int = 1024) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._max_senders = max_senders
        self._counts: OrderedDict[str, _Count] = OrderedDict()
        self.total = 0

    def check(self, sender: str, now: float) -> None:
        """Raise ``Refused`` ``too_many_attempts`` if this sender has used up its failures."""
        count = self._counts.get(sender)
        if count is None:
            return
        if now - count.since > self._window_seconds:
            del self._counts[sender]
        elif count.failures >= self._limit:
            raise Refused(
                "too_many_attempts", "too many failed attempts from this address; wait a minute and try again"
            )

    def failed(self, sender: str, now: float) -> None:
        """Count a failure; the longest-known senders are forgotten first when there are too many."""
        self.total += 1
        count = self._counts.setdefault(sender, _Count(now))
        count.failures += 1
        while len(self._counts) > self._max_senders:
            self._counts.popitem(last=False)
