"""A hub on a free loopback port, and a node that talks to it over a real WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from websockets.asyncio.client import ClientConnection, connect

from gpuherd.api.hub import Hub
from gpuherd.api.settings import HubSettings
from gpuherd.auth.enrolment import Enrolled
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Sample
from gpuherd.wire.codec import encode, hub_decoder
from gpuherd.wire.frames import SUBPROTOCOL, Ack, FactsFrame, Hello, Notice, TableFrame, Welcome
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wire.reports import sample_to_frame
from support.herd import WORKING, gpu
from support.running import PATIENCE_SECONDS, free_port

T = TypeVar("T")


async def eventually(what: Callable[[], T | None]) -> T:
    """Wait until ``what`` gives something true."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := what()):  # noqa: ASYNC110 - the thing waited for has no event
            await asyncio.sleep(0.01)
    return found


@contextlib.asynccontextmanager
async def running_hub(
    state_dir: Path, *, hub_options: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[Hub]:
    """Run a hub in this event loop, on a port of its own.

    It waits longer for its records and for passwords than others do: on a busy machine nobody shall be given up.
    """
    values: dict[str, Any] = {
        "state_dir": state_dir,
        "listen": f"127.0.0.1:{free_port()}",
        "tick_seconds": 0.05,
        **settings,
    }
    async with Hub(HubSettings(**values), **(hub_options or {})) as hub:
        for threads in (hub.record_calls._threads, hub.reception._hashing, hub.reception._asking):
            threads._deadline_seconds = PATIENCE_SECONDS
        yield hub


@contextlib.contextmanager
def impatient(hub: Hub, seconds: float = 1.0) -> Iterator[None]:
    """Let a hub give up early on records that do not answer; usually it waits for ten seconds."""
    threads = hub.record_calls._threads
    usual, threads._deadline_seconds = threads._deadline_seconds, seconds
    try:
        yield
    finally:
        threads._deadline_seconds = usual


class NodeClient:
    """The agent's side of a link, one step at a time."""

    def __init__(self, url: str, credential: str, *, boot_id: str = "boot-1", devices: int = 2) -> None:
        self.address = url.replace("http", "ws", 1) + "api/v1/agent"
        self.credential = credential
        self.boot_id = boot_id
        self.facts = NodeFacts(
            host=HostFacts(hostname="any"), devices=tuple(gpu(index) for index in range(devices))
        )
        self.seq = 0
        self.acked = -1
        self.notices: list[Notice] = []
        self.patience_seconds: float | None = PATIENCE_SECONDS
        """How long to wait for a frame."""
        self.connection: ClientConnection | None = None
        self._decoder = hub_decoder()

    def node_time(self) -> float:
        """What time it is on the node."""
        return 1.0

    async def dial(self, **options: Any) -> ClientConnection:
        headers = {"Authorization": f"Bearer {self.credential}"}
        self.connection = await connect(
            self.address,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            additional_headers=headers,
            compression=None,
            proxy=None,
            close_timeout=1,
            **options,
        )
        return self.connection

    async def open(self, *, live_from_seq: int = 0) -> Welcome:
        """Dial, say hello and return the welcome."""
        await self.dial()
        return await self.hello(live_from_seq=live_from_seq)

    async def hello(self, *, live_from_seq: int = 0) -> Welcome:
        hello = Hello(
            boot_id=self.boot_id,
            layout=LAYOUT,
            time=self.node_time(),
            interval_seconds=1.0,
            live_from_seq=live_from_seq,
        )
        await self.send(encode(hello))
        while not isinstance(frame := await self.receive(), Welcome):
            pass
        return frame

    async def send(self, message: bytes | str) -> None:
        assert self.connection is not None
        await self.connection.send(message)

    async def receive(self) -> Ack | Notice | Welcome:
        """Take the next frame, noting acks and notices."""
        assert self.connection is not None
        async with asyncio.timeout(self.patience_seconds):
            message = await self.connection.recv()
        assert isinstance(message, bytes)
        frame = self._decoder.decode(message)
        if isinstance(frame, Ack):
            assert frame.seq > self.acked, "an ack never goes back"
            self.acked = frame.seq
        if isinstance(frame, Notice):
            self.notices.append(frame)
        assert isinstance(frame, Ack | Notice | Welcome)
        return frame

    async def wait_acked(self, seq: int) -> None:
        while self.acked < seq:
            await self.receive()

    async def notice(self) -> Notice:
        while not isinstance(frame := await self.receive(), Notice):
            pass
        return frame

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def facts_message(self, seq: int | None = None) -> bytes:
        return encode(FactsFrame(seq=seq or self.next_seq(), revision=1, facts=self.facts))

    def table_message(self, seq: int | None = None) -> bytes:
        return encode(
            TableFrame(seq=seq or self.next_seq(), revision=1, facts_revision=1, table=ProcessTable())
        )

    def sample_message(self, seq: int | None = None, device: DeviceSample = WORKING) -> bytes:
        sample = Sample(
            time=1.0, host=HostSample(cpu_ratio=0.5), devices=tuple(device for _ in self.facts.devices)
        )
        return encode(sample_to_frame(sample, seq=seq or self.next_seq(), facts_revision=1, table_revision=1))

    async def describe(self) -> None:
        await self.send(self.facts_message())
        await self.send(self.table_message())

    async def sample(self, device: DeviceSample = WORKING) -> int:
        await self.send(self.sample_message(device=device))
        return self.seq

    async def close(self) -> None:
        if self.connection is not None:
            await self.connection.close()


@contextlib.asynccontextmanager
async def node_client(hub: Hub, enrolled: Enrolled | str, **options: Any) -> AsyncIterator[NodeClient]:
    """A node that is admitted (by name, or as already enrolled), connected and described."""
    if isinstance(enrolled, str):
        enrolled = await hub.admit(enrolled)
    client = NodeClient(hub.url, enrolled.credential, **options)
    await client.open()
    await client.describe()
    try:
        yield client
    finally:
        await client.close()


async def get_json(url: str, **options: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url, **options) as response:
        return await response.json()
