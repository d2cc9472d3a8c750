"""Listening agents and what dials them: the real way and links in front of a fleet that writes everything down."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gpuherd.agent.listen import Listener
from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.api.node_groups import Group
from gpuherd.api.outfit import BareOutfit
from gpuherd.auth.node_secrets import node_secret
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.pull import PullWay
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings
from gpuherd.wire.codec import UnknownFrame
from gpuherd.wire.frames import FactsFrame, Hello, SampleFrame, TableFrame
from support.running import PATIENCE_SECONDS, until

MASTER = b"ghm_" + b"m" * 43
NODE_ID = "gpu01"
INTERVAL_SECONDS = 0.2
secret_of = partial(node_secret, MASTER)

Numbered = FactsFrame | TableFrame | SampleFrame | UnknownFrame


def write_secret(folder: Path, secret: str) -> str:
    folder.mkdir(exist_ok=True)
    file = folder / "listen-secret"
    file.touch(mode=0o600)
    file.write_text(secret + "\n")
    return str(file)


@contextlib.asynccontextmanager
async def listening(
    spec: ProbeSpec, state_dir: Path, *, secret: str | None = None, port: int = 0, **settings: Any
) -> AsyncIterator[tuple[Agent, int]]:
    """Run an agent that listens on loopback; gives it and its port."""
    values = {
        "listen": f"127.0.0.1:{port}",
        "listen_secret_file": write_secret(state_dir, secret or secret_of(NODE_ID)),
        "interval_seconds": INTERVAL_SECONDS,
        **settings,
    }
    agent = Agent(msgspec.convert(values, AgentSettings), spec, state_dir=state_dir)
    assert isinstance(agent.link, Listener)
    door = agent.link.door
    stop = asyncio.Event()
    task = asyncio.create_task(agent.run(stop))
    try:
        await until(lambda: door.port != 0 or task.done(), "the agent listens")
        if task.done():
            task.result()
        yield agent, door.port
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


class WrittenRun:
    """One run's frames, each with how often it came."""

    def __init__(self, boot_id: str) -> None:
        self.boot_id = boot_id
        self.frames: dict[int, Numbered] = {}
        self.arrivals: list[int] = []
        self.resume_after_seq = -1

    def accept(self, frame: Numbered, message: bytes) -> None:
        assert frame.seq is not None
        self.arrivals.append(frame.seq)
        self.frames[frame.seq] = frame

    def refuse(self, error: Refused) -> None:
        raise error

    def expect_every(self, interval_seconds: float) -> None:
        raise AssertionError("this hub is never overloaded")

    @property
    def missing(self) -> list[int]:
        return [seq for seq in range(max(self.frames, default=-1) + 1) if seq not in self.frames]


class SmallHub:
    """Dials one agent; keeps every frame, also over several lives, and acknowledges at once."""

    def __init__(self, *, secret: str | None = None, is_saving: bool = True, **settings: Any) -> None:
        self.runs: dict[str, WrittenRun] = {}
        self.hellos: list[Hello] = []
        self.refused: list[str] = []
        self.links = NodeLinks(self, monotonic=asyncio.get_running_loop().time)
        self.way = PullWay(
            PullSettings(interval_seconds=INTERVAL_SECONDS, connect_deadline_seconds=2, **settings),
            links=self.links,
            secret_of=(lambda _: secret) if secret is not None else secret_of,
        )
        self.is_saving = is_saving
        self._following: asyncio.Task[None] | None = None

    # what the links and the way ask for

    @property
    def node_id(self) -> str:
        return NODE_ID

    def take(self, report: Report) -> None:
        raise AssertionError("pull hands over frames, not reports")

    def open_run(self, node_id: str, hello: Hello, *, asked_at: float | None = None) -> WrittenRun:
        assert node_id == NODE_ID
        self.hellos.append(hello)
        run = self.runs.setdefault(hello.boot_id, WrittenRun(hello.boot_id))
        run.resume_after_seq = max(run.frames, default=-1)
        return run

    def refuse(self, node_id: str, error: Refused) -> None:
        self.refused.append(error.code)

    # what tests do

    def dial(self, port: int, host: str = "127.0.0.1") -> asyncio.Task[None]:
        target = Target(name=NODE_ID, address=host, port=port)
        self._following = asyncio.create_task(self.way.follow(target, self))
        return self._following

    async def failure(self, port: int, host: str = "127.0.0.1") -> ContactFailed:
        """Dial and give why it failed."""
        with contextlib.suppress(ContactFailed):
            await asyncio.wait_for(self.dial(port, host), PATIENCE_SECONDS)
        assert self._following is not None
        error = self._following.exception()
        assert isinstance(error, ContactFailed)
        return error

    @property
    def arrivals(self) -> int:
        return sum(len(run.arrivals) for run in self.runs.values())

    async def heard(self, count: int) -> None:
        """Wait for so many more frames, acknowledging as they come."""
        wanted = self.arrivals + count
        while self.arrivals < wanted:
            before = self.arrivals
            await until(lambda: self.arrivals > before or self._is_over(), "frames")  # noqa: B023
            assert not self._is_over(), self._following
            if self.is_saving:
                saved = {boot_id: max(run.frames, default=-1) for boot_id, run in self.runs.items()}
                self.links.note_saved([(NODE_ID, saved)])

    def _is_over(self) -> bool:
        return self._following is not None and self._following.done()

    def vanish(self, *, is_reset: bool = False) -> None:
        """Break the connection as a killed hub does, without a goodbye; or as a machine that has started anew does."""
        assert self.way._session is not None
        for connections in list(self.way._session.connector._acquired):  # type: ignore[union-attr]
            assert connections.transport is not None
            if is_reset:
                taken = connections.transport.get_extra_info("socket")
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connections.transport.abort()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self.way.close()


@contextlib.asynccontextmanager
async def small_hub(**options: Any) -> AsyncIterator[SmallHub]:
    hub = SmallHub(**options)
    try:
        yield hub
    finally:
        await hub.close()


class FixedList:
    """A finder that always names the same."""

    name = "a fixed list"

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = tuple(targets)

    async def find(self) -> tuple[Target, ...]:
        return self._targets

    async def wait(self) -> None:
        await asyncio.sleep(3600)

    async def close(self) -> None:
        pass


class PullingOutfit(BareOutfit):
    """Fits a real hub out with listed nodes that listen."""

    def __init__(self, *targets: Target, **settings: Any) -> None:
        self._targets = targets
        self._settings = PullSettings(interval_seconds=INTERVAL_SECONDS, **settings)

    def groups(self, links: NodeLinks) -> Sequence[Group]:
        way = PullWay(self._settings, links=links, secret_of=secret_of)
        return [Group(FixedList(self._targets), way)]
