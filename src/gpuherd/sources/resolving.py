"""Names of nodes looked up in threads of their own: a dead name server must not hold up the rest of the hub."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from gpuherd.sources.threads import in_thread

__all__ = ["NodeResolver"]

LOOKUPS_AT_ONCE = 32
LOOKUP_SECONDS = 8.0


class NodeResolver(AbstractResolver):
    """Asks the system as everyone does, but neither in the few threads that all of asyncio shares nor for ever."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Give the addresses of a name; ``OSError`` if there are none, or no answer."""
        look_up = partial(
            socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
        )
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                await self._free.acquire()
                looking = in_thread(look_up, "look up node")
                looking.add_done_callback(self._done)
                # Shielded: a lookup that is given up goes on in its thread, and counts until it has ended there.
                found = await asyncio.shield(looking)
        except TimeoutError as error:
            raise socket.gaierror(socket.EAI_AGAIN, "the name server does not respond") from error
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for kind, _, protocol, _, address in found
        ]

    def _done(self, looking: asyncio.Future[Any]) -> None:
        self._free.release()
        if not looking.cancelled():
            looking.exception()  # seen, also if nobody waits for it any more

    async def close(self) -> None:
        """Nothing to let go of: what hangs ends with the program."""
