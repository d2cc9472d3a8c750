"""Listeners of older tools on loopback, and raw bytes to talk to them with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from gpuherd.api.asgi import App
from gpuherd.api.server import WebServer
from gpuherd.api.settings import ListenAddress
from support.running import free_port


class RawAnswer(NamedTuple):
    """An HTTP answer, taken apart no further than necessary."""

    status_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.status_line.split()[1])


async def exchange(
    port: int, request: bytes, *, source: str = "127.0.0.1", seconds: float = 15.0
) -> RawAnswer:
    """Send bytes from an address of ours and read the answer to its end."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
        with contextlib.suppress(ConnectionError):  # turned away in the middle of a large body
            writer.write(request)
            await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
        else:
            body = b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return RawAnswer(status_line, headers, body)


@contextlib.asynccontextmanager
async def listening(app: App) -> AsyncIterator[int]:
    """Serve an application on a free port."""
    address = ListenAddress("127.0.0.1", free_port())
    server = WebServer(app, address=address, max_connections=128, key="legacy.listen")
    await server.start()
    try:
        yield server.address.port
    finally:
        await server.stop()
