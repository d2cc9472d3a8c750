"""How far the contact to a node has come: told by its parts while it goes on, waited for by the walk."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from gpuherd.fleet.clock import SystemClock
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.settings import AvailabilitySettings
from gpuherd.fleet.views import NodeView
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from gpuherd.model.targets import NodeWay
from gpuherd.model.text import clean
from gpuherd.sources.push import NumberedRun
from gpuherd.sources.ssh.session import RoundReader
from gpuherd.wire.blocks import Round
from gpuherd.wire.codec import UnknownFrame
from gpuherd.wire.frames import FactsFrame, Hello, SampleFrame, TableFrame

__all__ = ["Milestones", "NodeRecorder", "NotedReader"]


class Milestones:
    """Names of what was reached, in order."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.facts: dict[str, str] = {}
        """What is to be said of it, where there is more to say than that it works."""
        self._news = asyncio.Event()

    def reach(self, name: str, fact: str = "") -> None:
        """Note that something works."""
        if fact:
            self.facts.setdefault(name, fact)
        if name not in self.reached:
            self.reached.append(name)
            self._news.set()

    async def until(self, names: Collection[str], ended: asyncio.Task[None]) -> bool:
        """Wait until one of these is reached; false when the contact has ended before."""
        while not any(name in names for name in self.reached):
            if ended.done():
                return False
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait({news, ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
        return True


class NotedReader:
    """A reader of rounds over SSH that tells what is reached."""

    def __init__(self, reader: RoundReader, milestones: Milestones) -> None:
        self._reader = reader
        self._milestones = milestones
        milestones.reach("login")  # a reader is made when the login has worked

    def read(self, round: Round) -> Report:  # noqa: A002 - the wire's own word for it
        """Pass on."""
        self._milestones.reach("command", _tools_fact(round))
        return self._reader.read(round)

    def close(self) -> None:
        """Pass on."""
        self._reader.close()


def _tools_fact(round_: Round) -> str:
    """Say with what the node reads its GPUs."""
    block = round_.blocks.get("tools")
    tools = [] if block is None else clean(block.content.decode(errors="replace").strip(), 80).split()
    return (
        f"the script runs, with {', '.join(tools)}" if tools else "the script runs, but finds no nvidia-smi"
    )


class _NotedRun:
    """A run of frames of a listening agent."""

    def __init__(self, run: NumberedRun, recorder: NodeRecorder) -> None:
        self._run = run
        self._recorder = recorder
        self.boot_id = run.boot_id
        self.resume_after_seq = run.resume_after_seq

    def refuse(self, error: Refused) -> None:
        self._recorder.refusal = error
        self._run.refuse(error)

    def expect_every(self, interval_seconds: float) -> None:
        self._run.expect_every(interval_seconds)

    def accept(self, frame: FactsFrame | TableFrame | SampleFrame | UnknownFrame, message: bytes) -> None:
        self._recorder.milestones.reach("answer")
        try:
            self._run.accept(frame, message)
        except Refused as refusal:
            self._recorder.refusal = refusal
            raise
        self._recorder.look()


class NodeRecorder:
    """A fleet of one node: where its reports or frames go, checked as the hub checks them."""

    def __init__(self, node_id: str, name: str, way: NodeWay, interval_seconds: float) -> None:
        self.node_id = node_id
        self.milestones = Milestones()
        self.interval_seconds = interval_seconds
        self.clock = SystemClock()
        self.arrived_at: list[float] = []
        """When reports of right now came, by the monotonic clock."""
        self.skews_seconds: list[float] = []
        self.refusal: Refused | None = None
        self._fleet = Fleet(clock=self.clock, settings=AvailabilitySettings())
        self._fleet.add_node(node_id, name, way)

    def take(self, report: Report) -> None:
        """Take a report; ``Refused`` if its parts do not line up."""
        for stage in ("login", "command", "answer"):
            self.milestones.reach(stage)
        self._fleet.accept_report(self.node_id, report, self.interval_seconds)
        self.look()

    def open_run(self, node_id: str, hello: Hello, *, asked_at: float | None = None) -> NumberedRun:
        """Take a listening agent's hello: both sides have proven themselves by then."""
        self.milestones.reach("key")
        return _NotedRun(self._fleet.open_run(node_id, hello, asked_at=asked_at), self)

    def refuse(self, node_id: str, error: Refused) -> None:
        """Note what came before any run was open."""
        self.refusal = error
        self._fleet.refuse(node_id, error)

    def look(self) -> None:
        """See whether what came last is a report of right now."""
        received = self._fleet.received_at(self.node_id)
        if received is None or (self.arrived_at and received <= self.arrived_at[-1]):
            return
        self.arrived_at.append(received)
        skew = self.view().clock_skew_seconds
        if skew is not None:
            self.skews_seconds.append(skew)
        self.milestones.reach("parse")
        self.milestones.reach(f"report {len(self.arrived_at)}")

    def view(self) -> NodeView:
        """Show the node as the hub would."""
        self._fleet.tick()
        view = self._fleet.node(self.node_id)
        if view is None:
            raise AssertionError("the node was added")
        return view
