"""A watch over real probes whose readings are told as reports, with a clock that a test can push ahead."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gpuherd.agent.exchange import Reading
from gpuherd.agent.numbering import Numbering
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.watch import ProbeWatch
from gpuherd.agent.xid_memory import XidMemory
from gpuherd.model.reports import Problem, Report
from support.running import PATIENCE_SECONDS

__all__ = ["DEADLINE_SECONDS", "Node", "is_alive", "node_of", "problem", "temperatures"]

DEADLINE_SECONDS = 0.4


class Clock:
    """Real time that a test can push ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class Node:
    """A watch whose readings are told as reports."""

    def __init__(self, spec: ProbeSpec, xids: XidMemory | None = None, **options: object) -> None:
        self.clock = Clock()
        self.xids = xids
        options.setdefault("deadline_seconds", DEADLINE_SECONDS)
        self.watch = ProbeWatch(spec, monotonic=self.clock, **options)  # type: ignore[arg-type]
        self._numbering = Numbering()

    async def report(self) -> Report:
        reading = await self.watch.read()
        assert isinstance(reading, Reading), self.watch.trouble
        if self.xids is not None:
            reading = self.xids.completed(reading)
        self._numbering.entries(reading)
        report = self._numbering.report(reading)
        assert report.mismatch() is None
        return report

    async def report_when(self, wanted: Callable[[Report], bool]) -> Report:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            report = await self.report()
            if wanted(report):
                return report
            assert time.monotonic() < deadline, report
            await asyncio.sleep(0.02)


@asynccontextmanager
async def node_of(spec: ProbeSpec, xids: XidMemory | None = None, **options: object) -> AsyncIterator[Node]:
    node = Node(spec, xids, **options)
    try:
        yield node
    finally:
        pids = node.watch.probe_pids
        await node.watch.stop()
        assert not [pid for pid in pids if is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def temperatures(report: Report) -> dict[str, float | None]:
    return {
        device.uuid: sample.temperature_celsius
        for device, sample in zip(report.facts.devices, report.sample.devices, strict=True)
    }


def problem(report: Report, code: str) -> Problem | None:
    return next((problem for problem in report.sample.problems if problem.code == code), None)
