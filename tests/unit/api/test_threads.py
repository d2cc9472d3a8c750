"""Blocking work in threads of its own."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from gpuherd.api.threads import BoundedThreads, TooMuchWork

NOBODY = 65_534


def test_work_is_done_also_where_its_priority_may_not_be_changed() -> None:
    """As under systemd's filter of system calls; more priority is refused to everyone but root."""
    threads = BoundedThreads("eager", threads=1, max_waiting=1, deadline_seconds=5.0, niceness=-5)
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        assert asyncio.run(threads.run(lambda: "done")) == "done"
    finally:
        os.seteuid(before)
        threads.close()


def test_lanes_have_their_turns_and_a_bound() -> None:
    threads = BoundedThreads("fair", threads=1, max_waiting=4, deadline_seconds=60.0, max_in_lane=2)
    gate, begun, done = threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        begun.set()
        gate.wait(60.0)

    async def story() -> None:
        async with asyncio.TaskGroup() as group:

            async def put(lane: str, name: str, *, has_place: bool = False) -> None:
                group.create_task(
                    threads.run_in_lane(lane, lambda: done.append(name), has_place=has_place), name=name
                )
                await asyncio.sleep(0)

            group.create_task(threads.run_in_lane("crowd", hold))
            await asyncio.to_thread(begun.wait, 60.0)
            await put("crowd", "crowd 1")
            await put("crowd", "crowd 2")
            assert threads.is_full("crowd")
            with pytest.raises(TooMuchWork):
                await threads.run_in_lane("crowd", lambda: None)
            assert not threads.is_full("other")
            await put("other", "other")
            await put("last", "last")
            assert threads.is_full("late")
            assert not threads.is_full("own", has_place=True)
            await put("own", "own", has_place=True)
            gate.set()

    try:
        asyncio.run(story())
    finally:
        gate.set()
        threads.close()
    assert done == ["crowd 1", "other", "last", "own", "crowd 2"]
