"""Failed logins in the audit log: all of them as long as they are few, a sum when someone floods."""

from __future__ import annotations

__all__ = ["FailedLogins"]


class FailedLogins:
    """Decides which failures get a line of their own: ``limit`` per window. Takes monotonic seconds as an argument."""

    def __init__(self, *, limit: int = 60, window_seconds: float = 60.0) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._since = float("-inf")
        self._written = 0
        self._skipped = 0

    def take(self, now: float) -> str | None:
        """Give what to write along with this failure; none if it gets no line."""
        if now - self._since > self._window_seconds:
            self._since, self._written = now, 0
        if self._written >= self._limit:
            self._skipped += 1
            return None
        self._written += 1
        skipped, self._skipped = self._skipped, 0
        return f"and {skipped} before it that are not listed" if skipped else ""
