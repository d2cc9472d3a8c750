"""What is acknowledged is in the journal; what there is no room for waits, and beyond a bound is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from gpuherd.api.history_keeping import HistoryKeeping
from gpuherd.api.keeping import Keeper
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.intake import Intake
from gpuherd.history.historian import Historian
from gpuherd.history.journal import JournalFiles
from gpuherd.history.settings import HistorySettings
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Report, Sample
from gpuherd.records.last_reports import LastReports
from support.herd import IDLE, ManualClock, Speaker, gpu

NO_ROOM = 2**60


class Stage:
    """A herd whose history and last states are kept in a folder, without a hub around them."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.folder, self.clock = folder, clock
        self.fleet = Fleet(clock=clock)
        self.safe: dict[str, Mapping[str, int]] = {}
        self.asked: list[str] = []
        self.historian = Historian(folder, HistorySettings(min_free_bytes=0), [], wall=clock.wall)
        self.historian.open()
        self.store = LastReports(folder / "state.sqlite")
        self.fleet.add_node("a", "a")
        self.fleet.add_node("b", "b")
        for kept in self.store.load_all():
            self.fleet.restore(kept)
            self.historian.marks.know(kept.node_id, kept.runs)
        for node_id in self.historian.marks.node_ids:
            self.fleet.raise_runs(node_id, self.historian.marks.runs(node_id))
        intake = self.fleet.intake = Intake(
            clock=clock,
            names=self.fleet.names,
            accountant=None,
            oldest_seconds=1e9,
            bound_bytes=lambda: 50_000,
        )
        self.history = HistoryKeeping(
            intake,
            self.historian,
            take_again=self.fleet.take_again,
            send_again=self.asked.append,
            note_lost=self.fleet.note_lost,
        )
        self.keeper = Keeper(
            self.store,
            take_unsaved=self.fleet.take_unsaved,
            note_saved=self.safe.update,
            clock=clock,
            history=self.history,
        )

    def set_room(self, min_free_bytes: int) -> None:
        journal = self.historian._journal
        assert journal is not None
        journal._min_free_bytes = min_free_bytes

    async def flush(self) -> None:
        """Save what the tick has judged."""
        self.fleet.tick()
        await self.keeper.flush()

    def end(self) -> None:
        self.keeper.close()
        self.historian.close()

    def times(self) -> list[float]:
        """Every time in the journal, as often as it is there."""
        files = JournalFiles(self.folder / "journal")
        batches = [batch for number in files.paths() for _, batch in files.read(number).batches]
        return sorted(time for batch in batches for time in batch.devices.time.tolist())


def play(folder: Path, clock: ManualClock, story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage(folder, clock)
        try:
            await story(stage)
        finally:
            stage.end()

    asyncio.run(run())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_what_is_written_is_safe_and_known_after_a_start(tmp_path: Path, clock: ManualClock) -> None:
    async def live(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        for _ in range(3):
            clock.advance(1.0)
            node.sample(IDLE)
        await stage.flush()
        assert stage.safe == {"a": {"boot-1": 5}}
        assert len(stage.times()) == 3

    async def again(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        assert node.run.resume_after_seq == 5
        await stage.flush()
        assert len(stage.times()) == 3

    play(tmp_path, clock, live)
    play(tmp_path, clock, again)


def test_what_is_in_the_journal_and_was_not_acknowledged_is_not_taken_twice(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        node.sample(IDLE)
        monkeypatch.setattr(stage.store, "save", _full)
        with pytest.raises(Failed):
            await stage.flush()
        assert stage.safe == {}
        assert len(stage.times()) == 1

    async def again(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        assert node.run.resume_after_seq == 3
        node.describe(gpu(0))
        node.sample(IDLE, seq=3)
        await stage.flush()
        assert len(stage.times()) == 1

    play(tmp_path, clock, live)
    play(tmp_path, clock, again)


def _full(_: object) -> None:
    raise Failed("no space")


def test_without_room_last_states_are_kept_but_claim_nothing_that_is_not_written(
    tmp_path: Path, clock: ManualClock
) -> None:
    async def live(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        node.sample(IDLE)
        await stage.flush()
        stage.set_room(NO_ROOM)
        for _ in range(3):
            clock.advance(1.0)
            node.sample(IDLE)
            await stage.flush()
        assert stage.safe == {"a": {"boot-1": 3}}
        assert stage.keeper.health().state == "ok"
        assert stage.keeper.health().waiting_nodes == 0
        assert stage.history.health().journal.state == "failing"
        assert "min_free_bytes" in stage.history.health().reasons()[0]

    async def after_a_crash(stage: Stage) -> None:
        (kept,) = stage.store.load_all()
        assert kept.runs == {"boot-1": 3}
        assert kept.received_at == clock.wall()
        assert Speaker(stage.fleet, clock, "a").run.resume_after_seq == 3

    play(tmp_path, clock, live)
    play(tmp_path, clock, after_a_crash)


def test_with_room_again_all_that_waited_is_written_once(tmp_path: Path, clock: ManualClock) -> None:
    async def story(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        stage.set_room(NO_ROOM)
        expected = []
        for _ in range(10):
            clock.advance(1.0)
            node.sample(IDLE)
            expected.append(clock.wall())
            await stage.flush()
        assert stage.times() == []
        stage.set_room(0)
        await stage.flush()
        await stage.flush()
        assert stage.times() == expected
        assert stage.safe["a"] == {"boot-1": 12}
        assert stage.asked == []
        assert stage.history.health().journal.state == "ok"

    play(tmp_path, clock, story)


def test_what_does_not_fit_into_memory_is_sent_again_when_there_is_room(
    tmp_path: Path, clock: ManualClock
) -> None:
    async def story(stage: Stage) -> None:
        node, intake = Speaker(stage.fleet, clock, "a"), stage.fleet.intake
        assert intake is not None
        node.describe(gpu(0))
        node.sample(IDLE)
        expected = [clock.wall()]
        stage.set_room(NO_ROOM)
        await stage.flush()
        samples: list[tuple[int, float]] = []
        while not intake.is_closed or len(samples) < 200:
            clock.advance(1.0)
            node.sample(IDLE)
            if intake.is_closed:
                samples.append((node.seq, clock.wall()))
            expected.append(clock.wall())
            await stage.flush()
            assert intake.waiting_bytes <= 52_000
        samples = samples[1:]  # the first is the one that closed it, which is kept
        assert stage.safe.get("a", {}).get("boot-1", -1) < 3
        stage.set_room(0)
        await stage.flush()
        assert stage.asked == [], "what waits is written first"
        await stage.flush()
        assert stage.asked == ["a"]
        assert stage.history.health().sent_again_samples == len(samples)
        # The agent comes again and sends what was not acknowledged.
        run = node.connect(live_from_seq=node.seq)
        assert run.resume_after_seq == samples[0][0] - 1, "all that was taken before is kept"
        node.seq = 0
        node.send_facts()
        node.run_table()
        for seq, time in samples:
            node.skew = time - clock.wall()
            node.sample(IDLE, seq=seq)
            await stage.flush()
        assert stage.times() == expected
        assert stage.safe["a"]["boot-1"] == run.received_seq

    play(tmp_path, clock, story)


def test_a_node_that_says_too_much_is_asked_for_it_again_and_costs_the_others_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    async def story(stage: Stage) -> None:
        greedy, modest, intake = (
            Speaker(stage.fleet, clock, "a"),
            Speaker(stage.fleet, clock, "b"),
            stage.fleet.intake,
        )
        assert intake is not None
        greedy.describe(gpu(0))
        modest.describe(gpu(0))
        await stage.flush()
        clock.advance(1.0)
        modest.sample(IDLE)
        while not intake.has_given_up:
            greedy.sample(IDLE)
        kept = greedy.seq
        for _ in range(20):
            greedy.sample(IDLE)
        await stage.flush()
        assert stage.asked == ["a"]
        assert stage.history.health().sent_again_samples == 20
        assert stage.safe["b"]["boot-1"] == modest.seq
        assert stage.safe["a"]["boot-1"] == kept
        assert greedy.connect(live_from_seq=greedy.seq).resume_after_seq == kept

    play(tmp_path, clock, story)


@pytest.mark.promise("overload-lost-is-counted")
def test_what_nobody_can_send_again_is_counted_as_lost_and_shown(tmp_path: Path, clock: ManualClock) -> None:
    async def story(stage: Stage) -> None:
        node, intake = Speaker(stage.fleet, clock, "a"), stage.fleet.intake
        assert intake is not None
        node.describe(gpu(0))
        await stage.flush()

        def report() -> None:
            clock.advance(1.0)
            sample = Sample(time=clock.wall(), devices=(IDLE,), disks_used_bytes=(None,))
            stage.fleet.accept_report("b", Report(facts=node.facts, sample=sample))

        kept = 0
        while not intake.is_closed:
            report()
            kept += 1
        for _ in range(7):
            report()
        await stage.flush()
        assert stage.asked == []
        assert stage.history.health().lost_samples == 7
        assert {health.node_id: health.lost_samples for health in stage.fleet.node_health()} == {
            "a": 0,
            "b": 7,
        }
        view = stage.fleet.node("b")
        assert view is not None
        assert [(said.code, said.message.split()[0]) for said in view.notes] == [("samples_lost", "7")]
        report()
        await stage.flush()
        assert len(stage.times()) == kept + 1

    play(tmp_path, clock, story)


def test_how_far_writing_is_behind(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        await stage.flush()
        assert stage.history.lag_seconds(clock.monotonic()) == 0.0
        node.sample(IDLE)
        stage.set_room(NO_ROOM)
        await stage.flush()
        assert stage.history.is_failing
        clock.advance(3.0)
        node.sample(IDLE)
        assert stage.history.lag_seconds(clock.monotonic()) == 3.0
        stage.set_room(0)
        await stage.flush()
        assert not stage.history.is_failing
        await stage.flush()
        assert stage.history.lag_seconds(clock.monotonic()) == 0.0

    play(tmp_path, clock, story)


def test_a_mistake_of_ours_costs_no_last_state_and_acknowledges_nothing(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        node.sample(IDLE)
        with monkeypatch.context() as patch:
            patch.setattr(stage.fleet.intake, "batch", lambda _: next(iter(())))
            await stage.flush()
            assert stage.store.load_all()[0].runs == {"boot-1": -1}
            assert stage.safe == {"a": {}}
            assert "StopIteration" in stage.history.health().reasons()[0]
        await stage.flush()
        assert stage.safe == {"a": {"boot-1": 3}}
        assert stage.history.health().reasons() == ()

    play(tmp_path, clock, story)


def test_nothing_is_acknowledged_before_it_is_judged_and_that_is_not_waited_for_long(
    tmp_path: Path, clock: ManualClock
) -> None:
    async def live(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        node.sample(IDLE)
        await stage.keeper.flush()
        assert stage.safe == {"a": {}}
        assert stage.store.load_all()[0].runs == {"boot-1": -1}
        clock.advance(1.5)
        await stage.keeper.flush()
        assert stage.safe == {"a": {"boot-1": 3}}
        assert len(stage.times()) == 1
        node.sample(IDLE)
        await stage.keeper.flush()

    async def after_a_crash(stage: Stage) -> None:
        assert Speaker(stage.fleet, clock, "a").run.resume_after_seq == 3

    play(tmp_path, clock, live)
    play(tmp_path, clock, after_a_crash)


def test_a_removed_node_is_forgotten(tmp_path: Path, clock: ManualClock) -> None:
    async def story(stage: Stage) -> None:
        node = Speaker(stage.fleet, clock, "a")
        node.describe(gpu(0))
        await stage.flush()
        stage.fleet.remove_node("a")
        stage.keeper.forget("a")
        await stage.flush()
        assert stage.historian.marks.node_ids == ()

    play(tmp_path, clock, story)
