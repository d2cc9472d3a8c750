"""Samples that are in a store elsewhere are asked for apart from all that is kept here."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import DevicesQuestion, HerdQuestion, HostQuestion, Wanted
from gpuherd.api.past.history_desk import HistoryDesk
from gpuherd.api.past.questions import Questions
from gpuherd.history.outside.server import Unanswered
from gpuherd.history.store import SeriesAnswer, SeriesQuery
from support.reported_past import NOW, VIEWERS, ReportedPast
from support.running import PATIENCE_SECONDS

SPAN = Wanted(since=str(int(NOW - 3600)), until=str(int(NOW)))


class Frozen:
    """A store that accepts questions and answers none; who waits gives up when it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.may_end = threading.Event()

    def read(self, query: SeriesQuery) -> SeriesAnswer:
        self.asked.release()
        assert self.may_end.wait(PATIENCE_SECONDS)
        raise Unanswered("http://127.0.0.1:1: no response in time")


def test_a_frozen_store_costs_the_herds_chart_nothing(past: ReportedPast) -> None:
    frozen = Frozen()
    memory = past.memory._replace(samples=frozen, is_outside=True)
    viewer = VIEWERS["ada"]

    async def story() -> None:
        questions = Questions(past.clock, threads=1)
        desk = HistoryDesk(
            memory, questions=questions, faces=past.history._faces, clock=past.clock, zone="Europe/Berlin"
        )
        device = DevicesQuestion(span=SPAN, devices=("n1:GPU-n1-0",), metrics=("power_watts",), points=60)
        host = HostQuestion(span=SPAN, node_id="n1", metrics=("cpu_ratio",), points=60)
        waiting = [
            asyncio.create_task(desk.devices(viewer, device)),
            asyncio.create_task(desk.host(viewer, host)),
        ]
        try:
            await asyncio.to_thread(frozen.asked.acquire)
            answer = await asyncio.wait_for(
                desk.herd(viewer, HerdQuestion(span=SPAN, type=None, points=60)), 10.0
            )
            assert answer.body
            assert not any(task.done() for task in waiting)
            frozen.may_end.set()
            for refused in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(refused, HttpError)
                assert refused.status == 503
            assert not frozen.asked.acquire(blocking=False), (
                "who waited for the thread is refused without asking"
            )
            # It is left alone for a moment.
            with pytest.raises(HttpError) as told:
                await asyncio.wait_for(desk.devices(viewer, device), PATIENCE_SECONDS)
            assert told.value.detail.code == "history_unavailable"
            assert not frozen.asked.acquire(blocking=False)
        finally:
            frozen.may_end.set()
            questions.close()

    asyncio.run(story())
