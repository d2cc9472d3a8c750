"""Blocking verbs of the records beside the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gpuherd.api.record_calls import NoAnswer, RecordCalls
from gpuherd.model.errors import Failed, Refused
from support.hub import eventually
from support.running import PATIENCE_SECONDS


def test_gives_the_answer() -> None:
    async def story() -> None:
        calls = RecordCalls()
        assert await calls.run(sorted, (2, 1), reverse=True) == [2, 1]
        calls.close()

    asyncio.run(story())


def test_raises_what_the_verb_raises() -> None:
    def refuse() -> None:
        raise Refused("name_taken", "the name is taken")

    async def story() -> None:
        calls = RecordCalls()
        with pytest.raises(Refused, match="the name is taken"):
            await calls.run(refuse)
        calls.close()

    asyncio.run(story())


def test_a_frozen_database_costs_its_callers_an_error_and_nobody_else_anything() -> None:
    calls = RecordCalls(threads=2, max_waiting=3, deadline_seconds=0.2)
    thaw = threading.Event()
    begun: list[int] = []

    async def story() -> None:
        stuck = [asyncio.ensure_future(calls.run(thaw.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        await eventually(lambda: not calls._threads._waiting)
        behind = [asyncio.ensure_future(calls.run(begun.append, number)) for number in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Failed, match="too busy"):
            await calls.run(begun.append, 4)
        answers = await asyncio.gather(*stuck, *behind, return_exceptions=True)
        assert [type(answer) for answer in answers] == [NoAnswer] * 5
        assert "does not respond" in str(answers[0])
        assert not calls._threads._waiting
        assert len(calls._threads._threads) == 2
        thaw.set()
        # It works again by itself, and what had been given up was never begun.
        assert await calls.run(lambda: "awake") == "awake"
        assert begun == []
        calls.close()

    asyncio.run(story())


def test_takes_nothing_after_its_end() -> None:
    calls = RecordCalls()
    calls.close()
    with pytest.raises(Failed, match="stopping"):
        asyncio.run(calls.run(int))


def test_threads_end_with_it() -> None:
    calls = RecordCalls(threads=2)

    async def story() -> None:
        await asyncio.gather(*(calls.run(int) for _ in range(8)))

    asyncio.run(story())
    calls.close()
    for thread in calls._threads._threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
