"""Nodes of older tools: real servers on loopback addresses of their own, well-behaved or not."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed, Way
from support.arrivals import KeptIntake

__all__ = ["Follower", "Question", "following", "serving"]


class Question(NamedTuple):
    """A request as it came, byte for byte."""

    head: bytes
    body: bytes


Reply = Callable[[Question, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(reply: Reply, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Read requests whole and let ``reply`` write whatever it likes; one request a connection."""

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            await reply(Question(head, body), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(begin, host, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0)  # who was let in just now is served by then, and sent away like the others
        while tasks:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Follower:
    """Follows one node as the hub does: shows why it fails and tries again."""

    def __init__(self, way: Way, target: Target) -> None:
        self.way = way
        self.target = target
        self.intake = KeptIntake(target.name)
        self.failures: list[ContactFailed] = []

    async def run(self) -> None:
        while True:
            try:
                await self.way.follow(self.target, self.intake)
            except ContactFailed as failure:
                self.failures.append(failure)
            await asyncio.sleep(0.05)

    @property
    def codes(self) -> set[str]:
        return {failure.code for failure in self.failures}


@contextlib.asynccontextmanager
async def following(way: Way, *targets: Target) -> AsyncIterator[list[Follower]]:
    """Follow nodes until the end of the block."""
    followers = [Follower(way, target) for target in targets]
    tasks = [asyncio.create_task(follower.run()) for follower in followers]
    try:
        yield followers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await way.close()
