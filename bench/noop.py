"""The yardstick: Granian, embedded just like the hub's, with an application that echoes WebSocket messages and
sends ready-made blocks to viewers. ``python -m bench.noop`` prints its address and serves until it is ended.

``/echo`` sends back what it gets; ``/blocks?size=N`` is an event stream of N bytes a second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import Any
from urllib.parse import parse_qs

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from gpuherd.wire.frames import SUBPROTOCOL

BLOCKS: dict[int, bytes] = {}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Echo or stream."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        while (event := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": event["bytes"]})
    elif scope["type"] == "http":
        size = int(parse_qs(scope["query_string"].decode())["size"][0])
        block = BLOCKS.setdefault(size, os.urandom(size // 2).hex().encode())
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        while True:
            await send({"type": "http.response.body", "body": block, "more_body": True})
            await asyncio.sleep(1)


async def main() -> None:
    """Serve until SIGTERM."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(
        app,
        address="127.0.0.1",
        port=port,
        interface=Interfaces.ASGINL,
        backlog=4096,
        backpressure=20_000,
        log_enabled=False,
        log_level=LogLevels.critical,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    serving = asyncio.ensure_future(server.serve())
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            break
        except OSError:
            await asyncio.sleep(0.05)
    print(f"yardstick: http://127.0.0.1:{port}/", flush=True)
    await stop.wait()
    server.stop()  # type: ignore[no-untyped-call]
    await serving


if __name__ == "__main__":
    asyncio.run(main())
