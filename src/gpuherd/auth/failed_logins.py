"""Failed logins in the audit log: all of them as long as they are few, a sum when someone floods."""

from __future__ import annotations

from gpuherd.model.throttle import Throttle

__all__ = ["FailedLogins"]


class FailedLogins:
    """Decides which failures get a line of their own: ``limit`` per window. Takes monotonic seconds as an argument."""

    def __init__(self, *, limit: int = 60, window_seconds: float = 60.0) -> None:
        self._throttle = Throttle(limit=limit, window_seconds=window_seconds)

    def take(self, now: float) -> str | None:
        """Give what to write along with this failure; none if it gets no line."""
        skipped = self._throttle.take(now)
        if skipped is None:
            return None
        return f"and {skipped} before it that are not listed" if skipped else ""
