"""Loops go on whatever happens to one round."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from gpuherd.api.supervision import MAX_BACKOFF_SECONDS, Loop, Supervisor
from gpuherd.model.errors import Failed
from support.herd import ManualClock
from support.running import PATIENCE_SECONDS, until

DICE = Random(1)  # noqa: S311 - jitter


class Work:
    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.rounds = 0

    async def __call__(self) -> None:
        self.rounds += 1
        if self.error is not None:
            raise self.error


def loop_of(work: Work, *, every_seconds: float = 0.001, deadline_seconds: float = 5.0) -> Loop:
    return Loop(
        "work",
        work,
        every_seconds=every_seconds,
        deadline_seconds=deadline_seconds,
        clock=ManualClock(),
        random=DICE,
    )


def test_errors_are_counted_shown_and_forgiven(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    loop = loop_of(work)

    async def story() -> None:
        await loop.round()
        assert loop.health().state == "ok"
        work.error = Failed("the disk is full")
        await loop.round()
        work.error = ValueError("surprise")
        await loop.round()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    health = loop.health()
    assert (health.state, health.rounds, health.errors, health.consecutive_errors) == ("failing", 1, 2, 2)
    assert health.last_error == "ValueError: surprise"
    assert health.last_error_at == health.last_success_at == ManualClock().wall()
    assert len(caplog.records) == 1, "the first of a row of errors is logged, not every one"
    work.error = None
    asyncio.run(loop.round())
    assert (loop.health().state, loop.health().consecutive_errors) == ("ok", 0)


def test_a_round_that_hangs_is_given_up() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    loop = Loop("work", hang, every_seconds=1, deadline_seconds=0.01, clock=ManualClock(), random=DICE)
    asyncio.run(loop.round())
    assert loop.health().last_error == "took longer than 0.01 s"


def test_pauses_grow_with_jitter_up_to_a_limit() -> None:
    work = Work()
    work.error = Failed("no")
    loop = loop_of(work, every_seconds=1.0)
    pauses = []
    for _ in range(12):
        asyncio.run(loop.round())
        pauses.append(loop._backoff_seconds())
    assert all(1.0 <= pause <= 2.0 for pause in pauses[:1])
    assert all(pause <= MAX_BACKOFF_SECONDS for pause in pauses)
    assert len(set(pauses)) == len(pauses)
    assert pauses[-1] >= MAX_BACKOFF_SECONDS / 2


def test_one_failing_loop_leaves_the_others_running() -> None:
    async def story() -> None:
        good, bad = Work(), Work()
        bad.error = RuntimeError("broken for good")
        supervisor = Supervisor(ManualClock(), DICE)
        supervisor.add("good", good, every_seconds=0.001)
        supervisor.add("bad", bad, every_seconds=0.001)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while good.rounds < 5 or bad.rounds < 3:  # noqa: ASYNC110 - the loops have no event
                await asyncio.sleep(0.001)
        assert {loop.name: loop.state for loop in supervisor.health()} == {"good": "ok", "bad": "failing"}
        await supervisor.stop()
        assert {loop.state for loop in supervisor.health()} == {"stopped"}

    asyncio.run(story())


def test_a_round_that_is_broken_off_from_within_is_an_error_like_any_other() -> None:
    work = Work()
    work.error = asyncio.CancelledError()
    loop = loop_of(work)

    async def story() -> None:
        running = asyncio.create_task(loop.run())
        await until(lambda: work.rounds >= 2, "it went round again")
        assert loop.health().state == "failing"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert loop.health().state == "stopped"
