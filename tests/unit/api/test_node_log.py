"""Nodes that join, go offline, come back or are removed: one line each, and never a flood."""

from __future__ import annotations

import logging
import math

import pytest

from gpuherd.api.node_log import LINES_PER_NODE, MOST_LINES, NodeLog
from gpuherd.fleet.views import NodeState


class Stage:
    """Nodes of which a test says how they are."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "gpuherd.api.node_log")
        self.now = 1000.0
        self.nodes: dict[str, tuple[str, NodeState, float]] = {}
        self.log = NodeLog(lambda: self.nodes, monotonic=lambda: self.now, quiet_seconds=300.0)
        self._caplog = caplog

    def look(self, seconds: float = 5.0) -> list[str]:
        """Let time pass and return the lines of one look, with their levels."""
        self.now += seconds
        self._caplog.clear()
        self.log.look()
        return [f"{record.levelname} {record.getMessage()}" for record in self._caplog.records]


@pytest.fixture
def stage(caplog: pytest.LogCaptureFixture) -> Stage:
    return Stage(caplog)


def test_each_event_writes_its_line_once(stage: Stage) -> None:
    stage.nodes = {"old": ("old", "live", 1.0), "gpu01": ("GPU 01", "never", math.inf)}
    assert stage.look() == [], "nodes from before a restart have not just joined"
    stage.nodes["gpu01"] = ("GPU 01", "live", 0.5)
    assert stage.look() == ["INFO node GPU 01 joined"]
    assert stage.look() == []
    stage.nodes["gpu01"] = ("GPU 01", "stale", 8.0)
    assert stage.look(400.0) == []
    stage.nodes["gpu01"] = ("GPU 01", "offline", 320.0)
    assert stage.look() == ["WARNING node GPU 01 is offline: no report for 5m 20s; run: gpuherd doctor gpu01"]
    stage.nodes["gpu01"] = ("GPU 01", "offline", 325.0)
    assert stage.look() == []
    stage.nodes["gpu01"] = ("GPU 01", "live", 0.0)
    assert stage.look(100.0) == ["INFO node GPU 01 is back after 7m 5s"]
    assert stage.look() == []
    del stage.nodes["gpu01"]
    assert stage.look() == ["INFO node GPU 01 was removed"]
    assert stage.look() == []
    stage.nodes["late"] = ("late", "live", 0.1)
    assert stage.look() == ["INFO node late joined"], "it enrolled and reported between two looks"


def test_nodes_have_time_to_reconnect_after_a_start(stage: Stage) -> None:
    stage.nodes = {"gpu01": ("gpu01", "offline", 4000.0), "gpu02": ("gpu02", "offline", 4000.0)}
    assert stage.look() == []
    stage.nodes["gpu01"] = ("gpu01", "live", 0.0)
    assert stage.look() == [], "it was never called offline"
    assert stage.look(300.0) == [
        "WARNING node gpu02 is offline: no report for 1h 6m 40s; run: gpuherd doctor gpu02"
    ]


def test_a_node_that_comes_and_goes_does_not_flood_the_log(stage: Stage) -> None:
    stage.nodes = {"gpu01": ("gpu01", "live", 0.0)}
    stage.look(400.0)
    lines = []
    for turn in range(100):
        stage.nodes["gpu01"] = ("gpu01", "offline" if turn % 2 else "live", 0.1)
        lines += stage.look(0.5)
    assert len(lines) == LINES_PER_NODE
    stage.nodes["gpu01"] = ("gpu01", "live", 0.1)
    assert stage.look(60.0) == ["INFO node gpu01 is back after 1m (95 similar messages were not logged)"]


def test_many_nodes_at_once_share_a_line(stage: Stage) -> None:
    stage.look()
    stage.nodes = {f"n{number:02}": (f"n{number:02}", "live", 0.0) for number in range(MOST_LINES)}
    assert len(stage.look()) == MOST_LINES
    stage.nodes |= {f"m{number:02}": (f"m{number:02}", "live", 0.0) for number in range(MOST_LINES + 1)}
    assert stage.look() == ["INFO 11 nodes joined: m00, m01, m02, m03, m04, m05, m06, m07, m08, m09, …"]
