"""Nodes that were asked for a longer interval are not overdue before it has passed; how late the hub reads is seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.intake import Intake
from support.herd import IDLE, ManualClock, Speaker, gpu


def state_of(fleet: Fleet, node_id: str) -> str:
    fleet.tick()
    view = fleet.node(node_id)
    assert view is not None
    return view.state


@pytest.mark.promise("overload-is-not-stale")
def test_a_node_is_judged_by_the_interval_that_it_was_asked_for(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    clock.advance(2.0)
    node.run.expect_every(8.0)
    clock.advance(18.0)
    assert state_of(fleet, "n1") == "live"
    view = fleet.node("n1")
    assert view is not None
    assert view.interval_seconds == 8.0
    clock.advance(5.0)
    assert state_of(fleet, "n1") == "stale", "it is overdue by that interval, too"
    node.sample(IDLE)
    # Asked for a sample a second again, it is still waiting for the end of the 8 s.
    node.run.expect_every(1.0)
    clock.advance(8.0)
    assert state_of(fleet, "n1") == "live"
    node.sample(IDLE)
    clock.advance(4.0)
    assert state_of(fleet, "n1") == "stale"


def test_use_is_counted_by_the_interval_at_which_samples_came(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    intake = fleet.intake = Intake(clock=clock, names=fleet.names, accountant=None, oldest_seconds=1e9)
    node = speaker("n1")
    node.describe(gpu(0))
    for expected in (None, 8.0, None, 1.0, None):
        if expected is not None:
            node.run.expect_every(expected)
        node.sample(IDLE)
    intake.release()
    gathered = intake.gather()
    assert gathered is not None
    intervals = [getattr(entry, "interval_seconds", None) for entry in gathered.taken]
    # The first sample after the 8 s came 8 s after the one before.
    assert intervals == [None, 1.0, 8.0, 8.0, 8.0, 1.0]


@pytest.fixture
def herd(fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]) -> list[Speaker]:
    nodes = [speaker(f"n{number}") for number in range(30)]
    for number, node in enumerate(nodes):
        node.describe(gpu(0))
        node.skew = 100.0 * number  # whatever their clocks say
    return nodes


def delay(
    fleet: Fleet, herd: list[Speaker], clock: ManualClock, late_seconds: float, late_nodes: int
) -> float:
    """Let the last of these nodes' samples be read late; return what is seen of it."""
    clock.advance(1.0)
    for number, node in enumerate(herd):
        by = late_seconds if number < late_nodes else 0.0
        node.skew -= by
        node.sample(IDLE)
        node.skew += by
    fleet.tick()
    return fleet.reading_delay_seconds()


def test_how_late_the_hub_reads(fleet: Fleet, clock: ManualClock, herd: list[Speaker]) -> None:
    assert delay(fleet, herd, clock, 0.0, 0) == 0.0
    assert delay(fleet, herd, clock, 3.0, 30) == pytest.approx(3.0, abs=0.1)
    assert delay(fleet, herd, clock, 3.0, 15) == pytest.approx(0.0, abs=0.1), (
        "half of the nodes are no reason"
    )
    clock.wall_offset += 50.0
    for node in herd:
        node.skew -= 50.0
    assert delay(fleet, herd, clock, 0.0, 0) == pytest.approx(0.0, abs=0.1), "the hub's clock was set"


def test_a_few_nodes_say_nothing_of_the_hub(fleet: Fleet, clock: ManualClock, herd: list[Speaker]) -> None:
    few = herd[:10]
    assert delay(fleet, few, clock, 0.0, 0) == 0.0
    assert delay(fleet, few, clock, 5.0, 10) == 0.0
