"""When samples were taken, by the hub's clock."""

from __future__ import annotations

import math
from typing import NamedTuple

from gpuherd.fleet.node_time import TOLERANCE_SECONDS, NodeTime
from gpuherd.fleet.taken import Gathered, Greeting, Taken

__all__ = ["HubClockDoubt", "SampleTimes"]

CLOCK_STEP_SECONDS = 1.0
"""The hub's wall clock has been set if it moved this much against the monotonic one."""
JUDGING_NODES = 3
"""If two clocks differ, either may be wrong; with three nodes, a majority has two that agree."""
DOUBTFUL_SECONDS = 30.0
"""Smaller differences may be delays: links that are slower than this are closed."""
AGREEING_SECONDS = 2 * TOLERANCE_SECONDS
"""Offsets that differ by less than this count as equal; each is known to half of it."""


class HubClockDoubt(NamedTuple):
    """Most nodes agree that the hub's clock is wrong. Wrong clocks of nodes would not agree with each other."""

    ahead_seconds: float
    """How far the hub's clock is ahead of theirs; negative: behind."""
    agreeing_nodes: int
    heard_nodes: int


class SampleTimes:
    """Knows which nodes' clocks are off. Most are right: only the others, and those in doubt, are looked at closely."""

    def __init__(self) -> None:
        self._wrong_clocks: dict[str, NodeTime] = {}
        self._heard: set[str] = set()
        self._clock_base = math.inf
        self.hub_clock_doubt: HubClockDoubt | None = None
        """As of the last samples; may be read from any thread."""

    def forget(self, node_id: str) -> None:
        """Forget the clock of a node that was removed."""
        self._wrong_clocks.pop(node_id, None)
        self._heard.discard(node_id)

    def of(self, gathered: Gathered) -> list[tuple[Taken, float]]:
        """Give each sample with its time; all that was gathered once, in order."""
        timed: list[tuple[Taken, float]] = []
        wrong = self._wrong_clocks
        for entry in gathered.taken:
            if isinstance(entry, Greeting):
                self._look_at_hub_clock(entry.received - entry.monotonic)
                self._heard.add(entry.node_id)
                if entry.node_id in wrong or abs(entry.received - entry.time) > TOLERANCE_SECONDS:
                    node = wrong.setdefault(entry.node_id, NodeTime())
                    node.greet(entry.time, entry.received, entry.round_trip_seconds)
                    self._put_right(entry.node_id, node)
                continue
            scene, time, latest, is_off = entry.scene, entry.frame.time, gathered.wall, False
            if entry.is_live:
                latest = received = entry.received
                monotonic = entry.monotonic
                if not -CLOCK_STEP_SECONDS <= received - monotonic - self._clock_base <= CLOCK_STEP_SECONDS:
                    self._look_at_hub_clock(received - monotonic)
                is_off = not -TOLERANCE_SECONDS <= received - time <= TOLERANCE_SECONDS
            self._heard.add(scene.node_id)
            if is_off or scene.node_id in wrong:
                time = self._corrected(entry, gathered.wall)
            elif time > latest:
                time = latest
            scene.last_time = entry.frame.time
            timed.append((entry, time))
        self.hub_clock_doubt = self._judge_hub_clock()
        return timed

    def _judge_hub_clock(self) -> HubClockDoubt | None:
        heard, wrong = len(self._heard), self._wrong_clocks
        if heard < JUDGING_NODES or 2 * len(wrong) <= heard:
            return None  # as good as always
        offsets = sorted(node.offset_seconds for node in wrong.values())
        middle = offsets[len(offsets) // 2]
        agreeing = sum(1 for offset in offsets if abs(offset - middle) <= AGREEING_SECONDS)
        if abs(middle) < DOUBTFUL_SECONDS or 2 * agreeing <= heard:
            return None
        return HubClockDoubt(middle, agreeing, heard)

    def _corrected(self, entry: Taken, now: float) -> float:
        scene, sent = entry.scene, entry.frame.time
        node = self._wrong_clocks.get(scene.node_id)
        if node is None:
            node = self._wrong_clocks[scene.node_id] = NodeTime(scene.last_time)
        if not entry.is_live:
            return node.past(sent, now)
        time = node.live(sent, entry.received, entry.monotonic, entry.interval_seconds, entry.age_seconds)
        self._put_right(scene.node_id, node)
        return time

    def _put_right(self, node_id: str, node: NodeTime) -> None:
        if node.is_right:
            del self._wrong_clocks[node_id]

    def _look_at_hub_clock(self, base: float) -> None:
        """See that the hub's wall clock was set: then it is apart from all nodes' clocks by that much more."""
        moved = base - self._clock_base
        if -CLOCK_STEP_SECONDS <= moved <= CLOCK_STEP_SECONDS:
            return
        is_first, self._clock_base = math.isinf(self._clock_base), base
        if is_first:
            return
        for node_id in self._heard:
            node = self._wrong_clocks.setdefault(node_id, NodeTime())
            node.hub_moved(moved)
            self._put_right(node_id, node)
