"""How many logins go on at a time: the hub's own processor, and each server's MaxStartups, are spared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from weakref import WeakValueDictionary

from gpuherd.sources.dial_gate import DialGate

__all__ = ["Gates"]

DIALS_PER_LOGIN = 8
"""Machines that are down cost little but time: many may be dialled for each login under way."""
PER_SERVER = 4
"""Logins at one server at a time; sshd's MaxStartups begins to refuse at ten."""
JITTER_SECONDS = 0.25
PROMPT_SECONDS = 1.0
"""With jitter, the name and the server's greeting. Who takes longer gives its place to the next."""


class Gates:
    """Bounds what goes on at once. Waiting at a gate does not count against the deadline of who waits."""

    def __init__(self, logins_at_once: int, random: Callable[[], float]) -> None:
        self._random = random
        self._dials = DialGate(logins_at_once * DIALS_PER_LOGIN, prompt_seconds=PROMPT_SECONDS)
        self._logins = asyncio.Semaphore(logins_at_once)
        self._per_server = min(logins_at_once, PER_SERVER)
        self._servers: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def dialling(self, address: tuple[str, int], deadline: asyncio.Timeout) -> AsyncIterator[None]:
        """Hold while a server is dialled and logged in to."""
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = asyncio.Semaphore(self._per_server)
        async with _waiting(server, deadline), _waiting(self._dials.place(address), deadline):
            await asyncio.sleep(self._random() * JITTER_SECONDS)
            yield

    @asynccontextmanager
    async def logging_in(self, deadline: asyncio.Timeout) -> AsyncIterator[None]:
        """Hold from the server's greeting until the script speaks."""
        async with _waiting(self._logins, deadline):
            yield


@asynccontextmanager
async def _waiting(gate: AbstractAsyncContextManager[None], deadline: asyncio.Timeout) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    due = deadline.when()
    left = None if due is None else due - loop.time()
    deadline.reschedule(None)
    async with gate:
        if left is not None:
            deadline.reschedule(loop.time() + left)
        yield
