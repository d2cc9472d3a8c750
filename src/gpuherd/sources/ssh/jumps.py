"""Jump hosts: one connection to each, shared by all the nodes behind it and closed when the last of them goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import asyncssh

from gpuherd.sources.following import ContactFailed
from gpuherd.sources.ssh.connect import Connector, hang_up
from gpuherd.sources.ssh.login import Login
from gpuherd.sources.ssh.places import Progress

__all__ = ["JumpHosts"]

_Chain = tuple[tuple[str, str, int], ...]


class _Jump:
    """A connection being made or in use."""

    def __init__(self) -> None:
        self.connection: asyncio.Future[asyncssh.SSHClientConnection] = (
            asyncio.get_running_loop().create_future()
        )
        self.users = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        if not self.connection.done():
            return False
        if self.connection.cancelled() or self.connection.exception() is not None:
            return True
        return self.connection.result().is_closed()


class JumpHosts:
    """Lends connections to jump hosts."""

    def __init__(self, connector: Connector, *, deadline_seconds: float, keepalive_seconds: float) -> None:
        self._connector = connector
        # A little less than a node has, so that it hears why the jump host cannot be reached.
        self._deadline_seconds = 0.9 * deadline_seconds
        self._keepalive_seconds = keepalive_seconds
        self._jumps: dict[_Chain, _Jump] = {}

    @asynccontextmanager
    async def through(
        self, hops: tuple[Login, ...], progress: Progress
    ) -> AsyncIterator[asyncssh.SSHClientConnection | None]:
        """Lend the connection to the last of the hops; none if there are no hops."""
        if not hops:
            yield None
            return
        chain = tuple((hop.user, hop.host, hop.port) for hop in hops)
        jump = self._jumps.get(chain)
        if jump is None or jump.is_over:
            jump = self._jumps[chain] = _Jump()
            jump.task = asyncio.create_task(self._hold(jump, hops), name=f"jump host {hops[-1].where}")
        jump.users += 1
        try:
            progress.hop = hops[-1].where
            progress.phase = "connecting"
            try:
                connection = await asyncio.shield(jump.connection)
            except ContactFailed as failure:
                raise ContactFailed(
                    failure.code, f"{progress.node}: {failure}", needs_person=failure.needs_person
                ) from failure
            progress.hop = ""
            yield connection
        finally:
            jump.users -= 1
            if jump.users == 0:
                if self._jumps.get(chain) is jump:
                    del self._jumps[chain]
                await _end(jump)

    async def _hold(self, jump: _Jump, hops: tuple[Login, ...]) -> None:
        """Connect and stay until nobody needs it any more, or it is lost."""
        progress = Progress(f"jump host {hops[-1].where}")
        try:
            async with AsyncExitStack() as stack:
                tunnel = await stack.enter_async_context(self.through(hops[:-1], progress))
                try:
                    async with asyncio.timeout(self._deadline_seconds) as deadline:
                        connection, _ = await self._connector.log_in(hops[-1], tunnel, progress, deadline)
                        stack.push_async_callback(hang_up, connection)
                except TimeoutError:
                    raise progress.too_late(self._deadline_seconds) from None
                connection.set_keepalive(1.5 * self._keepalive_seconds, 1)
                jump.connection.set_result(connection)
                await connection.wait_closed()
        except ContactFailed as failure:
            _give_up(jump, failure)
        finally:
            _give_up(jump, progress.failure("link_lost", "its connection was abandoned"))


async def _end(jump: _Jump) -> None:
    if jump.task is not None:
        jump.task.cancel()
        await asyncio.wait([jump.task])


def _give_up(jump: _Jump, failure: ContactFailed) -> None:
    if not jump.connection.done():
        jump.connection.set_exception(failure)
        jump.connection.exception()  # seen, even when whoever asked has left meanwhile
