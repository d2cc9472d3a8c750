"""The agent's WebSocket against servers that answer oddly, do not read, or go away."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve

from gpuherd.agent.address import HubAddress
from gpuherd.agent.dial import DialledLine, dial
from gpuherd.agent.refusals import OTHER_PROTOCOL, HandshakeRefused
from gpuherd.agent.talk import LineLost
from gpuherd.model.errors import Failed
from gpuherd.wire.frames import SUBPROTOCOL
from support.running import PATIENCE_SECONDS

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncIterator[HubAddress]:
    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield HubAddress.parse(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/my base")


async def open_line(address: HubAddress, ping_seconds: float = 30.0) -> DialledLine:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await dial(address, {"X-Test": "1"}, tls=None, ping_seconds=ping_seconds)


def accepting(request: bytes) -> bytes:
    key = request.partition(b"Sec-WebSocket-Key: ")[2].split(b"\r\n")[0]
    digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False).digest()
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: " + b64encode(digest) + b"\r\n"
        b"sec-websocket-protocol: " + SUBPROTOCOL.encode() + b"\r\n\r\n"
    )


ODD_ANSWERS: dict[str, tuple[bytes, type[Failed], str]] = {
    "refusal": (b"HTTP/1.1 401 Unauthorized\r\n\r\n", HandshakeRefused, "401"),
    "redirect": (b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n", HandshakeRefused, "302"),
    "not http": (b"SSH-2.0-OpenSSH\r\n\r\n", Failed, "does not speak HTTP"),
    "no status": (b"HTTP/1.1 \xb2\xb2\xb2 x\r\n\r\n", Failed, "does not speak HTTP"),
    "ordinary page": (b"HTTP/1.1 200 OK\r\n\r\n<html>", HandshakeRefused, "200"),
    "no upgrade": (b"HTTP/1.1 101 x\r\n\r\n", Failed, "does not support WebSockets"),
    "wrong accept": (
        b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: no\r\n\r\n",
        Failed,
        "does not support WebSockets",
    ),
    "endless head": (b"HTTP/1.1 101 x\r\n" + b"a: b\r\n" * 20_000, Failed, "does not speak HTTP"),
    "nothing": (b"", Failed, "connection closed"),
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_a_server_that_opens_no_websocket_is_told_apart(name: str) -> None:
    answer, kind, text = ODD_ANSWERS[name]

    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async def main() -> None:
        async with raw_server(odd) as address:
            with pytest.raises(kind, match=text):
                await open_line(address)

    asyncio.run(main())


def test_the_request_is_as_the_standard_wants_it() -> None:
    requests = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(accepting(requests[0]) + b"\x82\x05early")
        await reader.read()

    async def main() -> None:
        async with raw_server(note) as address:
            line = await open_line(address)
            assert await line.recv() == b"early", "what comes with the head is not lost"
            await line.close()
            first, *lines = requests[0].decode().split("\r\n")
            assert first == "GET /my%20base/api/v1/agent HTTP/1.1"
            assert f"Host: {address.authority}" in lines
            assert "X-Test: 1" in lines

    asyncio.run(main())


def test_a_server_of_another_version_is_told_apart() -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = accepting(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer.replace(SUBPROTOCOL.encode(), b"gpuherd.v9"))

    async def main() -> None:
        async with raw_server(other) as address:
            with pytest.raises(HandshakeRefused) as refused:
                await open_line(address)
            assert refused.value.code == OTHER_PROTOCOL

    asyncio.run(main())


@asynccontextmanager
async def websocket_server(
    handle: Callable[[ServerConnection], Awaitable[None]],
) -> AsyncIterator[HubAddress]:
    async with serve(handle, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as server:  # type: ignore[list-item]
        port = next(iter(server.sockets)).getsockname()[1]
        yield HubAddress.parse(f"http://127.0.0.1:{port}")


def test_messages_go_both_ways_and_pings_are_answered() -> None:
    closed: list[int | None] = []

    async def echo(connection: ServerConnection) -> None:
        await (await connection.ping())
        async for message in connection:
            await connection.send(message)
        closed.append(connection.close_code)

    async def main() -> None:
        async with websocket_server(echo) as address:
            line = await open_line(address, ping_seconds=0.5)
            for size in (0, 1, 200, 60_000):
                await line.send(b"x" * size)
                assert await line.recv() == b"x" * size
            await asyncio.sleep(1.2)  # two of our own pings, which were answered if the line is still there
            await line.send(b"still there")
            assert await line.recv() == b"still there"
            await line.close()
            with pytest.raises(LineLost):
                await line.send(b"x")
            with pytest.raises(LineLost):
                await line.recv()
        assert closed == [1001]

    asyncio.run(main())


def test_a_server_that_leaves_says_why() -> None:
    async def leave(connection: ServerConnection) -> None:
        await connection.send(b"last words")
        await connection.close(4000, "go\x1baway")

    async def main() -> None:
        async with websocket_server(leave) as address:
            line = await open_line(address)
            assert await line.recv() == b"last words"
            with pytest.raises(LineLost, match="go\N{REPLACEMENT CHARACTER}away"):
                await line.recv()
            await line.close()

    asyncio.run(main())


@pytest.mark.parametrize("sent", [b"", b"\x82\x05abc"], ids=["between frames", "within a frame"])
def test_a_server_that_is_killed_has_closed_the_connection(sent: bytes) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepting(await reader.readuntil(b"\r\n\r\n")) + sent)

    async def main() -> None:
        async with raw_server(die) as address:
            line = await open_line(address)
            with pytest.raises(LineLost, match=r"^connection closed$"):
                await line.recv()
            await line.close()

    asyncio.run(main())


@pytest.mark.parametrize("nonsense", [b"\xff\xff\xff\xff", b"\x82\x7f" + b"\xff" * 8])
def test_a_server_that_breaks_the_protocol_is_left(nonsense: bytes) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepting(await reader.readuntil(b"\r\n\r\n")) + nonsense)
        await reader.read()

    async def main() -> None:
        async with raw_server(babble) as address:
            line = await open_line(address)
            with pytest.raises(LineLost, match="the hub sent"):
                await line.recv()
            await line.close()

    asyncio.run(main())


def test_a_server_that_does_not_read_stops_the_sender_and_is_given_up() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(accepting(await reader.readuntil(b"\r\n\r\n")))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await gone.wait()

    async def send_for_ever(line: DialledLine) -> None:
        for _ in range(2000):
            await line.send(b"x" * 60_000)
        pytest.fail("it must wait for the reader at some time")

    async def main() -> None:
        async with raw_server(deaf) as address:
            line = await open_line(address, ping_seconds=0.3)
            receiving = asyncio.create_task(line.recv())
            with pytest.raises(LineLost, match="no response to a ping"):
                await asyncio.wait_for(send_for_ever(line), PATIENCE_SECONDS)
            with pytest.raises(LineLost, match="no response to a ping"):
                await receiving
            await line.close()
            gone.set()

    gone = asyncio.Event()
    asyncio.run(main())
