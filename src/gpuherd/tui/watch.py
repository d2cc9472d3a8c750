"""What a feed brings, put together: the herd, how it comes, how old it is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable

from gpuherd.client.live import Condition, Feed
from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_messages import HerdChange
from gpuherd.client.live_nodes import shown
from gpuherd.model.errors import GpuherdError

__all__ = ["Watch"]

LEAST_OLD_SECONDS = 3.0
TICKS_UNTIL_OLD = 3


class Watch:
    """The herd as it is known, and how well it is known."""

    def __init__(self, feed: Feed, monotonic: Callable[[], float]) -> None:
        self.feed = feed
        self.herd = LiveHerd()
        self.condition = Condition("connecting")
        self.is_paused = False
        self.monotonic = monotonic
        self._arrived_at: float | None = None

    def apply(self, change: HerdChange) -> bool:
        """Take a message; false if it changes nothing. What does not fit is asked for anew, in due time."""
        if self.is_paused:
            return False
        try:
            follows = self.herd.apply(change)
        except GpuherdError as error:
            self.feed.reject(str(error))
            return False
        if not follows:
            self.feed.reject("the hub's live stream skipped an update")
            return False
        self._arrived_at = self.monotonic()
        return True

    def turn_pause(self) -> None:
        """Let everything stand still, or go on."""
        self.is_paused = not self.is_paused
        if self.is_paused:
            self.feed.pause()
        else:
            self.feed.resume()

    @property
    def age_seconds(self) -> float | None:
        """How long ago the last message came; none before the first."""
        return None if self._arrived_at is None else max(0.0, self.monotonic() - self._arrived_at)

    @property
    def now(self) -> float:
        """The hub's clock, counted on from the last message."""
        return self.herd.time + (0.0 if self.is_paused else self.age_seconds or 0.0)

    @property
    def is_old(self) -> bool:
        """Whether what is shown may be otherwise by now, and nobody wants that."""
        age = self.age_seconds
        if age is None or self.is_paused:
            return False
        longest = max(LEAST_OLD_SECONDS, TICKS_UNTIL_OLD * self.herd.tick_seconds)
        return self.condition.phase == "away" or age > longest

    @property
    def trouble(self) -> str:
        """What is wrong with the data or the herd as a whole, in a sentence; empty if nothing is."""
        herd, reason = self.herd, shown(self.condition.reason, 300)
        if self.condition.phase == "away" and not self.is_paused:
            return f"{reason}; retrying, press r to retry now" if reason else ""
        if self.condition.phase == "polling":
            return f"no live stream: {reason}; polling every 5 s instead"
        if herd.tick is not None and not herd.nodes and any(herd.totals.devices.values()):
            return "this hub shows only totals without a login; log in with: gpuherd login"
        return "; ".join(shown(notice.message, 200) for notice in herd.notices)

    @property
    def emptiness(self) -> str:
        """Why there is nothing to see; empty if there is something."""
        if self.herd.tick is None:
            return f"asking {self.feed.place} …"
        return "" if self.herd.nodes else "there is no node yet"
