"""How often nodes are sampled, as their samples show it."""

from __future__ import annotations

import math

__all__ = ["Paces"]

_PATIENCE = 3.0
"""So many intervals without a sample are a gap, as where use is counted."""


class Paces:
    """Knows when each node was sampled last, and how far its samples are apart. For one thread at a time."""

    def __init__(self, seen: dict[str, float]) -> None:
        """``seen``: when each node was sampled last; kept up to date."""
        self.seen = seen
        self._distances: dict[str, tuple[float, float]] = {}
        """Of each node, the last two."""

    def note(self, node_id: str, time: float) -> None:
        """Take a sample's time. One that is not newer changes nothing."""
        before = self.seen.get(node_id, -math.inf)
        if time > before:
            self.seen[node_id] = time
            self._distances[node_id] = (self._distances.get(node_id, (math.inf,))[-1], time - before)

    def is_heard(self, node_id: str, now: float, least_seconds: float) -> bool:
        """Tell whether a node's last sample is not older than that, or than a few of its intervals."""
        # Of two, because the first sample after a gap is far from the one before it.
        interval = min(self._distances.get(node_id, (math.inf,)))
        patience = _PATIENCE * interval if interval < math.inf else 0.0
        return now - self.seen.get(node_id, -math.inf) <= max(least_seconds, patience)
