"""The last minutes: what was live is remembered, gaps stay gaps, and no row tells a former owner's past."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.node import Node
from gpuherd.fleet.recent import INTERVAL_SECONDS, MAX_DEVICES_TOLD, MOMENTS, Recent, RecentView
from gpuherd.fleet.rows import DeviceRows, NodeRows
from gpuherd.fleet.views import NODE_STATES
from gpuherd.model.devices import DeviceSample
from support.herd import GIB, IDLE, WORKING, ManualClock, Speaker, gpu, settle

LIVE = NODE_STATES.index("live")
Speakers = Callable[[str], Speaker]


def past(fleet: Fleet, node_id: str, *uuids: str) -> RecentView:
    found = fleet.recent(node_id, uuids or None)
    assert found is not None
    return found


class Herd:
    """Moves time on in ticks of a second, in which the given nodes say the given things."""

    def __init__(self, fleet: Fleet, clock: ManualClock) -> None:
        self.fleet, self.clock = fleet, clock

    def live(self, seconds: int, *said: tuple[Speaker, tuple[DeviceSample, ...]]) -> None:
        for _ in range(seconds):
            self.clock.advance(1.0)
            for node, samples in said:
                node.sample(*samples)
            self.fleet.tick()


@pytest.fixture
def herd(fleet: Fleet, clock: ManualClock) -> Herd:
    return Herd(fleet, clock)


def test_a_moment_is_remembered_each_five_seconds(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    node = speaker("a")
    node.describe(gpu(0), gpu(1))
    herd.clock.advance(4.0)
    herd.live(19, (node, (WORKING, IDLE)))
    view = past(fleet, "a")
    assert np.diff(view.times).tolist() == [5.0] * 3
    assert 0 <= herd.clock.wall() - view.times[-1] < INTERVAL_SECONDS
    assert view.devices["GPU-0"].utilization_gpu == [0.9] * 4
    assert view.devices["GPU-0"].memory_used_bytes == [40 * GIB] * 4
    assert view.devices["GPU-1"].temperature_celsius == [30] * 4
    assert view.devices["GPU-1"].power_watts == [None] * 4
    assert view.host.cpu_ratio == [0.25] * 4
    assert view.host.memory_used_bytes == [8 * GIB] * 4


def test_the_ring_forgets_what_is_older_than_it(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    node = speaker("a")
    node.describe(gpu(0))
    herd.live(5, (node, (IDLE,)))
    herd.live(5 * MOMENTS, (node, (WORKING,)))
    view = past(fleet, "a")
    assert len(view.times) == MOMENTS
    assert view.times == sorted(view.times)
    assert set(view.devices["GPU-0"].utilization_gpu) == {0.9}


def test_a_silent_node_leaves_a_gap(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    node = speaker("a")
    node.describe(gpu(0))
    herd.live(10, (node, (WORKING,)))
    herd.live(30)
    herd.live(10, (node, (WORKING,)))
    seen = past(fleet, "a").devices["GPU-0"].utilization_gpu
    assert seen[0] == 0.9
    assert seen[-1] == 0.9
    assert seen.count(None) >= 4
    assert past(fleet, "a").host.cpu_ratio.count(None) == seen.count(None)


def test_a_long_pause_of_the_hub_is_no_part_of_the_last_minutes(
    fleet: Fleet, speaker: Speakers, herd: Herd
) -> None:
    node = speaker("a")
    node.describe(gpu(0))
    herd.live(10, (node, (WORKING,)))
    herd.clock.advance(24 * 3600)
    herd.live(10, (node, (IDLE,)))
    assert set(past(fleet, "a").devices["GPU-0"].utilization_gpu) == {0.0}


def test_a_jump_of_the_wall_clock_moves_all_times_alike(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    node = speaker("a")
    node.describe(gpu(0))
    herd.live(20, (node, (WORKING,)))
    before = past(fleet, "a").times
    herd.clock.wall_offset += 3600
    assert past(fleet, "a").times == [time + 3600 for time in before]


def test_a_new_owner_of_rows_has_no_past(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    old = speaker("old")
    old.describe(gpu(0))
    herd.live(20, (old, (WORKING,)))
    fleet.remove_node("old")
    new = speaker("new")
    new.describe(gpu(7))
    new.sample(IDLE)
    view = past(fleet, "new")
    assert set(view.devices["GPU-7"].utilization_gpu) == {None}
    assert set(view.host.cpu_ratio) == {None}
    assert fleet.recent("old") is None


def test_devices_keep_their_past_when_their_rows_move(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    first, second = speaker("first"), speaker("second")
    first.describe(gpu(0), gpu(1))
    second.describe(gpu(5))
    herd.clock.advance(4.0)
    herd.live(19, (first, (WORKING, IDLE)), (second, (IDLE,)))
    # The busy GPU is gone and another one has come: the rows of both nodes are handed out anew.
    first.describe(gpu(1), gpu(2), gpu(3))
    herd.live(1, (first, (IDLE, WORKING, WORKING)), (second, (IDLE,)))
    settle(fleet, "first", "GPU-0", "forget")
    herd.live(9, (first, (IDLE, WORKING, WORKING)), (second, (IDLE,)))
    devices = past(fleet, "first").devices
    assert devices.keys() == {"GPU-1", "GPU-2", "GPU-3"}
    assert set(devices["GPU-1"].utilization_gpu) == {0.0}
    assert devices["GPU-2"].utilization_gpu == [None] * 4 + [0.9] * 2
    second.describe(gpu(5), gpu(6))
    herd.live(5, (second, (IDLE, IDLE)))
    devices = past(fleet, "second").devices
    assert set(devices["GPU-5"].utilization_gpu) == {0.0}
    assert devices["GPU-6"].utilization_gpu == [None] * 6 + [0.0]


def test_swapped_indexes_do_not_swap_pasts(fleet: Fleet, speaker: Speakers, herd: Herd) -> None:
    node = speaker("a")
    node.describe(gpu(0), gpu(1))
    herd.live(10, (node, (WORKING, IDLE)))
    node.describe(gpu(0, uuid="GPU-1"), gpu(1, uuid="GPU-0"))
    herd.live(10, (node, (IDLE, WORKING)))
    devices = past(fleet, "a").devices
    assert set(devices["GPU-0"].utilization_gpu) == {0.9}
    assert set(devices["GPU-1"].utilization_gpu) == {0.0}


def test_only_the_named_devices_are_told_and_never_too_many(
    fleet: Fleet, speaker: Speakers, herd: Herd
) -> None:
    node = speaker("a")
    count = MAX_DEVICES_TOLD + 10
    node.describe(*(gpu(index) for index in range(count)))
    herd.live(5, (node, (IDLE,) * count))
    assert len(past(fleet, "a").devices) == MAX_DEVICES_TOLD
    assert past(fleet, "a", f"GPU-{count - 1}", "GPU-none").devices.keys() == {f"GPU-{count - 1}"}


def test_a_node_that_never_reported_has_an_empty_past(fleet: Fleet, herd: Herd) -> None:
    herd.live(6)
    fleet.add_node("later", "later")
    view = past(fleet, "later")
    assert view.host.cpu_ratio == [None] * len(view.times)
    assert view.devices == {}


def test_memory_is_bounded_as_the_documentation_says(clock: ManualClock) -> None:
    rows, nodes = DeviceRows(), NodeRows()
    recent = Recent(rows, nodes, clock)
    for number in range(1000):
        row = nodes.allocate(1)
        nodes.state[row] = LIVE
        start = rows.allocate(8)
        rows.node[start : start + 8] = row
        if number % 50 == 0:
            clock.advance(INTERVAL_SECONDS)
            recent.record()
    for _ in range(2 * MOMENTS):
        clock.advance(INTERVAL_SECONDS)
        recent.record()
    assert recent.size_bytes < 40_000_000
    node = Node("last", "last", 999)
    assert len(recent.node(node).times) == MOMENTS


def test_values_of_a_node_that_was_removed_are_not_recorded(
    fleet: Fleet, speaker: Speakers, herd: Herd
) -> None:
    node, other = speaker("a"), speaker("b")
    node.describe(gpu(0))
    other.describe(gpu(1))
    herd.live(10, (node, (WORKING,)), (other, (IDLE,)))
    fleet.remove_node("a")
    herd.live(10, (other, (IDLE,)))
    fresh = speaker("c")
    fresh.describe(structs.replace(gpu(0), uuid="GPU-fresh"))
    fresh.sample(WORKING)
    assert set(past(fleet, "c").devices["GPU-fresh"].utilization_gpu) == {None}


@pytest.mark.promise("hostile-input-is-bounded")
def test_devices_that_come_and_go_do_not_copy_the_whole_past_for_each(
    fleet: Fleet, speaker: Speakers, herd: Herd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment is as wide as the herd: copied for each device, one small report would stop the hub for seconds."""
    node, other = speaker("a"), speaker("b")
    node.describe(*(gpu(index) for index in range(100)))
    other.describe(*(structs.replace(gpu(index), uuid=f"B-{index}") for index in range(8)))
    herd.live(300, (node, (WORKING,) * 100), (other, (IDLE,) * 8))
    widened: list[int] = []
    hstack = np.hstack

    def counted(parts: tuple[np.ndarray, ...]) -> np.ndarray:
        widened.append(1)
        return hstack(parts)

    monkeypatch.setattr(np, "hstack", counted)
    for count in range(101, 121):  # they need other rows each time
        node.describe(*(gpu(index) for index in range(count)))
        herd.live(1, (node, (WORKING,) * count))
    assert 0 < len(widened) <= 4 * MOMENTS
    assert set(past(fleet, "a", "GPU-99").devices["GPU-99"].utilization_gpu) == {0.9}
