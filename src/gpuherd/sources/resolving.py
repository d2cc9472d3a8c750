"""Names of nodes looked up in threads of their own: a dead name server must not hold up the rest of the hub."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

__all__ = ["NodeResolver"]

LOOKUPS_AT_ONCE = 32


class NodeResolver(AbstractResolver):
    """Asks the system as everyone does, but not in the few threads that all of asyncio shares."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_AT_ONCE, thread_name_prefix="look up node")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Give the addresses of a name; ``OSError`` if there are none."""
        look_up = partial(
            socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
        )
        found = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
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

    async def close(self) -> None:
        """Begin no further lookup."""
        self._threads.shutdown(wait=False, cancel_futures=True)
