"""Runs, duplicates, gaps, backlog, hostile content, restarts: what reaches the live state and what does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from msgspec import structs

from gpuherd.fleet.fleet import Fleet
from gpuherd.model.devices import DeviceSample
from gpuherd.model.errors import Refused
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Report, Sample
from gpuherd.wire.codec import UnknownFrame, encode
from gpuherd.wire.frames import FactsFrame, Hello, SampleFrame, TableFrame
from gpuherd.wire.matrix import LAYOUT, pack_numbers
from support.herd import GIB, IDLE, WORKING, ManualClock, Speaker, gpu

GPU = gpu(0)


def utilization(fleet: Fleet, node_id: str = "n1") -> float | None:
    node = fleet.node(node_id)
    assert node is not None
    return node.devices[0].sample.utilization_gpu


def test_a_never_seen_node_is_listed(fleet: Fleet) -> None:
    fleet.add_node("n1", "Node one")
    fleet.tick()
    node = fleet.node("n1")
    assert node is not None
    assert (node.name, node.state, node.host, node.age_seconds) == ("Node one", "never", None, None)
    assert fleet.totals().nodes["never"] == 1


def test_an_unknown_node_cannot_open_a_run(fleet: Fleet) -> None:
    with pytest.raises(Refused, match="not enrolled") as refused:
        fleet.open_run("stranger", Hello(boot_id="b", layout=LAYOUT, time=0, interval_seconds=1))
    assert refused.value.code == "unknown_node"


def test_a_repeated_frame_is_counted_and_ignored(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.sample(WORKING)
    node.sample(IDLE, seq=node.seq)
    assert utilization(fleet) == 0.9
    assert fleet.node_health()[0].duplicates == 1
    assert node.connect().resume_after_seq == node.seq


def test_missing_numbers_are_counted(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.seq += 5
    node.sample(IDLE)
    assert fleet.node_health()[0].missed == 5


def test_what_agents_dropped_adds_up_over_runs(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.connect(dropped=5)
    node.connect(dropped=7)  # the same run says the sum so far
    node.boot_id = "boot-2"
    node.connect(dropped=2)
    node.connect(dropped=2)
    assert fleet.node_health()[0].dropped_by_agent == 9


def test_backlog_is_taken_but_never_shown_as_live(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.sample(IDLE)
    clock.advance(100)
    node.connect(live_from_seq=node.seq + 10)
    node.send_facts()
    node.run_table()
    node.sample(WORKING)
    fleet.tick()
    assert utilization(fleet) == 0.0
    assert fleet.totals().nodes["offline"] == 1
    assert fleet.node_health()[0].backfilled == 1
    assert node.run.received_seq == node.seq


def test_old_samples_of_a_spool_wait_for_the_live_one(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.connect(live_from_seq=node.seq + 5)
    node.send_facts()
    node.run_table()
    node.sample(WORKING)
    node.sample(WORKING)
    shown = fleet.node("n1")
    assert shown is not None
    assert shown.devices == ()
    node.sample(IDLE)
    assert utilization(fleet) == 0.0
    assert fleet.node_health()[0].backfilled == 2


def test_a_sample_must_name_the_facts_and_table_that_were_sent(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    with pytest.raises(Refused, match="send the facts first"):
        node.sample()
    node.describe(GPU)
    node.sample(IDLE)
    with pytest.raises(Refused, match="do not fit 1 devices"):
        node.sample(IDLE, IDLE)
    frame = FactsFrame(seq=node.next_seq(), revision=99, facts=structs.replace(node.facts, devices=()))
    node.run.accept(frame, encode(frame))
    early = SampleFrame(seq=node.next_seq(), time=1, facts_revision=99, table_revision=2, host=b"")
    with pytest.raises(Refused, match="send the table first") as refused:
        node.run.accept(early, encode(early))
    assert refused.value.code == "unknown_table"
    assert utilization(fleet) == 0.0
    health = fleet.node_health()[0]
    assert health.refused == {"unknown_facts": 1, "matrix_misshapen": 1, "unknown_table": 1}
    assert health.last_error is not None


def test_one_nodes_nonsense_leaves_the_others_alone(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    good, bad = speaker("n1"), speaker("n2")
    good.describe(GPU)
    good.sample(WORKING)
    table = ProcessTable(processes=(), uses=(ProcessUse(process=3, device=9),))
    bad.describe(GPU)
    frame = TableFrame(seq=bad.next_seq(), revision=9, facts_revision=1, table=table)
    with pytest.raises(Refused, match="device 9 of 1"):
        bad.run.accept(frame, encode(frame))
    facts = NodeFacts(host=HostFacts(hostname="x"), devices=(GPU, GPU))
    twice = FactsFrame(seq=bad.next_seq(), revision=10, facts=facts)
    with pytest.raises(Refused, match="GPU-0"):
        bad.run.accept(twice, encode(twice))
    fleet.tick()
    assert utilization(fleet) == 0.9
    assert fleet.node_health()[0].refused == {}


def test_impossible_values_become_unknown_and_are_counted(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    cells = [math.inf, 9.2e18, *([math.nan] * (len(LAYOUT.devices) - 2))]
    frame = SampleFrame(
        seq=node.next_seq(),
        time=1,
        facts_revision=node.run.facts_revision,
        table_revision=node.run.table_revision,
        host=pack_numbers([None] * len(LAYOUT.host)),
        devices=pack_numbers(cells),
        disks=pack_numbers([None]),
    )
    node.run.accept(frame, encode(frame))
    assert utilization(fleet) is None
    fleet.tick()
    assert utilization(fleet) is None
    health = fleet.node_health()[0]
    assert health.values_refused == 2
    assert health.last_error == "utilization_memory = 9.2e+18 is impossible; shown as unknown"


def test_a_newer_agent_with_other_columns_is_understood(fleet: Fleet, clock: ManualClock) -> None:
    fleet.add_node("n1", "n1")
    layout = structs.replace(
        LAYOUT,
        devices=("future_metric", "memory_used_bytes", "utilization_gpu"),
        host=("cpu_ratio", "novelty"),
    )
    run = fleet.open_run("n1", Hello(boot_id="b", layout=layout, time=clock.wall(), interval_seconds=1))
    facts = FactsFrame(seq=0, revision=1, facts=NodeFacts(host=HostFacts(hostname="x"), devices=(GPU,)))
    run.accept(facts, encode(facts))
    table = TableFrame(seq=1, revision=1, facts_revision=1, table=ProcessTable())
    run.accept(table, encode(table))
    sample = SampleFrame(
        seq=2,
        time=clock.wall(),
        facts_revision=1,
        table_revision=1,
        host=pack_numbers([0.5, 7]),
        devices=pack_numbers([123, GIB, 0.25]),
    )
    run.accept(sample, encode(sample))
    run.accept(UnknownFrame(type="from_the_future", seq=3), b"")
    node = fleet.node("n1")
    assert node is not None
    assert node.devices[0].sample == DeviceSample(utilization_gpu=0.25, memory_used_bytes=GIB)
    assert node.host_sample.cpu_ratio == 0.5
    assert fleet.node_health()[0].unknown_frames == 1
    assert run.received_seq == 3


def test_hostile_text_is_made_harmless(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(
        structs.replace(GPU, name="<b>\x1b[31mGPU\u202e"),
        processes=(Process(pid=1, user="a\u200bb", command="x\ny"),),
        uses=(ProcessUse(process=0, device=0),),
    )
    node.sample(IDLE)
    shown = fleet.node("n1")
    assert shown is not None
    assert shown.devices[0].facts.name == "<b>\ufffd[31mGPU\ufffd"
    assert shown.devices[0].processes[0].user == "a\ufffdb"
    assert shown.devices[0].processes[0].command == "x\ufffdy"


def test_clock_skew_is_shown_and_does_not_age_the_data(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.skew = -86_400.0
    node.sample(IDLE)
    fleet.tick()
    shown = fleet.node("n1")
    assert shown is not None
    assert (shown.state, shown.age_seconds) == ("live", 0.0)
    assert shown.clock_skew_seconds == pytest.approx(-86_400)


def test_the_last_state_survives_a_restart_with_its_age(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(GPU, processes=(Process(pid=1, user="user01"),), uses=(ProcessUse(process=0, device=0),))
    node.sample(WORKING)
    fleet.tick()
    busy_since = clock.wall()
    kept = {report.node_id: report for report in fleet.take_unsaved()}
    assert fleet.take_unsaved() == []
    clock.advance(2)

    again = Fleet(clock=clock, settings=fleet.settings)
    again.add_node("n1", "n1")
    again.restore(kept["n1"])
    again.tick()
    shown = again.node("n1")
    assert shown is not None
    assert (shown.state, shown.age_seconds) == ("live", 2.0)
    assert shown.clock_skew_seconds == pytest.approx(0)
    device = shown.devices[0]
    assert device.availability.state == "busy"
    assert device.availability.since == pytest.approx(busy_since)
    assert [process.user for process in device.processes] == ["user01"]
    assert again.take_unsaved() == []
    hello = Hello(boot_id="boot-1", layout=LAYOUT, time=0, interval_seconds=1)
    assert again.open_run("n1", hello).resume_after_seq == node.seq


def test_a_last_state_from_the_future_is_not_called_live(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.sample(IDLE)
    fleet.tick()
    (kept,) = fleet.take_unsaved()
    clock.wall_offset -= 86_400  # the hub's machine came up with a wrong clock
    again = Fleet(clock=clock, settings=fleet.settings)
    again.add_node("n1", "n1")
    again.restore(kept)
    again.tick()
    assert again.devices()[0].availability.state == "offline"
    assert again.totals().nodes["offline"] == 1


@pytest.mark.parametrize("error", [None, ValueError("an error in the hub's own code")])
def test_a_damaged_last_state_leaves_the_node_never_seen(
    fleet: Fleet,
    speaker: Callable[[str], Speaker],
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception | None,
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.sample(WORKING)
    (kept,) = fleet.take_unsaved()
    again = Fleet(clock=clock)
    again.add_node("n1", "n1")
    if error is None:
        kept = structs.replace(kept, sample=b"\x00garbage")
    else:
        monkeypatch.setattr(again.memory, "see", Mock(side_effect=error))
    again.restore(kept)
    again.tick()
    shown = again.node("n1")
    assert shown is not None
    assert shown.state == "never"
    assert "cannot read the saved state" in caplog.text


def test_a_change_of_layout_keeps_what_is_known_of_the_other_gpus(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    second = structs.replace(GPU, uuid="GPU-1", index=1)
    node.describe(GPU, second)
    node.sample(IDLE, IDLE)
    fleet.tick()
    free_since = clock.wall()
    clock.advance(1)
    node.describe(second)
    node.sample(IDLE)
    fleet.tick()
    shown = fleet.node("n1")
    assert shown is not None
    assert [device.facts.uuid for device in shown.devices] == ["GPU-0", "GPU-1"]
    assert shown.devices[0].availability.since == pytest.approx(clock.wall()), "since then it is missing"
    assert shown.devices[1].availability.since == pytest.approx(free_since)


def test_users_are_gathered_over_nodes(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    for name in ("n1", "n2"):
        node = speaker(name)
        node.describe(
            GPU,
            processes=(Process(pid=1, user="user01"), Process(pid=2)),
            uses=(ProcessUse(process=0, device=0), ProcessUse(process=1, device=0)),
        )
        node.sample(WORKING)
    fleet.tick()
    first, unknown = fleet.users()
    assert (first.user, first.processes, first.gpu_memory_bytes, first.busy_devices) == (
        "user01",
        2,
        20 * GIB,
        2,
    )
    assert [(place.node_id, place.index) for place in first.devices] == [("n1", 0), ("n2", 0)]
    assert unknown.user is None


def test_a_removed_node_is_gone_and_its_rows_are_reused(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    node.sample(WORKING)
    fleet.remove_node("n1")
    fleet.tick()
    assert fleet.node("n1") is None
    assert sum(fleet.totals().devices.values()) == 0
    other = speaker("n2")
    other.describe(GPU)
    other.sample(IDLE)
    fleet.tick()
    assert utilization(fleet, "n2") == 0.0
    assert fleet.totals().devices["free"] == 1


def test_a_plain_report_is_taken_like_a_run(fleet: Fleet, clock: ManualClock) -> None:
    fleet.add_node("n1", "n1")
    report = Report(
        facts=NodeFacts(host=HostFacts(hostname="n1"), devices=(GPU,)),
        sample=Sample(time=clock.wall(), devices=(WORKING,), uses=()),
    )
    fleet.accept_report("n1", report)
    clock.advance(1.0)
    fleet.accept_report("n1", structs.replace(report, sample=Sample(time=clock.wall(), devices=(IDLE,))))
    assert utilization(fleet) == 0.0
    with pytest.raises(Refused, match="aligned"):
        fleet.accept_report("n1", structs.replace(report, sample=Sample(time=1.0, uses=(UseSample(),))))
    assert fleet.node_health()[0].refused == {"report_misaligned": 1}


def test_an_error_of_the_hub_costs_a_frame_and_not_the_link(
    fleet: Fleet, speaker: Callable[[str], Speaker], caplog: pytest.LogCaptureFixture
) -> None:
    node = speaker("n1")
    node.describe(GPU)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fleet, "take_live", Mock(side_effect=ValueError("a mistake of ours")))
        for _ in range(2):
            with pytest.raises(Refused, match="an internal error"):
                node.sample(IDLE)
    assert [record.exc_info is not None for record in caplog.records] == [True], "with its place, once"
    node.sample(IDLE)
    fleet.tick()
    assert fleet.node_health()[0].refused == {"hub_error": 2}
    assert fleet.devices()[0].availability.state == "free"


def test_the_number_of_a_refused_frame_is_used_up(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(GPU)
    fleet.take_unsaved()
    with pytest.raises(Refused):
        node.sample(IDLE, IDLE)
    (kept,) = fleet.take_unsaved()
    assert kept.runs["boot-1"] == node.seq
