"""Links without a network: what is acknowledged when, and which links end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from gpuherd.model.errors import Refused
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import Problem
from gpuherd.sources.frame_rate import LIVE_BURST, LIVE_PER_SECOND, PAST_BURST
from gpuherd.sources.push import Brake, NodeLinks
from gpuherd.wire.codec import UnknownFrame, encode, hub_decoder
from gpuherd.wire.frames import (
    PACE_MINOR,
    PROTOCOL_MINOR,
    Ack,
    FactsFrame,
    Hello,
    Notice,
    Pace,
    PastFrames,
    SampleFrame,
    TableFrame,
    Welcome,
)
from gpuherd.wire.matrix import LAYOUT
from support.herd import ManualClock
from support.running import PATIENCE_SECONDS


class Pipe:
    """A channel whose both ends are in the test's hands."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.outbox: list[object] = []
        self.is_blocked = False
        self.is_narrow = False  # takes one message, then none until the test says so
        self.has_posted = False
        self.closed: tuple[int, str] | None = None

    async def receive(self) -> bytes | None:
        return await self.inbox.get()

    def post(self, message: bytes) -> bool:
        if self.is_blocked or (self.is_narrow and self.has_posted):
            return False
        self.has_posted = True
        self.outbox.append(hub_decoder().decode(message))
        return True

    async def send(self, message: bytes) -> None:
        self.outbox.append(hub_decoder().decode(message))

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)


class Taken:
    """A run that takes everything."""

    def __init__(self, boot_id: str, resume_after_seq: int) -> None:
        self.boot_id = boot_id
        self.resume_after_seq = resume_after_seq
        self.frames = 0
        self.refused: list[str] = []
        self.expected_seconds: list[float] = []

    def expect_every(self, interval_seconds: float) -> None:
        self.expected_seconds.append(interval_seconds)

    def accept(self, frame: FactsFrame | TableFrame | SampleFrame | UnknownFrame, message: bytes) -> None:
        self.frames += 1

    def refuse(self, error: Refused) -> None:
        self.refused.append(error.code)


class Intake:
    def __init__(self) -> None:
        self.received = 0
        self.refused: list[tuple[str, str]] = []
        self.hellos: list[Hello] = []
        self.asked_at: list[float | None] = []
        self.runs: list[Taken] = []
        self.notes: dict[tuple[str, str], Problem | None] = {}

    def note(self, node_id: str, subject: str, problem: Problem | None) -> None:
        self.notes[node_id, subject] = problem

    def open_run(self, node_id: str, hello: Hello, *, asked_at: float | None = None) -> Taken:
        self.hellos.append(hello)
        self.asked_at.append(asked_at)
        self.runs.append(Taken(hello.boot_id, self.received))
        return self.runs[-1]

    def refuse(self, node_id: str, error: Refused) -> None:
        self.refused.append((node_id, error.code))


HELLO = encode(Hello(boot_id="boot", layout=LAYOUT, time=1.0, interval_seconds=1.0))
OLD_HELLO = encode(Hello(boot_id="old", layout=LAYOUT, time=1.0, interval_seconds=1.0, live_from_seq=3))


def welcome(**fields: Any) -> Welcome:
    return Welcome(node_id="a", protocol_minor=PROTOCOL_MINOR, **fields)


def table_message(seq: int) -> bytes:
    return encode(TableFrame(seq=seq, revision=1, facts_revision=1, table=ProcessTable()))


def past(*messages: bytes) -> bytes:
    return encode(PastFrames(frames=messages))


def sample_message(seq: int) -> bytes:
    return encode(SampleFrame(seq=seq, time=1.0, facts_revision=1, table_revision=1, host=b""))


async def settle() -> None:
    """Let everything that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def drain(pipe: Pipe) -> None:
    """Wait until all that was put in is read."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not pipe.inbox.empty():  # noqa: ASYNC110 - a queue has no such event
            await asyncio.sleep(0.005)
    await settle()


def play(story: Callable[[NodeLinks, Intake, ManualClock], Awaitable[None]]) -> None:
    async def run() -> None:
        clock, intake = ManualClock(), Intake()
        links = NodeLinks(intake, monotonic=clock.monotonic, note=intake.note)
        await story(links, intake, clock)
        await links.close_all()

    asyncio.run(run())


async def link(links: NodeLinks, node_id: str = "a") -> tuple[Pipe, asyncio.Task[Notice | None]]:
    pipe = Pipe()
    pipe.inbox.put_nowait(HELLO)
    task = asyncio.create_task(links.serve(node_id, pipe))
    await settle()
    return pipe, task


def test_nothing_is_acknowledged_before_it_is_saved() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        intake.received = 9
        pipe, _task = await link(links)
        # Nine frames were taken but none is known to be saved: the node must not forget any.
        assert pipe.outbox == [welcome(resume_after_seq=-1, received_seq=9)]
        links.note_saved([("a", {"boot": 4}), ("b", {"boot": 99})])
        links.note_saved([("a", {"boot": 4})])
        links.note_saved([("a", {"boot": 9, "other": 50})])
        assert pipe.outbox[1:] == [Ack(seq=4), Ack(seq=9)]
        again, _task = await link(links)
        assert again.outbox == [welcome(resume_after_seq=9, received_seq=9)]

    play(story)


def test_a_node_that_does_not_read_gets_its_ack_later() -> None:
    async def story(links: NodeLinks, _: Intake, __: ManualClock) -> None:
        pipe, _task = await link(links)
        pipe.is_blocked = True
        links.note_saved([("a", {"boot": 1})])
        pipe.is_blocked = False
        assert len(pipe.outbox) == 1
        links.sweep()
        assert pipe.outbox[1:] == [Ack(seq=1)]

    play(story)


def test_a_silent_link_is_closed_and_a_talking_one_is_not() -> None:
    async def story(links: NodeLinks, _: Intake, clock: ManualClock) -> None:
        silent, silent_task = await link(links, "silent")
        talking, talking_task = await link(links, "talking")
        for _round in range(15):
            links.sweep()
            clock.advance(5)
            talking.inbox.put_nowait(b"\x81\xa4type\xa3new")
            await settle()
        await silent_task
        assert silent.closed == (4000, "silent")
        assert not talking_task.done()
        assert links.open_count == 1

    play(story)


def test_a_link_that_never_says_hello_is_closed_soon() -> None:
    async def story(links: NodeLinks, _: Intake, clock: ManualClock) -> None:
        pipe = Pipe()
        task = asyncio.create_task(links.serve("a", pipe))
        await settle()
        links.sweep()
        clock.advance(16)
        links.sweep()
        await task
        assert pipe.closed == (4000, "silent")

    play(story)


def test_two_machines_with_one_credential_are_noticed_and_forgotten_again() -> None:
    async def story(links: NodeLinks, _: Intake, clock: ManualClock) -> None:
        await link(links)
        for _round in range(5):
            clock.advance(10)
            await link(links)
        assert links.flapping() == ("a",)
        clock.advance(120)
        assert links.flapping() == ()

    play(story)


def test_a_restarting_agent_is_not_called_flapping() -> None:
    async def story(links: NodeLinks, _: Intake, clock: ManualClock) -> None:
        for _round in range(20):
            clock.advance(60)
            await link(links)
        assert links.replaced == 19
        assert links.flapping() == ()

    play(story)


def test_stopping_closes_every_link_without_calling_it_the_nodes_fault() -> None:
    async def story(links: NodeLinks, _: Intake, __: ManualClock) -> None:
        pipe, task = await link(links)
        await links.close_all()
        await task
        assert pipe.closed == (1001, "stopping")
        assert not any(isinstance(frame, Notice) for frame in pipe.outbox)

    play(story)


def test_cancelling_the_server_side_goes_through() -> None:
    async def story(links: NodeLinks, _: Intake, __: ManualClock) -> None:
        _pipe, task = await link(links)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert links.open_count == 0

    play(story)


def test_stopping_does_not_wait_for_a_link_that_breaks_while_it_is_ended() -> None:
    async def run() -> None:
        links = NodeLinks(Intake(), monotonic=ManualClock().monotonic)
        pipe, task = await link(links)

        async def broken(code: int, reason: str) -> None:
            raise ConnectionResetError

        pipe.close = broken  # type: ignore[method-assign]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await links.close_all()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_what_comes_before_a_hello_is_counted_against_its_node() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        for first in (
            b"\xc1 nonsense",
            encode(TableFrame(seq=0, revision=1, facts_revision=1, table=ProcessTable())),
        ):
            pipe = Pipe()
            pipe.inbox.put_nowait(first)
            await links.serve("a", pipe)
            (notice,) = pipe.outbox
            assert isinstance(notice, Notice)
            assert notice.is_final
        assert intake.refused == [("a", "frame_malformed"), ("a", "hello_missing")]

    play(story)


def test_a_hub_that_dials_asks_for_its_pace_and_learns_why_a_link_ended() -> None:
    async def story(links: NodeLinks, intake: Intake, clock: ManualClock) -> None:
        pipe = Pipe()
        pipe.inbox.put_nowait(HELLO)
        task = asyncio.create_task(links.serve("a", pipe, interval_seconds=20.0))
        await settle()
        assert pipe.outbox == [welcome(received_seq=0, interval_seconds=20.0)]
        assert intake.hellos[0].interval_seconds == 20.0, "the pace from now on, not the one before"
        links.sweep()
        clock.advance(100)
        links.sweep()
        assert not task.done(), "slow is not silent"
        clock.advance(200)
        links.sweep()
        ending = await task
        assert ending is not None
        assert ending.code == "silent"
        pipe.inbox.put_nowait(None)
        assert await links.serve("a", pipe) is None, "the other side is gone"

    play(story)


def test_an_older_run_comes_beside_the_current_one_and_both_are_acknowledged() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        pipe, _task = await link(links)
        pipe.inbox.put_nowait(past(OLD_HELLO, table_message(0)))
        pipe.inbox.put_nowait(table_message(1))
        pipe.inbox.put_nowait(past(table_message(1), table_message(2)))
        await settle()
        current, old = intake.runs
        assert (current.frames, old.frames) == (1, 3)
        assert intake.hellos[1].live_from_seq > 2**61, "whatever it says, it is never live"
        links.note_saved([("a", {"boot": 1, "old": 2})])
        assert pipe.outbox[1:] == [Ack(seq=1), Ack(seq=2, boot_id="old")]
        # What was saved of a run before this link is told as soon as its hello came.
        pipe.inbox.put_nowait(past(OLD_HELLO))
        await settle()
        links.sweep()
        assert pipe.outbox[-1] == Ack(seq=2, boot_id="old")

    play(story)


def test_a_hello_comes_with_when_the_hub_sent_what_it_answers() -> None:
    async def story(links: NodeLinks, intake: Intake, clock: ManualClock) -> None:
        pipe = Pipe()
        shaken_at = clock.monotonic()
        task = asyncio.create_task(links.serve("a", pipe, asked_at=shaken_at))
        clock.advance(5.0)
        pipe.inbox.put_nowait(HELLO)
        await settle()
        welcomed_at = clock.monotonic()
        clock.advance(7.0)
        pipe.inbox.put_nowait(past(OLD_HELLO))
        pipe.inbox.put_nowait(HELLO)
        await settle()
        assert intake.asked_at == [shaken_at, welcomed_at, welcomed_at]
        assert not task.done()

    play(story)


def test_acks_of_both_runs_take_turns_where_only_one_fits() -> None:
    async def story(links: NodeLinks, _: Intake, __: ManualClock) -> None:
        pipe, _task = await link(links)
        pipe.inbox.put_nowait(past(OLD_HELLO))
        await settle()
        pipe.is_narrow = True
        for number in range(6):
            pipe.has_posted = False
            links.note_saved([("a", {"boot": number, "old": number})])
        acks = [(frame.seq, frame.boot_id) for frame in pipe.outbox if isinstance(frame, Ack)]
        assert acks == [(0, None), (1, "old"), (2, None), (3, "old"), (4, None), (5, "old")]

    play(story)


def test_past_frames_that_make_no_sense_are_refused_and_the_rest_is_taken() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        pipe, task = await link(links)
        for nonsense in (past(table_message(0)), past(HELLO), past(past(OLD_HELLO)), past(b"\xc1")):
            pipe.inbox.put_nowait(nonsense)
        pipe.inbox.put_nowait(past(OLD_HELLO, b"\xc1", table_message(7)))
        await settle()
        codes = [frame.code for frame in pipe.outbox if isinstance(frame, Notice)]
        assert codes == [
            "hello_missing",
            "past_is_current",
            "hello_missing",
            "frame_malformed",
            "frame_malformed",
        ]
        current, old = intake.runs
        assert old.frames == 1
        assert len(current.refused) == 4, "counted against the node"
        assert not task.done()

    play(story)


def test_a_flood_of_live_frames_ends_the_link_and_is_shown_on_the_node() -> None:
    async def story(links: NodeLinks, intake: Intake, clock: ManualClock) -> None:
        pipe, task = await link(links)
        calm, _task = await link(links, "calm")
        for seq in range(int(LIVE_BURST) + 10):
            pipe.inbox.put_nowait(sample_message(seq))
        ending = await task
        assert ending is not None
        assert (ending.code, ending.is_final) == ("too_many_frames", True)
        assert pipe.closed == (4000, "too_many_frames")
        assert intake.runs[0].frames == LIVE_BURST - 1  # its hello counts too
        assert intake.runs[0].refused == ["too_many_frames"]
        problem = intake.notes["a", "contact"]
        assert problem is not None
        assert "100 frames" in problem.message
        calm.inbox.put_nowait(sample_message(0))
        await drain(calm)
        assert intake.runs[1].frames == 1, "its neighbour goes on"
        _again, refused = await link(links)
        assert refused.done(), "dialling again does not help"
        clock.advance(10)
        again, _task = await link(links)
        for seq in range(int(LIVE_PER_SECOND) * 5):
            again.inbox.put_nowait(sample_message(seq))
        await drain(again)
        assert links.open_count == 2, "a while later it is listened to again"

    play(story)


def test_large_frames_weigh_more() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        pipe, task = await link(links)
        for seq in range(100):
            pipe.inbox.put_nowait(msgspec.msgpack.encode({"type": "new", "seq": seq, "x": bytes(500_000)}))
        ending = await task
        assert ending is not None
        assert ending.code == "too_many_frames"
        assert 60 < intake.runs[0].frames < 70

    play(story)


def test_a_flood_of_history_is_read_more_slowly_and_none_of_it_is_lost() -> None:
    async def story(links: NodeLinks, intake: Intake, clock: ManualClock) -> None:
        pipe, task = await link(links)
        batch = [sample_message(seq) for seq in range(1000)]
        pipe.inbox.put_nowait(past(OLD_HELLO))
        for _round in range(int(PAST_BURST) // 1000):
            pipe.inbox.put_nowait(past(*batch))
        pipe.inbox.put_nowait(sample_message(0))
        await settle()
        assert not pipe.inbox.empty(), "what is beyond its allowance waits"
        await drain(pipe)
        current, old = intake.runs
        assert (current.frames, old.frames) == (1, int(PAST_BURST))
        assert not task.done()
        assert intake.notes == {}

    play(story)


def test_what_waited_in_the_current_run_is_history_too() -> None:
    async def story(links: NodeLinks, intake: Intake, _: ManualClock) -> None:
        pipe = Pipe()
        hello = Hello(boot_id="boot", layout=LAYOUT, time=1.0, interval_seconds=1.0, live_from_seq=3000)
        pipe.inbox.put_nowait(encode(hello))
        for seq in range(3010):
            pipe.inbox.put_nowait(sample_message(seq))
        task = asyncio.create_task(links.serve("a", pipe))
        await drain(pipe)
        assert intake.runs[0].frames == 3010, "more than would be taken of live ones"
        assert not task.done()

    play(story)


def test_history_is_read_no_faster_than_it_is_kept_and_what_is_live_is() -> None:
    async def story() -> None:
        pauses = [0.0]
        links = NodeLinks(Intake(), monotonic=ManualClock().monotonic, past_pause_seconds=lambda: pauses[0])
        pipe, task = await link(links)
        pauses[0] = 30.0
        for seq in range(3):
            pipe.inbox.put_nowait(sample_message(seq))
        await settle()
        assert pipe.inbox.empty()
        pipe.inbox.put_nowait(past(OLD_HELLO))
        pipe.inbox.put_nowait(past(sample_message(0)))
        await settle()
        assert pipe.inbox.qsize() == 1
        await links.close_all()
        await task

    asyncio.run(story())


def test_a_node_that_is_to_send_again_is_told_to_come_back() -> None:
    async def story(links: NodeLinks, _: Intake, __: ManualClock) -> None:
        pipe, task = await link(links)
        links.send_again("a")
        links.send_again("unknown")
        notice = await task
        assert notice is not None
        assert (notice.code, notice.is_final) == ("send_again", False)
        assert pipe.outbox[-1] == notice

    play(story)


def hello_of(minor: int, interval_seconds: float = 1.0) -> bytes:
    return encode(
        Hello(
            boot_id="boot",
            layout=LAYOUT,
            time=1.0,
            interval_seconds=interval_seconds,
            protocol_minor=minor,
        )
    )


@pytest.mark.promise("overload-asks-for-less")
def test_nodes_that_understand_it_are_asked_for_a_longer_interval_and_others_are_not() -> None:
    async def story(links: NodeLinks, intake: Intake, clock: ManualClock) -> None:
        pipes = [Pipe(), Pipe(), Pipe()]
        for pipe, hello in zip(
            pipes, (hello_of(PACE_MINOR), hello_of(PACE_MINOR - 1), hello_of(PACE_MINOR, 10.0)), strict=True
        ):
            pipe.inbox.put_nowait(hello)
        tasks = [
            asyncio.create_task(links.serve(name, pipe)) for name, pipe in zip("abc", pipes, strict=True)
        ]
        await settle()

        def asked() -> list[list[float | None]]:
            said = [[frame for frame in pipe.outbox if isinstance(frame, Pace)] for pipe in pipes]
            return [[frame.interval_seconds for frame in frames] for frames in said]

        links.set_stretch(1.0)
        assert asked() == [[], [], []]
        pipes[0].is_blocked = True
        links.set_stretch(8.0)
        assert asked() == [[], [], [60.0]]
        assert links.asked_count == 1
        pipes[0].is_blocked = False
        links.set_stretch(8.0)
        links.set_stretch(8.0)
        assert asked() == [[8.0], [], [60.0]], "as soon as it can be said, and once"
        assert links.asked_count == 2
        clock.advance(11.0)
        links.set_stretch(8.0)
        assert asked() == [[8.0, 8.0], [], [60.0, 60.0]], "again now and then: a sign of life"
        links.set_stretch(1.0)
        clock.advance(11.0)
        links.set_stretch(1.0)
        assert asked() == [[8.0, 8.0, None], [], [60.0, 60.0, None]]
        assert [run.expected_seconds for run in intake.runs] == [[8.0, 1.0], [], [60.0, 10.0]]
        assert links.asked_count == 0
        # A new run on the same link goes on at the pace that its node was asked for.
        links.set_stretch(4.0)
        pipes[0].inbox.put_nowait(hello_of(PACE_MINOR))
        await settle()
        assert intake.runs[-1].expected_seconds == [4.0]
        await links.close_all()
        await asyncio.gather(*tasks)

    play(story)


def test_a_link_whose_node_was_asked_for_a_long_interval_is_not_called_silent() -> None:
    async def story(links: NodeLinks, _: Intake, clock: ManualClock) -> None:
        pipe = Pipe()
        pipe.inbox.put_nowait(hello_of(PACE_MINOR, 5.0))
        task = asyncio.create_task(links.serve("a", pipe))
        await settle()
        links.set_stretch(4.0)
        links.sweep()
        clock.advance(150.0)
        links.sweep()
        await settle()
        assert not task.done()
        clock.advance(100.0)
        links.sweep()
        notice = await task
        assert notice is not None
        assert notice.code == "silent"

    play(story)


@pytest.mark.promise("overload-answers-pings")
def test_reading_of_a_link_is_never_put_off_so_long_that_a_ping_waits_5_seconds() -> None:
    clock = ManualClock()
    brake = Brake(clock.monotonic())
    waits = []
    for _ in range(5):  # bursts of what has waited, as long as a link can hold, with a ping behind each
        started = clock.monotonic()
        for _ in range(1000):
            clock.advance(brake.put_off(1.0, clock.monotonic()))
        waits.append(clock.monotonic() - started)
        clock.advance(15.0)
    assert 0.0 < max(waits) < 5.0
