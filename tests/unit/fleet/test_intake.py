"""What is written of what nodes send: each sample once, where its time belongs, with what cannot be left out."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from msgspec import structs

from gpuherd.api.hub_clock import hub_clock_notice
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.intake import Intake, waiting_bound
from gpuherd.fleet.rows import Floats
from gpuherd.history.batch import (
    DEVICE_METRICS,
    HOST_METRICS,
    NOT_JUDGED,
    Batch,
    FrameMark,
    SeriesKey,
    no_uses,
)
from gpuherd.history.usage.samples import Accounts, NodeSample
from gpuherd.model.devices import DEVICE_STATES, DeviceSample
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import Report, Sample
from gpuherd.wire.frames import Hello, SampleFrame
from gpuherd.wire.matrix import LAYOUT, pack_numbers
from support.herd import GIB, IDLE, WORKING, ManualClock, Speaker, gpu

DAY = 86_400.0
POWER = DEVICE_METRICS.index("power_watts")
UTILIZATION = DEVICE_METRICS.index("utilization_gpu")
FREE, BUSY = DEVICE_STATES.index("free"), DEVICE_STATES.index("busy")


class Ledger:
    """Writes down what it is given to count."""

    def __init__(self) -> None:
        self.samples: list[NodeSample] = []
        self.rows = 0
        self.error: Exception | None = None
        self.resets = 0

    def take(self, samples: list[NodeSample], devices: Floats) -> Accounts:
        if self.error is not None:
            raise self.error
        self.samples += samples
        self.rows += len(devices)
        return Accounts(no_uses(), b"notes")

    def reset(self) -> None:
        self.resets += 1


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def intake(fleet: Fleet, clock: ManualClock, ledger: Ledger) -> Intake:
    fleet.intake = Intake(
        clock=clock,
        names=fleet.names,
        accountant=ledger,
        oldest_seconds=30 * DAY,
        bound_bytes=lambda: 100_000,
    )
    return fleet.intake


def written(intake: Intake) -> Batch:
    """Give all that came, as it would be written at the end."""
    intake.release()
    gathered = intake.gather()
    assert gathered is not None
    return intake.batch(gathered)


def test_live_samples_are_written_with_what_they_are_about(
    fleet: Fleet, clock: ManualClock, intake: Intake, ledger: Ledger, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(
        gpu(0), gpu(1), processes=(Process(pid=1, user="ada"),), uses=(ProcessUse(process=0, device=1),)
    )
    node.sample(IDLE, structs.replace(WORKING, power_watts=250.5))
    fleet.tick()
    clock.advance(1.0)
    node.sample(IDLE, WORKING)
    fleet.tick()
    batch = written(intake)
    assert batch.devices.keys == (
        SeriesKey("n1", "GPU-0", "A100 80GB"),
        SeriesKey("n1", "GPU-1", "A100 80GB"),
    )
    assert batch.devices.subject.tolist() == [0, 1, 0, 1]
    assert batch.devices.time.tolist() == [clock.wall() - 1.0] * 2 + [clock.wall()] * 2
    assert batch.devices.values[1, POWER] == 250.5
    assert np.isnan(batch.devices.values[3, POWER])
    assert batch.devices.memory_total.tolist() == [80 * GIB] * 2
    assert batch.devices.state.tolist() == [FREE, BUSY] * 2
    assert batch.hosts.keys == (SeriesKey("n1"),)
    assert batch.hosts.values[0, HOST_METRICS.index("cpu_ratio")] == 0.25
    assert batch.hosts.state.tolist() == [NOT_JUDGED] * 2
    assert batch.marks == (FrameMark("n1", "boot-1", 4),)
    assert batch.seen == (("n1", clock.wall()),)
    assert batch.notes == b"notes"
    first, second = ledger.samples
    assert ledger.rows == 4
    assert first.scene is second.scene
    assert (first.scene.owners, first.scene.types) == (("ada",), ("A100 80GB",) * 2)
    assert np.frombuffer(first.uses)[0] == 10 * GIB
    assert intake.gather() is None


def test_a_sample_waits_for_the_tick_that_judges_it_and_is_acknowledged_with_it(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(WORKING)
    assert intake.gather() is None
    fleet.tick()
    node.sample(WORKING)
    gathered = intake.gather()
    assert gathered is not None
    batch = intake.batch(gathered)
    assert batch.devices.state.tolist() == [BUSY]
    assert batch.marks == (FrameMark("n1", "boot-1", 3),)
    assert 0 < intake.waiting_bytes < 2000
    fleet.tick()
    assert written(intake).marks == (FrameMark("n1", "boot-1", 4),)
    assert intake.waiting_bytes == 0


def test_a_sample_waits_for_a_tick_only_so_long(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    fleet.tick()
    intake.gather()
    node.sample(WORKING)
    clock.advance(1.4)
    node.sample(WORKING)
    assert intake.gather() is None
    clock.advance(0.1)
    gathered = intake.gather()
    assert gathered is not None
    batch = intake.batch(gathered)
    assert batch.devices.state.tolist() == [NOT_JUDGED] * 2
    assert batch.marks == (FrameMark("n1", "boot-1", 4),)


def test_history_does_not_wait_for_others_to_be_judged(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    live, late = speaker("n1"), speaker("n2")
    live.describe(gpu(0))
    late.connect(live_from_seq=4)
    late.describe(gpu(0))
    fleet.tick()
    intake.gather()
    live.sample(IDLE)
    late.sample(WORKING)
    late.sample(WORKING)  # of right now: it and what follows it wait
    late.describe(gpu(0))
    gathered = intake.gather()
    assert gathered is not None
    batch = intake.batch(gathered)
    assert batch.devices.keys == (SeriesKey("n2", "GPU-0", "A100 80GB"),)
    assert (batch.devices.state.tolist(), batch.marks) == ([NOT_JUDGED], (FrameMark("n2", "boot-1", 3),))
    assert intake.gather() is None
    fleet.tick()
    batch = written(intake)
    assert batch.devices.state.tolist() == [FREE, BUSY]
    assert set(batch.marks) == {FrameMark("n1", "boot-1", 3), FrameMark("n2", "boot-1", 6)}


def test_devices_that_change_places_before_the_tick_are_told_apart(
    fleet: Fleet, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    other, node = speaker("n2"), speaker("n1")
    other.describe(gpu(0))
    node.describe(gpu(0), gpu(1))
    node.sample(IDLE, IDLE)
    other.sample(WORKING)
    node.describe(gpu(2), gpu(1), gpu(3))
    node.sample(IDLE, WORKING, IDLE)
    node.describe(gpu(2), gpu(1), gpu(3))
    node.sample(IDLE, WORKING, IDLE)
    fleet.tick()
    assert written(intake).devices.state.tolist() == [NOT_JUDGED, BUSY, BUSY, *[FREE, BUSY, FREE] * 2]


def test_of_a_node_that_is_removed_before_the_tick_nothing_is_judged(
    fleet: Fleet, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    gone, other = speaker("n1"), speaker("n2")
    gone.describe(gpu(0))
    other.describe(gpu(0))
    gone.sample(WORKING)
    fleet.remove_node("n1")
    other.sample(IDLE)  # where the other was
    fleet.tick()
    assert written(intake).devices.state.tolist() == [NOT_JUDGED, FREE]


def test_what_comes_too_late_to_be_fresh_is_not_judged(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(WORKING)
    clock.advance(1000.0)
    fleet.tick()
    assert written(intake).devices.state.tolist() == [NOT_JUDGED]


def test_what_cannot_be_is_unknown(intake: Intake, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(DeviceSample(utilization_gpu=9.2e18, power_watts=-1.0, temperature_celsius=40.0))
    batch = written(intake)
    assert np.isnan(batch.devices.values[0, [UTILIZATION, POWER]]).all()
    assert batch.devices.values[0, DEVICE_METRICS.index("temperature_celsius")] == 40.0


def test_backfill_keeps_its_time_and_is_not_judged(
    clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.connect(live_from_seq=100)
    node.describe(gpu(0))
    node.skew = -3600.0
    node.sample(WORKING)
    batch = written(intake)
    assert batch.devices.time.tolist() == [clock.wall() - 3600.0]
    assert batch.devices.state.tolist() == [NOT_JUDGED]


def test_a_sample_that_comes_twice_is_written_once(intake: Intake, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    node.sample(IDLE, seq=node.seq)
    node.connect()
    node.send_facts()
    assert len(written(intake).devices) == 1


def test_frames_that_are_no_samples_are_marked(intake: Intake, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    batch = written(intake)
    assert len(batch.devices) == 0
    assert batch.marks == (FrameMark("n1", "boot-1", 2),)


def test_columns_of_another_version_are_matched_by_name(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    layout = structs.replace(LAYOUT, devices=("novel", "power_watts"), host=("load_1m",), uses=("novel",))
    hello = Hello(boot_id="b", layout=layout, time=clock.wall(), interval_seconds=1.0)
    node.run = fleet.open_run("n1", hello)
    node.describe(gpu(0), processes=(Process(pid=1),), uses=(ProcessUse(process=0, device=0),))
    frame = SampleFrame(
        seq=node.next_seq(),
        time=clock.wall(),
        facts_revision=node.run.facts_revision,
        table_revision=node.run.table_revision,
        host=pack_numbers([1.5]),
        devices=pack_numbers([7.0, 300.0]),
        processes=pack_numbers([None, None]),
        uses=pack_numbers([3.0]),
        disks=pack_numbers([None]),
    )
    node.run.accept(frame, b"")
    batch = written(intake)
    assert batch.devices.values[0, POWER] == 300.0
    assert np.isnan(np.delete(batch.devices.values[0], POWER)).all()
    assert batch.hosts.values[0, HOST_METRICS.index("load_1m")] == 1.5


def test_devices_that_change_within_one_write_are_each_told_once(
    intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0), gpu(1))
    node.sample(IDLE, WORKING)
    node.describe(gpu(1, memory_total_bytes=40 * GIB), gpu(2))
    node.sample(WORKING, IDLE)
    samples = written(intake).devices
    assert [key.uuid for key in samples.keys] == ["GPU-0", "GPU-1", "GPU-2"]
    assert samples.subject.tolist() == [0, 1, 1, 2]
    assert samples.memory_total.tolist() == [80 * GIB, 40 * GIB, 80 * GIB]


def test_whole_reports_are_written_too(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    written(intake)
    for age in (30.0, 20.0):
        report = Report(
            facts=node.facts,
            sample=Sample(time=clock.wall() - age, devices=(IDLE,), disks_used_bytes=(None,)),
        )
        fleet.accept_report("n1", report, interval_seconds=60.0)
    batch = written(intake)
    assert batch.devices.time.tolist() == [clock.wall() - 30.0, clock.wall() - 20.0]
    assert batch.devices.keys[0].uuid == "GPU-0"


def test_a_restored_state_is_not_remembered_again(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(WORKING)
    (kept,) = fleet.take_unsaved()
    other = Fleet(clock=clock)
    other.intake = Intake(clock=clock, names=other.names, accountant=None, oldest_seconds=DAY)
    other.add_node("n1", "n1")
    other.restore(kept)
    other.tick()
    assert other.intake.gather() is None
    assert len(written(intake).devices) == 1


def test_what_is_older_than_all_that_is_kept_is_counted_and_left_out(
    intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.connect(live_from_seq=100)
    node.describe(gpu(0))
    node.skew = -31 * DAY
    node.sample(WORKING)
    node.skew = -29 * DAY
    node.sample(WORKING)
    assert len(written(intake).devices) == 1
    assert intake.too_old_samples == 1


def test_at_its_bound_it_keeps_what_waits_and_takes_nothing_more_until_it_is_told(
    clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    nodes = [speaker("n1"), speaker("n2")]
    for node in nodes:
        node.describe(gpu(0))
    rounds = 0
    while not intake.is_closed:
        rounds += 1
        clock.advance(1.0)
        node = nodes[rounds % 2]
        node.sample(IDLE)
        assert (intake.pause_seconds > 0) == (intake.waiting_bytes > 25_000)
    assert 100_000 < intake.waiting_bytes < 105_000
    assert intake.pause_seconds == 1.0
    marks = {node.run.node_id: node.seq for node in nodes}
    nodes[0].sample(IDLE)
    batch = written(intake)
    assert len(batch.devices) == rounds, "all that was taken, and no more"
    assert {mark.node_id: mark.seq for mark in batch.marks} == marks, "what came later is not taken for kept"
    assert intake.reopen(10) == {"n1": 1}
    assert not intake.has_given_up
    nodes[1].sample(IDLE)
    assert len(written(intake).devices) == 1


def test_nodes_of_which_something_is_missing_are_taken_up_again_some_at_a_time(
    clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    nodes = [speaker("n1"), speaker("n2"), speaker("n3")]
    for node in nodes:
        node.describe(gpu(0))
    turns = itertools.cycle(nodes)
    while not intake.is_closed:
        next(turns).sample(IDLE)
    intake.gather()
    for node in nodes[:2]:
        node.sample(IDLE)
    first = intake.reopen(1)
    assert len(first) == 1
    assert intake.has_given_up
    assert not intake.is_closed
    for node in nodes:
        node.sample(IDLE)
    assert {key.node_id for key in written(intake).devices.keys} == {"n3", *first}
    assert {*intake.reopen(5), *first} == {"n1", "n2"}
    assert not intake.has_given_up


@pytest.mark.parametrize("is_past", [True, False])
def test_a_node_that_takes_up_more_than_its_share_costs_the_others_nothing(
    intake: Intake, speaker: Callable[[str], Speaker], is_past: bool
) -> None:
    greedy, modest = speaker("n1"), speaker("n2")
    if is_past:  # which waits for no tick
        greedy.connect(live_from_seq=10_000)
        greedy.skew = -3600.0
    for node in (greedy, modest):
        node.describe(gpu(0))
    modest.sample(IDLE)
    rounds = 0
    while not intake.has_given_up:
        rounds += 1
        greedy.sample(IDLE)
    assert not intake.is_closed
    kept = greedy.seq
    modest.sample(IDLE)
    greedy.sample(IDLE)
    greedy.describe(gpu(0), gpu(1))
    batch = written(intake)
    counts = Counter(batch.devices.keys[subject].node_id for subject in batch.devices.subject)
    assert counts == {"n1": rounds, "n2": 2}
    # What came since is not taken for kept: it is to be sent again.
    assert {mark.node_id: mark.seq for mark in batch.marks} == {"n1": kept, "n2": modest.seq}
    assert intake.reopen(10) == {"n1": 1}
    assert not intake.has_given_up
    greedy.sample(IDLE, IDLE)
    assert {key.node_id for key in written(intake).devices.keys} == {"n1"}
    assert intake.waiting_bytes == 0


def test_how_long_the_oldest_has_waited(
    fleet: Fleet, clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    since = clock.monotonic()
    for _ in range(3):
        node.sample(IDLE)
        clock.advance(1.0)
    assert intake.waiting_since == since
    fleet.tick()
    newest = clock.monotonic()
    node.sample(IDLE)
    assert intake.gather() is not None
    assert intake.waiting_since == newest, "it waits for its tick"
    written(intake)
    assert intake.waiting_since == math.inf


def test_the_bound_grows_with_the_herd() -> None:
    assert waiting_bound(10) == waiting_bound(100)
    assert waiting_bound(7000) == 10 * waiting_bound(700)
    assert waiting_bound(10**9) < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 3


def test_a_clock_that_is_off_is_corrected(
    clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.skew = 7200.0
    node.sample(IDLE)
    clock.advance(1.0)
    node.sample(IDLE)
    assert written(intake).devices.time.tolist() == [clock.wall() - 1.0, clock.wall()]


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 30.0, -30.0])
def test_when_the_hubs_clock_is_set_every_sample_is_written_once_by_the_new_time(
    clock: ManualClock, intake: Intake, ledger: Ledger, speaker: Callable[[str], Speaker], jump: float
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    times = []
    for step in range(20):
        clock.advance(1.0)
        if step == 10:
            clock.wall_offset += jump
            node.skew -= jump
        node.sample(IDLE)
        times.append(clock.wall())
    assert written(intake).devices.time.tolist() == pytest.approx(times)
    assert len(ledger.samples) == 20


@pytest.mark.parametrize(("delay", "is_moved"), [(5.0, False), (0.0, True)])
def test_samples_that_a_busy_hub_reads_late_keep_their_times(
    clock: ManualClock, intake: Intake, speaker: Callable[[str], Speaker], delay: float, is_moved: bool
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.skew = -4.0  # as long as the hub takes to read it
    intake.reading_delay_seconds = delay
    times = []
    for _ in range(10):
        clock.advance(1.0)
        node.sample(IDLE)
        times.append(clock.wall() - 4.0)
    assert (written(intake).devices.time.tolist() != times) == is_moved


@pytest.mark.promise("hub-clock-is-said")
@pytest.mark.parametrize(
    ("skews", "ahead"),
    [
        ([-3600.0] * 3, 3600.0),
        ([3600.0, 3601.0, 3599.0, 0.0], -3600.0),
        ([-86_400.0, -86_400.0, -86_401.0, 50.0, 0.0], 86_400.0),
        ([-3600.0] * 2, None),  # of so few nobody can tell
        ([-3600.0, -3600.0, 0.0, 0.0], None),  # no majority
        ([-3600.0, 7200.0, 90.0, -50.0], None),  # each wrong by itself
        ([-10.0] * 5, None),  # may be the way
        ([0.0] * 5, None),
    ],
)
def test_most_nodes_that_differ_by_the_same_mean_that_the_hubs_clock_is_wrong(
    clock: ManualClock,
    intake: Intake,
    speaker: Callable[[str], Speaker],
    skews: list[float],
    ahead: float | None,
) -> None:
    nodes = [speaker(f"n{number}") for number in range(len(skews))]
    for node, skew in zip(nodes, skews, strict=True):
        node.skew = skew
        node.describe(gpu(0))
    for _ in range(4):
        clock.advance(1.0)
        for node in nodes:
            node.sample(IDLE)
    written(intake)
    doubt = intake.hub_clock_doubt
    assert (None if doubt is None else doubt.ahead_seconds) == (
        None if ahead is None else pytest.approx(ahead, abs=2.0)
    )
    if doubt is not None:
        assert doubt.heard_nodes == len(skews)
        told = hub_clock_notice(doubt)
        assert ("ahead of" if doubt.ahead_seconds > 0 else "behind") in told.message
        for node in nodes:  # put right
            node.skew = 0.0
        for _ in range(4):
            clock.advance(1.0)
            for node in nodes:
                node.sample(IDLE)
        written(intake)
        assert intake.hub_clock_doubt is None


def test_samples_are_kept_although_their_use_cannot_be_counted(
    intake: Intake, ledger: Ledger, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(IDLE)
    ledger.error = ZeroDivisionError()
    batch = written(intake)
    assert (len(batch.devices), len(batch.uses), batch.notes) == (1, 0, b"")
    assert (intake.uncounted_samples, ledger.resets) == (1, 1)


def test_devices_that_come_and_go_do_not_use_up_numbers(
    intake: Intake, monkeypatch: pytest.MonkeyPatch, speaker: Callable[[str], Speaker]
) -> None:
    monkeypatch.setattr("gpuherd.fleet.intake.MAX_NUMBERED", 10)
    node, numberings = speaker("n1"), set()
    for number in range(30):
        node.describe(gpu(number), gpu(number + 1))
        node.sample(IDLE, WORKING)
        samples = written(intake).devices
        assert {key.uuid for key in samples.keys} == {f"GPU-{number}", f"GPU-{number + 1}"}
        working = samples.keys[samples.subject[1]]
        assert working.uuid == f"GPU-{number + 1}"
        assert samples.numbering is not None
        assert samples.numbers is not None
        assert [samples.numbering.keys[place] for place in samples.numbers] == list(samples.keys)
        assert len(samples.numbering) <= 12
        numberings.add(samples.numbering)
    assert len(numberings) > 1
