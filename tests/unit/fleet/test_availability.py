"""Free is claimed only when fresh and complete data says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import Availability
from gpuherd.model.devices import DeviceSample
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import Problem
from support.herd import GIB, HOLDING, IDLE, WORKING, ManualClock, Speaker, gpu


def availability(fleet: Fleet, node_id: str = "n1", index: int = 0) -> Availability:
    node = fleet.node(node_id)
    assert node is not None
    return node.devices[index].availability


def test_an_idle_gpu_is_free(fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.tick()
    assert availability(fleet).state == "free"
    assert availability(fleet).since == pytest.approx(clock.wall())


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(WORKING, id="work"),
        pytest.param(HOLDING, id="memory"),
        pytest.param(DeviceSample(utilization_gpu=0.05, memory_used_bytes=0), id="at the threshold"),
        pytest.param(DeviceSample(memory_used_bytes=40 * GIB), id="memory, utilisation unknown"),
    ],
)
def test_a_gpu_in_use_is_busy(fleet: Fleet, speaker: Callable[[str], Speaker], sample: DeviceSample) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(sample)
    fleet.tick()
    assert availability(fleet).state == "busy"


def test_a_process_without_memory_or_work_makes_it_busy(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), processes=(Process(pid=7, user="user01"),), uses=(ProcessUse(process=0, device=0),))
    node.sample(IDLE)
    fleet.tick()
    assert availability(fleet).state == "busy"


def test_a_desktop_on_the_card_does_not_take_it(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(
        gpu(0),
        processes=(Process(pid=7, user="root"),),
        uses=(ProcessUse(process=0, device=0, kind="graphics"),),
    )
    node.sample(IDLE)
    fleet.tick()
    assert availability(fleet).state == "free"


def test_held_after_the_idle_window_and_since_the_work_ended(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(WORKING)
    fleet.tick()
    ended = clock.wall()
    for _ in range(61):
        clock.advance(10)
        node.sample(HOLDING)
        fleet.tick()
    held = availability(fleet)
    assert held.state == "held"
    assert held.since == pytest.approx(ended)
    node.sample(WORKING)
    fleet.tick()
    assert availability(fleet).state == "busy"


def test_idleness_that_nobody_watched_is_not_claimed(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    clock.advance(5000)
    node.sample(HOLDING)
    fleet.tick()
    assert availability(fleet).state == "busy"


def test_silence_turns_free_into_stale_then_offline_and_back(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.tick()
    became_free = clock.wall()
    clock.advance(3.5)
    fleet.tick()
    assert availability(fleet).state == "stale"
    node.sample(IDLE)
    fleet.tick()
    assert availability(fleet).state == "free"
    assert availability(fleet).since == pytest.approx(became_free)
    last = clock.wall()
    clock.advance(61)
    fleet.tick()
    assert availability(fleet).state == "offline"
    assert availability(fleet).since == pytest.approx(last)
    node.sample(IDLE)
    fleet.tick()
    assert availability(fleet).state == "free"
    assert availability(fleet).since == pytest.approx(clock.wall())


@pytest.mark.parametrize(
    ("sample", "problem"),
    [
        pytest.param(DeviceSample(), None, id="nothing readable"),
        pytest.param(
            DeviceSample(memory_used_bytes=0),
            Problem(code="metric_failed", message="m", device_uuid="GPU-0"),
            id="utilisation failed",
        ),
        pytest.param(
            DeviceSample(utilization_gpu=0.0), Problem(code="metric_failed", message="m"), id="memory failed"
        ),
        pytest.param(IDLE, Problem(code="processes_failed", message="m"), id="processes unknown"),
        pytest.param(
            IDLE,
            Problem(code="processes_failed", message="m", device_uuid="GPU-0"),
            id="processes of this GPU unknown",
        ),
    ],
)
def test_partial_data_is_never_free(
    fleet: Fleet, speaker: Callable[[str], Speaker], sample: DeviceSample, problem: Problem | None
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(sample, problems=() if problem is None else (problem,))
    fleet.tick()
    assert availability(fleet).state == "unknown"


def test_a_fault_speaks_for_its_own_gpu_only(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1))
    lost = Problem(code="gpu_lost", message="GPU has fallen off the bus", device_uuid="GPU-1", is_fault=True)
    node.sample(IDLE, DeviceSample(), problems=(lost,))
    fleet.tick()
    assert availability(fleet, index=0).state == "free"
    assert availability(fleet, index=1).state == "fault"
    assert availability(fleet, index=1).reason == "GPU has fallen off the bus"
    node.sample(IDLE, IDLE)
    fleet.tick()
    assert availability(fleet, index=1).state == "free"


def test_a_fault_of_the_whole_node_spares_no_gpu(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1))
    hung = Problem(code="driver_hung", message="the driver does not answer", is_fault=True)
    node.sample(IDLE, IDLE, problems=(hung,))
    fleet.tick()
    assert [availability(fleet, index=i).state for i in (0, 1)] == ["fault", "fault"]


def test_host_memory_does_not_make_a_unified_gpu_busy(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0, memory_basis="host"))
    node.sample(HOLDING)
    fleet.tick()
    assert availability(fleet).state == "free"
    node.sample(DeviceSample(memory_used_bytes=40 * GIB))
    fleet.tick()
    assert availability(fleet).state == "unknown"


def test_slices_speak_for_their_parent_and_are_counted_once(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "profile": "3g.40gb", "memory_total_bytes": 40 * GIB}
    node.describe(gpu(0, is_partitioned=True), gpu(1, **piece), gpu(2, **piece))
    node.sample(DeviceSample(), DeviceSample(memory_used_bytes=30 * GIB), DeviceSample(memory_used_bytes=0))
    fleet.tick()
    assert [availability(fleet, index=i).state for i in range(3)] == ["busy", "busy", "free"]
    totals = fleet.totals()
    assert (totals.devices["busy"], totals.devices["free"]) == (1, 1)
    assert [model.short_name for model in totals.models] == ["A100 80GB 3g.40gb"]


def test_a_jump_of_the_hubs_clock_ages_nothing(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.tick()
    clock.wall_offset += 3600
    fleet.tick()
    assert availability(fleet).state == "free"
    assert availability(fleet).since == pytest.approx(clock.wall())


def test_a_partitioned_gpu_without_slices_is_never_free(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0, is_partitioned=True))
    node.sample(DeviceSample(memory_used_bytes=0))
    fleet.tick()
    availability = fleet.devices()[0].availability
    assert (availability.state, availability.reason) == (
        "unknown",
        "to be split into slices (MIG), but there are none",
    )


def test_a_fault_of_the_parent_takes_its_slices_along(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "profile": "3g.40gb", "memory_total_bytes": 40 * GIB}
    node.describe(gpu(0, is_partitioned=True), gpu(1, **piece), gpu(2))
    xid = Problem(code="xid", message="Xid 79: fallen off the bus", device_uuid="GPU-0", is_fault=True)
    node.sample(DeviceSample(), DeviceSample(memory_used_bytes=0), IDLE, problems=(xid,))
    fleet.tick()
    assert [availability(fleet, index=i).state for i in range(3)] == ["fault", "fault", "free"]
    assert availability(fleet, index=1).reason == "Xid 79: fallen off the bus"


def test_a_broken_fan_sensor_does_not_hide_that_a_gpu_is_free(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE, problems=(Problem(code="metric_failed", message="fan", device_uuid="GPU-0"),))
    fleet.tick()
    assert availability(fleet).state == "free"


def test_a_node_that_reports_rarely_is_not_offline_between_its_reports(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.run = node.connect(interval_seconds=300.0)
    node.describe(gpu(0))
    node.sample(IDLE)
    clock.advance(299)
    fleet.tick()
    assert availability(fleet).state == "free"
    clock.advance(900)
    fleet.tick()
    assert availability(fleet).state == "offline"


def test_a_blip_makes_it_busy_for_that_moment_and_does_not_restart_the_window(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(HOLDING)
    fleet.tick()
    taken = clock.wall()
    seen = []
    for second in range(1, 1201):
        clock.advance(1)
        node.sample(WORKING if second % 200 == 0 else HOLDING)  # one second in 200 is half a per cent
        fleet.tick()
        seen.append(availability(fleet).state)
    assert seen[598:600] == ["busy", "busy"]  # the window was not over before, and then came a blip
    assert [second for second, state in enumerate(seen, 1) if state == "busy" and second > 600] == [
        800,
        1000,
        1200,
    ]
    clock.advance(1)
    node.sample(HOLDING)
    fleet.tick()
    held = availability(fleet)
    assert held.state == "held"
    assert held.since == pytest.approx(taken)


def test_work_that_comes_and_goes_keeps_it_busy(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    states = set()
    for second in range(1500):
        node.sample(WORKING if second % 300 < 30 else HOLDING)  # a tenth of the time
        fleet.tick()
        states.add(availability(fleet).state)
        clock.advance(1)
    assert states == {"busy"}


def test_the_window_rolls_on_after_long_work(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    """What was worked before the window does not count in it."""
    node = speaker("n1")
    node.describe(gpu(0))
    for _ in range(3000):
        node.sample(WORKING)
        fleet.tick()
        clock.advance(1)
    ended = clock.wall() - 1
    held_after = None
    for second in range(700):
        node.sample(HOLDING)
        fleet.tick()
        if availability(fleet).state == "held" and held_after is None:
            held_after = second
        clock.advance(1)
    assert held_after == pytest.approx(600, abs=2)
    assert availability(fleet).since == pytest.approx(ended)
