"""The live stream on a real server: snapshot then changes, plain and compressed, slow viewers, limits."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl

from gpuherd.api.hub import Hub
from support.herd import IDLE, WORKING
from support.hub import NodeClient, eventually, node_client, running_hub
from support.running import PATIENCE_SECONDS


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Read server-sent events, unpacking what came compressed byte for byte as a browser would."""
    unpack = zlib.decompressobj(31) if response.headers.get("content-encoding") == "gzip" else None
    text = ""
    async for chunk in response.content.iter_any():
        text += (unpack.decompress(chunk) if unpack else chunk).decode()
        while "\n\n" in text:
            block, _, text = text.partition("\n\n")
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if fields:
                data = json.loads(fields["data"])
                assert fields["id"] == str(data["tick"])
                yield fields["event"], data


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_viewer_gets_everything_once_and_then_every_change(tmp_path: Path, encoding: str) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            await client.wait_acked(await client.sample(IDLE))
            await eventually(lambda: hub.fleet.devices() != ())
            session = aiohttp.ClientSession(auto_decompress=False, headers={"Accept-Encoding": encoding})
            async with (
                session,
                session.get(f"{hub.url}api/v1/stream") as response,
                asyncio.timeout(PATIENCE_SECONDS),
            ):
                assert response.status == 200
                assert response.content_type == "text/event-stream"
                stream = events(response)
                name, first = await anext(stream)
                assert (name, first["after_tick"]) == ("snapshot", None)
                assert [node["id"] for node in first["nodes"]] == ["a"]
                assert len(first["devices"]["row"]) == 2
                await client.sample(WORKING)
                tick: int = first["tick"]
                busy: set[int] = set()
                while len(busy) < 2:
                    name, change = await anext(stream)
                    assert (name, change["after_tick"]) == ("change", tick)
                    tick = change["tick"]
                    columns = change["device_states"]
                    busy |= {
                        row
                        for row, state in zip(columns["row"], columns["state"], strict=True)
                        if state == "busy"
                    }
                assert hub.health().viewers.open == 1
                # A new node appears with its inventory.
                async with node_client(hub, "b"):
                    while True:
                        name, change = await anext(stream)
                        assert name == "change"
                        if [node["id"] for node in change["nodes"]] == ["b"]:
                            break
            await eventually(lambda: hub.health().viewers.open == 0)

    asyncio.run(story())


def test_too_many_viewers_are_told_to_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path, max_viewers=4) as hub,
            aiohttp.ClientSession(hub.url) as http,
            http.get("api/v1/stream"),
            http.get("api/v1/stream") as second,
        ):
            async with http.get("api/v1/stream") as third:
                assert (third.status, third.headers["retry-after"]) == (503, "30")
                assert (await third.json())["error"]["code"] == "too_many_viewers"
            second.close()
            await eventually(lambda: hub.health().viewers.open == 1)
            async with http.get("api/v1/stream") as again:
                assert again.status == 200

    asyncio.run(story())


def _connect_without_reading(hub: Hub) -> socket.socket:
    url = yarl.URL(hub.url)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((url.host, url.port))
    slow.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: {url.authority}\r\n\r\n".encode())
    return slow


async def _flicker(client: NodeClient) -> None:
    """Change every number of every device, all the time."""
    for device in itertools.cycle((WORKING, IDLE)):
        await client.sample(device)
        await asyncio.sleep(0.05)


async def _drain(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    connection.setblocking(False)
    while await loop.sock_recv(connection, 1_000_000):
        pass


def test_a_viewer_that_stops_reading_gets_a_new_snapshot_and_holds_nobody_up(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path, tick_seconds=0.05) as hub,
            node_client(hub, "a", devices=500) as one,
            node_client(hub, "b", devices=500) as other,
            node_client(hub, "c", devices=500) as third,
            aiohttp.ClientSession(auto_decompress=False, headers={"Accept-Encoding": "identity"}) as http,
            http.get(f"{hub.url}api/v1/stream") as response,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            flickering = [asyncio.create_task(_flicker(client)) for client in (one, other, third)]
            slow = _connect_without_reading(hub)
            stream = events(response)
            name, message = await anext(stream)
            assert name == "snapshot"
            size_bytes, reading = 0, None
            try:
                # The slow one takes what fits into the sockets' buffers, and nothing after that.
                while not hub.health().viewers.resyncs:
                    tick = message["tick"]
                    name, message = await anext(stream)
                    assert (name, message["after_tick"]) == ("change", tick), "who reads misses no tick"
                    size_bytes += len(json.dumps(message))
                    if size_bytes > 12_000_000 and reading is None:
                        # Now it reads again: what was on its way, and then a snapshot instead of the changes.
                        reading = asyncio.create_task(_drain(slow))
                assert reading is not None, "nothing is sent to a viewer that does not take it"
            finally:
                for task in flickering:
                    task.cancel()
                if reading is not None:
                    reading.cancel()
                slow.close()

    asyncio.run(story())


def test_stopping_the_hub_ends_streams(tmp_path: Path) -> None:
    async def story() -> None:
        async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as http:
            async with running_hub(tmp_path) as hub:
                response = await http.get(f"{hub.url}api/v1/stream")
                stream = events(response)
                await anext(stream)
            async with asyncio.timeout(PATIENCE_SECONDS):
                rest = [name async for name, _ in stream]
            assert set(rest) <= {"change"}

    asyncio.run(story())
