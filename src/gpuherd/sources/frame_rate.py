"""How many frames the hub takes of one node: far more than an agent sends, far fewer than would harm its neighbours."""

from __future__ import annotations

from gpuherd.model.errors import Refused

__all__ = ["TOO_MANY_FRAMES", "FrameRate"]

TOO_MANY_FRAMES = "too_many_frames"
LIVE_PER_SECOND = 100.0
"""An agent at its fastest makes 30: ten samples a second, each with new facts and a new table."""
LIVE_BURST = 2000.0
PAST_PER_SECOND = 500.0
PAST_BURST = 4000.0
WEIGHT_BYTES = 16_384
"""A frame counts as one more for each so many bytes: the largest as 65."""
LONGEST_PAUSE_SECONDS = 5.0


class FrameRate:
    """One node's allowance, over all of its links: two buckets that fill by themselves.

    What is live beyond it is a flood and refused; nobody's agent does that. History is taken more slowly instead: a
    node that was away for days has a lot to tell. ``now`` is monotonic seconds.
    """

    __slots__ = ("_filled_at", "_live", "_past")

    def __init__(self, now: float) -> None:
        self._filled_at = now
        self._live = LIVE_BURST
        self._past = PAST_BURST

    def _fill(self, now: float) -> None:
        elapsed = now - self._filled_at
        self._filled_at = now
        self._live = min(self._live + elapsed * LIVE_PER_SECOND, LIVE_BURST)
        self._past = min(self._past + elapsed * PAST_PER_SECOND, PAST_BURST)

    def take_live(self, size_bytes: int, now: float) -> None:
        """Count a live frame; ``Refused`` ``too_many_frames`` if the allowance is used up."""
        self._fill(now)
        cost = 1 + size_bytes // WEIGHT_BYTES
        if cost > self._live:
            raise Refused(
                TOO_MANY_FRAMES,
                f"this node sends more than {LIVE_PER_SECOND:.0f} frames or "
                f"{LIVE_PER_SECOND * WEIGHT_BYTES / 2**20:.1f} MiB per second and is ignored for a while; "
                "check what uses its credential: restart its agent, or enrol it again",
            )
        self._live -= cost

    def take_past(self, frames: int, size_bytes: int, now: float) -> float:
        """Count frames of history; gives how many seconds to wait before more is read."""
        self._fill(now)
        self._past -= frames + size_bytes // WEIGHT_BYTES
        return min(max(-self._past / PAST_PER_SECOND, 0.0), LONGEST_PAUSE_SECONDS)
