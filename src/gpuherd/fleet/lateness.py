"""How late the hub reads what nodes send, measured by the times in their samples."""

from __future__ import annotations

import numpy as np

from gpuherd.fleet.rows import NodeRows
from gpuherd.fleet.views import NODE_STATES

__all__ = ["Lateness"]

FEWEST_NODES = 20
"""With fewer nodes, a slow node would look like a slow hub."""
MOST_NODES_PERCENTILE = 25
"""Three of four nodes have to be late: a node whose clock was set or whose network is slow proves nothing."""
DRIFT = 0.002
"""Clocks drift apart more slowly than this; in seconds per second."""
_HEARD = (NODE_STATES.index("live"), NODE_STATES.index("stale"))


class Lateness:
    """Compares each sample's delay with the shortest of that node, so that the node's clock need not be right."""

    def __init__(self, rows: NodeRows) -> None:
        self._rows = rows
        self._soonest = np.full(0, np.inf)
        self._looked_at = -np.inf

    def seconds(self, wall: float, monotonic: float) -> float:
        """Return how much later than possible the samples of most nodes arrive; 0 with too few nodes."""
        rows = self._rows
        if len(self._soonest) != rows.capacity:
            grown = np.full(rows.capacity, np.inf)
            grown[: len(self._soonest)] = self._soonest[: rows.capacity]
            self._soonest = grown
        is_heard = np.isin(rows.state, _HEARD) & rows.is_used & np.isfinite(rows.skew)
        # Against the monotonic clock: the wall clock may be set.
        late = np.where(is_heard, monotonic - wall - rows.skew, np.inf)
        passed = max(0.0, monotonic - self._looked_at) if np.isfinite(self._looked_at) else 0.0
        self._looked_at = monotonic
        self._soonest = np.where(is_heard, np.minimum(self._soonest + DRIFT * passed, late), np.inf)
        if int(is_heard.sum()) < FEWEST_NODES:
            return 0.0
        return float(np.percentile(late[is_heard] - self._soonest[is_heard], MOST_NODES_PERCENTILE))
