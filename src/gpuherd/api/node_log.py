"""Log lines for nodes that join, go offline, come back or are removed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from gpuherd.api.sparing_log import SparingLog
from gpuherd.bookings.times import format_duration
from gpuherd.fleet.views import NodeState

__all__ = ["NodeLog"]

log = logging.getLogger(__name__)

MOST_LINES = 10
"""Lines per event and look; more nodes than that share one line."""
LINES_PER_NODE = 4
"""Lines per node and minute, so that a node that comes and goes does not flood the log."""


class NodeLog:
    """Compares the nodes with how they were at the last look and logs what has changed."""

    def __init__(
        self,
        statuses: Callable[[], Mapping[str, tuple[str, NodeState, float]]],
        *,
        monotonic: Callable[[], float],
        quiet_seconds: float,
    ) -> None:
        """``statuses`` gives each node's name, state and seconds since its last report, by id.

        For ``quiet_seconds`` no node is called offline: after a start, nodes need time to reconnect.
        """
        self._statuses = statuses
        self._monotonic = monotonic
        self._quiet_until = monotonic() + quiet_seconds
        self._known: dict[str, str] | None = None
        self._never: set[str] = set()
        self._offline: dict[str, float] = {}
        """When each offline node has sent its last report."""
        self._sparing = SparingLog(log, limit=LINES_PER_NODE, monotonic=monotonic)

    def look(self) -> None:
        """Log what has changed since the last look. Every few seconds."""
        now, statuses = self._monotonic(), self._statuses()
        joined: dict[str, str] = {}
        offline: dict[str, str] = {}
        back: dict[str, str] = {}
        is_first, known = self._known is None, self._known or {}
        for node_id, (name, state, age) in statuses.items():
            if state == "never":
                self._never.add(node_id)
            elif state == "offline":
                if node_id not in self._offline and now >= self._quiet_until:
                    self._offline[node_id] = now - age
                    offline[node_id] = name
            elif node_id in self._never or (not is_first and node_id not in known):
                self._never.discard(node_id)
                joined[node_id] = name
            elif node_id in self._offline:
                back[node_id] = name
        removed = {node_id: name for node_id, name in known.items() if node_id not in statuses}
        self._known = {node_id: name for node_id, (name, _, _) in statuses.items()}

        for node_id, name in self._few(logging.INFO, "joined", joined):
            self._sparing.log(logging.INFO, node_id, f"node {name} joined")
        for node_id, name in self._few(logging.WARNING, "are offline", offline):
            silence = format_duration(int(now - self._offline[node_id]))
            self._sparing.log(
                logging.WARNING,
                node_id,
                f"node {name} is offline: no report for {silence}; run: gpuherd doctor {node_id}",
            )
        for node_id, name in self._few(logging.INFO, "are back", back):
            absence = format_duration(int(now - self._offline[node_id]))
            self._sparing.log(logging.INFO, node_id, f"node {name} is back after {absence}")
        for node_id, name in self._few(logging.INFO, "were removed", removed):
            self._sparing.log(logging.INFO, node_id, f"node {name} was removed")
        for node_id in (*back, *removed):
            self._never.discard(node_id)
            self._offline.pop(node_id, None)

    def _few(self, level: int, what: str, nodes: dict[str, str]) -> Iterable[tuple[str, str]]:
        """Return the nodes, if they are few enough for a line each; otherwise log one line for all."""
        if len(nodes) <= MOST_LINES:
            return nodes.items()
        names = ", ".join(list(nodes.values())[:MOST_LINES])
        log.log(level, "%d nodes %s: %s, …", len(nodes), what, names)
        return ()
