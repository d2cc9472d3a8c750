"""Frames wait in order, on disk or in memory, until they are confirmed; what does not fit is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.agent.outbox import MEMORY_BYTES, TAIL_BYTES, UNCONFIRMED_SECONDS, Outbox, Run
from gpuherd.agent.segments import first_seq_of
from gpuherd.agent.shelf import context_before
from gpuherd.agent.spool import RunFacts
from gpuherd.wire.matrix import LAYOUT
from support.old_spool import write_old_segment

FACTS = RunFacts(boot_id="run-a", layout=LAYOUT, interval_seconds=1.0, agent_version="0")


def entry(seq: int, kind: FrameKind = FrameKind.SAMPLE, size: int = 50) -> Entry:
    return Entry(seq, kind, b"%d:" % seq + b"x" * size)


def run_entries(count: int, size: int = 50) -> list[Entry]:
    """Facts, table, then samples; a new table at every tenth."""
    kinds = {0: FrameKind.FACTS, 1: FrameKind.TABLE}
    return [
        entry(seq, kinds.get(seq, FrameKind.TABLE if seq % 10 == 0 else FrameKind.SAMPLE), size)
        for seq in range(count)
    ]


def all_after(run: Run, seq: int) -> Iterator[Entry]:
    while entries := run.batch(seq)[0]:
        yield from entries
        seq = entries[-1].seq


def outbox_in(folder: Path, max_bytes: int = 10**6, boot_id: str = "run-a") -> Outbox:
    return Outbox(folder, max_bytes, msgspec.structs.replace(FACTS, boot_id=boot_id))


def test_the_context_is_the_facts_and_the_table_that_belongs_to_them() -> None:
    facts, table = entry(0, FrameKind.FACTS), entry(1, FrameKind.TABLE)
    assert context_before([facts, table, entry(2)]) == (facts, table)
    assert context_before([facts, table, newer := entry(5, FrameKind.TABLE)]) == (facts, newer)
    assert context_before([facts, table, new := entry(6, FrameKind.FACTS)]) == (new,), (
        "not the old facts' table"
    )
    assert context_before([]) == ()


@pytest.mark.parametrize("is_away", [True, False])
def test_any_place_to_resume_has_its_context(tmp_path: Path, is_away: bool) -> None:
    outbox = outbox_in(tmp_path, max_bytes=40_000)
    outbox.set_away(is_away)
    made = run_entries(60)
    for one in made:
        outbox.current.put([one])
    for resume in range(-1, 59):
        entries, context = outbox.current.batch(resume)
        assert entries[0].seq == resume + 1
        assert context == context_before(made[: resume + 1])


def test_a_restart_finds_everything_with_its_context(tmp_path: Path) -> None:
    made = run_entries(300)
    first = outbox_in(tmp_path)
    for one in made:
        first.current.put([one])  # no close: as after kill -9
    again = outbox_in(tmp_path, boot_id="run-b")
    run = again.older_run()
    assert run is not None
    assert run.facts.boot_id == "run-a"
    assert run.next_seq == 300
    assert list(all_after(run, -1)) == made
    entries, context = run.batch(177)
    assert entries[0].seq == 178
    assert context == (made[0], made[170])
    run.ack(299)
    again.finish(run)
    assert again.older_run() is None
    assert list(tmp_path.iterdir()) == []


def test_runs_are_found_in_the_order_they_were_made(tmp_path: Path) -> None:
    for boot_id in ("zebra", "ant", "moose"):
        outbox_in(tmp_path, boot_id=boot_id).current.put(run_entries(3))
    outbox = outbox_in(tmp_path, boot_id="now")
    order = []
    while (run := outbox.older_run()) is not None:
        order.append(run.facts.boot_id)
        run.ack(2)
        outbox.finish(run)
    assert order == ["zebra", "ant", "moose"]


def test_a_run_that_the_hub_has_whole_leaves_nothing(tmp_path: Path) -> None:
    outbox = outbox_in(tmp_path)
    outbox.current.put(run_entries(5))
    outbox.current.ack(4)
    outbox.current.close()
    assert list(tmp_path.iterdir()) == []


def test_a_torn_tail_is_cut_off_at_the_restart(tmp_path: Path) -> None:
    outbox_in(tmp_path).current.put(run_entries(5))
    (segment,) = tmp_path.glob("*/*.seg")
    segment.write_bytes(segment.read_bytes()[:-3])
    run = outbox_in(tmp_path, boot_id="run-b").older_run()
    assert run is not None
    assert [one.seq for one in all_after(run, -1)] == [0, 1, 2, 3]
    assert run.next_seq == 4


def test_rubbish_in_the_spool_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "0000000001-x").mkdir()
    (tmp_path / "0000000001-x" / "run").write_bytes(b"rubbish")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("")
    outbox = outbox_in(tmp_path)
    assert outbox.older_run() is None
    assert "0000000001-x" in caplog.text
    outbox.current.put(run_entries(3))
    assert (tmp_path / "0000000002-run-a").is_dir()


def test_the_oldest_goes_when_the_spool_is_full_and_is_counted(tmp_path: Path) -> None:
    outbox = outbox_in(tmp_path, max_bytes=40_000)
    for one in run_entries(1000):
        outbox.current.put([one])
    size = sum(path.stat().st_size for path in tmp_path.glob("*/*.seg"))
    assert size <= 40_000
    left = list(all_after(outbox.current, -1))
    assert left[-1].seq == 999
    assert [one.seq for one in left] == list(range(left[0].seq, 1000))
    assert outbox.current.facts.dropped_frames == left[0].seq
    context = outbox.current.batch(left[0].seq - 1)[1]
    assert [one.kind for one in context] == [FrameKind.FACTS, FrameKind.TABLE]
    assert context[0].seq == 0
    # The count outlives the agent.
    again = outbox_in(tmp_path, boot_id="run-b").older_run()
    assert again is not None
    assert again.facts.dropped_frames == left[0].seq


def test_older_runs_are_dropped_before_the_current_one(tmp_path: Path) -> None:
    outbox_in(tmp_path, max_bytes=40_000, boot_id="old").current.put(run_entries(20, size=1000))
    outbox = outbox_in(tmp_path, max_bytes=40_000, boot_id="new")
    for one in run_entries(15, size=1000):
        outbox.current.put([one])
    old = outbox.older_run()
    assert old is not None
    assert old.facts.boot_id == "old"
    assert old.facts.dropped_frames == 20
    assert list(all_after(old, -1)) == []
    assert outbox.current.facts.dropped_frames == 0


def test_without_a_disk_memory_is_the_bound(tmp_path: Path) -> None:
    outbox = outbox_in(tmp_path, max_bytes=0)
    for one in run_entries(40, size=500_000):
        outbox.current.put([one])
    assert outbox.current.memory_bytes <= MEMORY_BYTES
    left = list(all_after(outbox.current, -1))
    assert outbox.current.facts.dropped_frames == left[0].seq > 0
    assert outbox.current.batch(-1)[1][0].seq == 0, "the facts are kept for those that are left"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_comes_back_is_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    folder = tmp_path / "spool"
    folder.write_text("in the way")
    outbox = Outbox(folder, 10**6, FACTS, monotonic=lambda: now[0])
    made = run_entries(30)
    for one in made[:10]:
        outbox.current.put([one])
    assert caplog.text.count("cannot write to the spool") == 1
    folder.unlink()
    outbox.current.put(made[10:11])
    assert not folder.exists(), "not tried at every frame"
    now[0] = 61.0
    outbox.current.put(made[11:12])
    assert outbox.current.memory_bytes == 0
    assert list(all_after(outbox.current, -1)) == made[:12]


def test_what_a_listening_hub_does_not_confirm_goes_to_disk_after_a_while(tmp_path: Path) -> None:
    now = [0.0]
    outbox = Outbox(tmp_path, 10**6, FACTS, monotonic=lambda: now[0])
    outbox.set_away(False)
    made = run_entries(400, size=1000)
    for one in made[:10]:
        outbox.current.put([one])
    outbox.current.ack(4)
    now[0] = UNCONFIRMED_SECONDS - 1
    outbox.current.put(made[10:11])
    assert list(tmp_path.iterdir()) == []
    now[0] = UNCONFIRMED_SECONDS
    outbox.current.put(made[11:12])
    assert outbox.current.memory_bytes == 0
    assert TAIL_BYTES < 400 * 1000
    for cursor, one in enumerate(made[12:], 11):
        outbox.current.put([one])
        assert outbox.current.batch(cursor)[0] == (one,)
    assert len(list(tmp_path.glob("*/*.seg"))) < 5, "one file is filled, though each frame is sent at once"
    assert list(all_after(outbox.current, 4)) == made[5:]
    outbox.current.ack(399)
    outbox.current.put([entry(400)])
    assert outbox.current.memory_bytes > 0, "all is well again"


class OutboxMachine(RuleBasedStateMachine):
    """Whatever happens, what was put and not confirmed comes out in order, if the bound was not reached."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._runs: list[tuple[str, list[Entry], int]] = []  # older runs: id, frames, confirmed
        self._begin()

    def _begin(self) -> None:
        boot_id = f"run-{len(self._runs)}"
        self.outbox = outbox_in(Path(self._folder.name), boot_id=boot_id)
        self.made: list[Entry] = []
        self.acked = -1

    @rule(kind=st.sampled_from(FrameKind), size=st.integers(0, 3000))
    def put(self, kind: FrameKind, size: int) -> None:
        made = entry(len(self.made), kind, size)
        self.made.append(made)
        self.outbox.current.put([made])

    @rule(is_away=st.booleans())
    def turn(self, is_away: bool) -> None:
        self.outbox.set_away(is_away)

    @rule(amount=st.integers(0, 12))
    def confirm(self, amount: int) -> None:
        self.acked = min(self.acked + amount, len(self.made) - 1)
        self.outbox.current.ack(self.acked)

    @rule()
    def restart(self) -> None:
        self.outbox.current.close()
        self._runs.append((self.outbox.current.facts.boot_id, self.made, self.acked))
        self._begin()

    @invariant()
    def everything_is_there(self) -> None:
        assert list(all_after(self.outbox.current, self.acked)) == self.made[self.acked + 1 :]
        context = self.outbox.current.batch(self.acked)[1]
        if self.acked < len(self.made) - 1:
            assert context == context_before(self.made[: self.acked + 1])

    def teardown(self) -> None:
        older = {run.facts.boot_id: run for run in self.outbox._older}
        for boot_id, made, acked in self._runs:
            left = made[acked + 1 :]
            found = list(all_after(older[boot_id], acked)) if boot_id in older else []
            assert found == left
        self._folder.cleanup()


OutboxMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestOutboxMachine = OutboxMachine.TestCase


def damage(path: Path, message: bytes) -> None:
    """Flip a bit in the frame that holds these bytes."""
    content = bytearray(path.read_bytes())
    content[content.index(message) + 1] ^= 1
    path.write_bytes(content)


def spooled_segments(folder: Path, count: int) -> list[Path]:
    """Leave a run of many segments in a folder, as an agent does that is killed."""
    outbox = outbox_in(folder, max_bytes=400_000)
    for one in run_entries(count, size=1000):
        outbox.current.put([one])
    return sorted(folder.glob("*/*.seg"))


@pytest.mark.promise("damaged-spool-costs-what-was-damaged")
def test_damage_in_the_spool_costs_only_itself_and_is_counted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segments = spooled_segments(tmp_path, 200)
    assert len(segments) > 3
    first = first_seq_of(segments[1])
    assert first is not None
    for seq in (first + 5, first + 6, first + 20):
        damage(segments[1], b"%d:xxx" % seq)
    for _ in range(2):  # also after a restart in between
        run = outbox_in(tmp_path, boot_id="run-b").older_run()
        assert run is not None
        assert run.facts.dropped_frames == 0
        found = [one.seq for one in all_after(run, -1)]
        assert sorted(set(range(200)) - set(found)) == [first + 5, first + 6, first + 20]
        assert run.facts.dropped_frames == 3
    assert "3 reports are lost" in caplog.text
    # Once the hub has the rest of the segment, only the count is left of it.
    assert run is not None
    run.ack(199 - 1)
    again = outbox_in(tmp_path, boot_id="run-c").older_run()
    assert again is not None
    assert again.facts.dropped_frames == 3


def test_a_segment_that_was_emptied_is_counted_whole(tmp_path: Path) -> None:
    segments = spooled_segments(tmp_path, 200)
    firsts = [first_seq_of(path) or 0 for path in segments]
    segments[1].write_bytes(b"")
    segments[2].write_bytes(bytes(segments[2].stat().st_size))
    run = outbox_in(tmp_path, boot_id="run-b").older_run()
    assert run is not None
    found = [one.seq for one in all_after(run, -1)]
    assert found == [*range(firsts[1]), *range(firsts[3], 200)]
    assert run.facts.dropped_frames == firsts[3] - firsts[1]


BROKEN_TEXT = msgspec.msgpack.encode(FACTS).replace(FACTS.boot_id[:1].encode(), b"\xf2", 1)
"""One flipped bit within a text makes it text no more."""


@pytest.mark.parametrize("harm", [b"", bytes(600), b"rubbish", BROKEN_TEXT, None])
def test_a_run_whose_own_file_is_bad_is_known_by_its_segments(tmp_path: Path, harm: bytes | None) -> None:
    spooled_segments(tmp_path, 50)
    (file,) = tmp_path.glob("*/run")
    file.unlink() if harm is None else file.write_bytes(harm)
    run = outbox_in(tmp_path, boot_id="run-b").older_run()
    assert run is not None
    assert run.facts == FACTS
    assert [one.seq for one in all_after(run, -1)] == list(range(50))


def test_a_run_that_nobody_knows_any_more_is_deleted_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "0000000000-old"
    folder.mkdir()
    write_old_segment(folder / f"{5:020d}.seg", [], run_entries(20)[5:])
    (folder / "run").write_bytes(bytes(631))
    outbox = outbox_in(tmp_path, boot_id="run-b")
    assert outbox.older_run() is None
    assert outbox.current.facts.dropped_frames == 15
    assert list(tmp_path.iterdir()) == []


def test_the_spool_of_an_older_agent_is_sent(tmp_path: Path) -> None:
    folder = tmp_path / "0000000000-run-a"
    folder.mkdir()
    frames = run_entries(20)
    write_old_segment(folder / f"{0:020d}.seg", [], frames[:12])
    write_old_segment(folder / f"{12:020d}.seg", [frames[0], frames[10]], frames[12:])
    (folder / "run").write_bytes(msgspec.msgpack.encode(FACTS))
    run = outbox_in(tmp_path, boot_id="run-b").older_run()
    assert run is not None
    assert list(all_after(run, -1)) == frames
    assert run.batch(11)[1] == (frames[0], frames[10])
    run.ack(19)
    assert run.disk.is_empty
