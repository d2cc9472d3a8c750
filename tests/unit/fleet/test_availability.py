"""Free is claimed only when fresh and complete data says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import Availability
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample
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


def test_a_slow_driver_is_no_silent_node(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE, interval_seconds=11.0)
    for _ in range(3):
        clock.advance(11.0)
        fleet.tick()
        assert availability(fleet).state == "free"
        node.sample(IDLE, interval_seconds=11.0)
    clock.advance(34.0)
    fleet.tick()
    assert availability(fleet).state == "stale", "three of its samples are missing"
    node.sample(IDLE)
    clock.advance(3.5)
    fleet.tick()
    assert availability(fleet).state == "stale", "back at its usual interval"


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
@pytest.mark.promise("unknown-is-not-free")
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
    hung = Problem(code="driver_hung", message="the driver does not respond", is_fault=True)
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
    assert (totals.slices["busy"], totals.slices["free"]) == (1, 1)
    node.describe(gpu(0))
    node.sample(DeviceSample(memory_used_bytes=0, utilization_gpu=0.0))
    fleet.tick()
    whole = fleet.totals()
    assert (whole.devices["free"], sum(whole.slices.values())) == (1, 0), "a whole GPU is no slice"
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
        "MIG is on, but there are no slices",
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


def judged(fleet: Fleet, node: Speaker, *samples: DeviceSample, problems: tuple[Problem, ...] = ()) -> str:
    """Let a node send a sample; give its first device's state after the next tick."""
    node.sample(*samples, problems=problems)
    fleet.tick()
    return availability(fleet, node.node_id).state


def test_memory_that_nobody_holds_in_sight_takes_a_large_card_too(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    """1.5 GB of 192 GB are less than 2 %, and a job all the same."""
    node = speaker("n1")
    node.describe(gpu(0, memory_total_bytes=192 * GIB))
    assert judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=3 * GIB // 2)) == "busy"
    assert judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=GIB // 4)) == "free"


def test_memory_that_an_old_driver_reserves_is_held_by_nobody(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0, memory_basis="framebuffer_with_reserved"))
    assert judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=GIB)) == "free"
    assert judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=4 * GIB)) == "busy"


def test_the_memory_of_a_desktop_does_not_take_its_card(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(
        gpu(0, memory_total_bytes=12 * GIB),
        processes=(Process(pid=7, user="root"),),
        uses=(ProcessUse(process=0, device=0, kind="graphics"),),
    )  # its process has 10 GiB
    assert (
        judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=10 * GIB + GIB // 5))
        == "free"
    )
    assert judged(fleet, node, DeviceSample(utilization_gpu=0.0, memory_used_bytes=11 * GIB)) == "busy"


@pytest.mark.parametrize(
    ("facts", "sample"),
    [
        pytest.param({}, DeviceSample(utilization_gpu=0.0), id="memory not known"),
        pytest.param({"memory_total_bytes": None}, IDLE, id="total not known"),
        pytest.param({"memory_total_bytes": 0}, IDLE, id="total 0"),
        pytest.param(
            {}, DeviceSample(utilization_gpu=0.0, memory_used_bytes=2**64 - 1), id="used impossible"
        ),
        pytest.param({}, DeviceSample(utilization_gpu=42.0, memory_used_bytes=0), id="load impossible"),
    ],
)
@pytest.mark.promise("unknown-is-not-free")
def test_without_sane_memory_and_load_a_gpu_is_not_free(
    fleet: Fleet, speaker: Callable[[str], Speaker], facts: dict[str, object], sample: DeviceSample
) -> None:
    node = speaker("n1")
    node.describe(gpu(0, **facts))
    assert judged(fleet, node, sample) == "unknown"
    fleet.tick()
    assert availability(fleet).state == "unknown", "the next tick does not forget what it saw"
    if not facts:
        assert judged(fleet, node, IDLE) == "free"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"throttle_reasons": 128}, "power brake"),
        ({"throttle_reasons": 128 + 8}, "power brake"),
        ({"throttle_reasons": 64 + 8 + 1}, "too hot"),
        ({"throttle_reasons": 8}, "hardware slowdown"),
        ({"ecc_uncorrected": 5}, "uncorrected ECC errors"),
    ],
)
def test_broken_hardware_is_never_free(
    fleet: Fleet, speaker: Callable[[str], Speaker], changes: dict[str, int], words: str
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    assert judged(fleet, node, structs.replace(IDLE, **changes)) == "fault"
    assert availability(fleet).reason.startswith(words)
    assert fleet.totals().devices["free"] == 0
    assert judged(fleet, node, IDLE) == "free", "at once, when the newest sample says so"


def test_a_card_that_works_slowly_is_busy_and_one_with_broken_memory_is_not(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    assert judged(fleet, node, structs.replace(WORKING, throttle_reasons=128)) == "busy"
    assert judged(fleet, node, structs.replace(WORKING, ecc_uncorrected=1)) == "fault"


@pytest.mark.parametrize("bits", [1, 2, 4, 16, 32, 256, 512])
def test_other_reasons_to_be_slow_do_not_forbid_free(
    fleet: Fleet, speaker: Callable[[str], Speaker], bits: int
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    assert judged(fleet, node, structs.replace(IDLE, throttle_reasons=bits)) == "free"


def test_slices_of_a_braked_gpu_are_not_free(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "profile": "3g.40gb", "memory_total_bytes": 40 * GIB}
    node.describe(gpu(0, is_partitioned=True), gpu(1, **piece), gpu(2, **piece))
    unused = DeviceSample(memory_used_bytes=0)
    node.sample(DeviceSample(throttle_reasons=128), unused, DeviceSample(memory_used_bytes=30 * GIB))
    fleet.tick()
    assert [availability(fleet, index=i).state for i in range(3)] == ["busy", "fault", "busy"]
    node.sample(DeviceSample(throttle_reasons=128), unused, unused)
    fleet.tick()
    assert [availability(fleet, index=i).state for i in range(3)] == ["fault", "fault", "fault"]
    assert availability(fleet, index=0).reason.startswith("power brake")


@pytest.mark.parametrize(
    "uuid", ["GPU-11111111-2222-3333-4444-555555555555", "GPU-89abcdef01234567"], ids=["nvidia", "amd"]
)
def test_a_gpu_that_two_nodes_report_is_free_on_neither_and_counted_once(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock, uuid: str
) -> None:
    one, other = speaker("one"), speaker("other")
    for node in (one, other):
        node.describe(gpu(0, uuid=uuid))
        node.sample(IDLE)
    fleet.tick()
    assert [availability(fleet, name).state for name in ("one", "other")] == ["unknown", "unknown"]
    assert sum(fleet.totals().devices.values()) == 1
    other.sample(WORKING)
    fleet.tick()
    assert [availability(fleet, name).state for name in ("one", "other")] == ["unknown", "busy"]
    clock.advance(100)
    one.sample(IDLE)
    fleet.tick()
    assert [availability(fleet, name).state for name in ("one", "other")] == ["free", "offline"]
    assert (fleet.totals().devices["free"], sum(fleet.totals().devices.values())) == (1, 1)
    fleet.remove_node("other")
    fleet.tick()
    assert (availability(fleet, "one").state, sum(fleet.totals().devices.values())) == ("free", 1)


def test_the_same_report_again_is_not_fresh(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    """Yesterday's report, posted for ever, is not news; one with another time is."""
    yesterday = clock.wall() - 86400
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname="n1"), devices=(gpu(0),)),
        sample=Sample(time=yesterday, devices=(IDLE,)),
    )
    fleet.add_node("n1", "n1")
    seen = []
    for _ in range(90):
        fleet.accept_report("n1", report, 1.0)
        fleet.tick()
        seen.append(availability(fleet).state)
        clock.advance(1.0)
    assert seen[:4] == ["free"] * 4
    assert set(seen[4:60]) == {"stale"}
    assert seen[-1] == "offline"
    node = fleet.node("n1")
    assert node is not None
    assert "does not advance" in node.reason
    for _ in range(2):  # slower than the hub's clock, and behind, but it advances
        yesterday += 0.5
        fleet.accept_report("n1", structs.replace(report, sample=Sample(time=yesterday, devices=(IDLE,))), 1)
        fleet.tick()
        assert availability(fleet).state == "free"


def test_a_stopped_clock_does_not_make_numbered_samples_stale(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    for _ in range(90):
        assert judged(fleet, node, IDLE) == "free"
        clock.advance(1.0)
        node.skew -= 1.0


def test_processes_that_the_agent_may_not_see_leave_idle_cards_unknown(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    hidden = Problem(code="processes_hidden", message="run it with --pid=host")
    assert judged(fleet, node, IDLE, problems=(hidden,)) == "unknown"
    assert judged(fleet, node, WORKING, problems=(hidden,)) == "busy"


def test_a_number_that_failed_counts_only_where_it_decides(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    """MIG has no utilisation; a fan that cannot be read is no reason for doubt, a failed utilisation is."""
    node = speaker("n1")
    node.describe(gpu(0))
    unsupported = DeviceSample(memory_used_bytes=0)

    def failed(column: str) -> tuple[Problem, ...]:
        return (Problem(code="metric_failed", message="m", device_uuid="GPU-0", columns=(column,)),)

    assert judged(fleet, node, unsupported, problems=failed("fan_ratio")) == "free"
    assert judged(fleet, node, unsupported, problems=failed("utilization_gpu")) == "unknown"


@pytest.mark.parametrize(
    "xid",
    [
        Problem(code="xid", message="Xid 110: see NVIDIA's Xid catalogue", device_uuid="GPU-0"),
        Problem(code="xid", message="NVIDIA says 110", device_uuid="GPU-0", xid=110),
    ],
    ids=["older agent", "newer agent"],
)
def test_an_xid_that_nvidia_answers_with_a_reset_is_a_fault_whatever_the_agent_says(
    fleet: Fleet, speaker: Callable[[str], Speaker], xid: Problem
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    assert judged(fleet, node, IDLE, problems=(xid,)) == "fault"
    assert availability(fleet).reason == xid.message
    harmless = structs.replace(xid, message="Xid 31: page fault", xid=31)
    node = speaker("n2")
    node.describe(gpu(0))
    assert judged(fleet, node, IDLE, problems=(harmless,)) == "free"


def test_memory_of_a_neighbour_in_the_same_gpu_instance_does_not_take_a_slice(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    """Two compute instances of one GPU instance share its memory, and each tells all of it."""
    node = speaker("n1")
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "memory_total_bytes": 40 * GIB}
    slices = [gpu(index, gpu_instance=instance, **piece) for index, instance in ((1, 2), (2, 2), (3, 5))]
    node.describe(
        gpu(0, is_partitioned=True),
        *slices,
        processes=(Process(pid=7, user="ada"),),
        uses=(ProcessUse(process=0, device=1),),
    )  # its process has 10 GiB
    used = DeviceSample(memory_used_bytes=10 * GIB)
    node.sample(DeviceSample(), used, used, used)
    fleet.tick()
    states = [availability(fleet, index=index).state for index in range(4)]
    assert states == ["busy", "busy", "free", "busy"], "nobody in sight holds the last one's memory"
    more = DeviceSample(memory_used_bytes=12 * GIB)
    node.sample(DeviceSample(), more, more, DeviceSample(memory_used_bytes=0))
    fleet.tick()
    assert [availability(fleet, index=index).state for index in (2, 3)] == ["busy", "free"]


def test_idle_slices_of_one_gpu_instance_are_free(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    """There is no process whose memory could be the neighbour's."""
    node = speaker("n1")
    piece = {"kind": "slice", "parent_uuid": "GPU-0", "memory_total_bytes": 40 * GIB, "gpu_instance": 2}
    node.describe(gpu(0, is_partitioned=True), gpu(1, **piece), gpu(2, **piece))
    empty = DeviceSample(memory_used_bytes=0)
    node.sample(DeviceSample(), empty, empty)
    fleet.tick()
    assert [availability(fleet, index=index).state for index in (1, 2)] == ["free", "free"]


def test_what_cannot_be_read_of_the_hardware_is_listed(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1, health_checks=("slowdown", "ecc", "xid")))
    node.sample(structs.replace(IDLE, throttle_reasons=0), IDLE)
    fleet.tick()
    old, new = (availability(fleet, index=index) for index in (0, 1))
    assert (old.state, new.state) == ("free", "free")
    assert old.not_checked == ("ecc", "row_remap", "page_retirement", "recovery_action", "xid")
    assert new.not_checked == ("row_remap", "page_retirement", "recovery_action")
