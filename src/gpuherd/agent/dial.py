"""A WebSocket to a hub that is dialled: RFC 6455, as little of it as an agent needs.

Our own, because an agent runs on every node for ever: a library for all uses takes five megabytes and half of the time
in which a frame is sent. No extensions, no compression, no redirects, no proxies.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections import deque
from hashlib import sha1
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpuherd.agent.address import HubAddress
from gpuherd.agent.frames import BINARY, CLOSE, PING, PONG, BadFrame, FrameReader, masked
from gpuherd.agent.talk import MAX_HUB_FRAME_BYTES, LineLost
from gpuherd.model.errors import Failed
from gpuherd.model.text import clean
from gpuherd.wire.frames import SUBPROTOCOL

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["DialledLine", "HandshakeRefused", "dial"]

_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_HEAD_BYTES = 16 * 1024
CHUNK_BYTES = 4096
GOING_AWAY = 1001
PROTOCOL_ERROR = 1002
PARTING_SECONDS = 1.0


class HandshakeRefused(Failed):
    """The server answered the request with another status than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


async def dial(
    address: HubAddress, headers: dict[str, str], *, tls: SSLContext | None, ping_seconds: float
) -> DialledLine:
    """Open a WebSocket to a hub; ``Failed`` or ``OSError`` if there is none, ``HandshakeRefused`` if it says no."""
    key = b64encode(os.urandom(16))
    loop = asyncio.get_running_loop()
    line = DialledLine(loop, ping_seconds)
    await loop.create_connection(lambda: line, address.host, address.port, ssl=tls)
    try:
        line.transport.write(_request(address, headers, key))
        _check(await line.head(), key)
    except BaseException:
        line.transport.abort()
        raise
    line.begin()
    return line


def _request(address: HubAddress, headers: dict[str, str], key: bytes) -> bytes:
    is_usual_port = address.port == (443 if address.is_secure else 80)
    host = address.authority.rpartition(":")[0] if is_usual_port else address.authority
    lines = {
        "Host": host if host.isascii() else host.encode("idna").decode(),
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key.decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        **headers,
    }
    path = quote(address.agent_path, safe="/%:@!$&'()*+,;=~-._")
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode("ascii")


def _check(head: bytes, key: bytes) -> None:
    """See that the answer opens a WebSocket with our subprotocol."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest.partition(" ")[0]
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit() and len(status) == 3):
        raise Failed("what answers is no web server")
    if status != "101":
        raise HandshakeRefused(int(status))
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    accept = b64encode(sha1(key + _ACCEPT, usedforsecurity=False).digest()).decode()
    if headers.get("upgrade", "").lower() != "websocket" or headers.get("sec-websocket-accept") != accept:
        raise Failed("the web server there knows no WebSockets; a proxy in between must let them through")
    if headers.get("sec-websocket-protocol") != SUBPROTOCOL:
        raise HandshakeRefused(426)


class DialledLine(asyncio.BufferedProtocol):
    """Whole messages to and from a hub. Pings by itself; a hub that does not answer is lost.

    Reads into a small buffer that stays, where the event loop would take and give back 256 KiB for every ack.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, ping_seconds: float) -> None:
        self.transport: asyncio.Transport
        self._loop = loop
        self._ping_seconds = ping_seconds
        self._head: asyncio.Future[bytes] = loop.create_future()
        self._head_bytes = bytearray()
        self._chunk = memoryview(bytearray(CHUNK_BYTES))
        self._frames: FrameReader | None = None
        self._messages: deque[bytes] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = loop.create_future()
        self._lost: LineLost | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_answered = True

    # --- for the agent --------------------------------------------------------------------------------------------

    async def head(self) -> bytes:
        """Wait for the head of the answer, without its empty line."""
        return await self._head

    def begin(self) -> None:
        """The handshake is done: what comes now are frames."""
        self._frames = FrameReader(MAX_HUB_FRAME_BYTES)
        self._timer = self._loop.call_later(self._ping_seconds, self._ping)
        rest, self._head_bytes = bytes(self._head_bytes), bytearray()
        if rest:
            self._take_bytes(rest)

    async def recv(self) -> bytes:
        """Wait for the next message; ``LineLost`` when there is none to come."""
        while not self._messages:
            if self._lost is not None:
                raise self._lost
            self._waiting = self._loop.create_future()
            await self._waiting
        return self._messages.popleft()

    async def send(self, message: bytes) -> None:
        """Send a message, waiting as long as the hub does not read; ``LineLost`` when it is gone."""
        while self._resumed is not None and self._lost is None:
            await asyncio.shield(self._resumed)
        if self._lost is not None:
            raise self._lost
        self.transport.write(masked(BINARY, message))

    async def close(self) -> None:
        """Say goodbye if the hub reads, and let go of the connection."""
        if self._lost is None:
            self._end(LineLost("closed"), masked(CLOSE, GOING_AWAY.to_bytes(2, "big")))
        if self._resumed is not None:
            self.transport.abort()
        await asyncio.wait({self._gone}, timeout=PARTING_SECONDS)
        self.transport.abort()

    # --- for the event loop ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called once."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker; there is no other kind
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where to put what comes; acks are small, whatever the loop hints."""
        return self._chunk

    def buffer_updated(self, nbytes: int) -> None:
        """Take in what has come."""
        self._take_bytes(bytes(self._chunk[:nbytes]))

    def _take_bytes(self, data: bytes) -> None:
        if self._frames is None:
            self._take_head(data)
            return
        try:
            for opcode, content in self._frames.feed(data):
                self._take(opcode, content)
        except BadFrame as bad:
            self._end(LineLost(str(bad)), masked(CLOSE, PROTOCOL_ERROR.to_bytes(2, "big")))

    def connection_lost(self, error: Exception | None) -> None:
        """Called once, whoever ended it."""
        reason = getattr(error, "strerror", None) or "connection closed"
        self._end(LineLost(clean(str(reason), 200)))
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        """The hub does not read as fast as we write."""
        self._resumed = self._loop.create_future()

    def resume_writing(self) -> None:
        """It does again."""
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)
        self._resumed = None

    def _take_head(self, data: bytes) -> None:
        self._head_bytes += data
        head, end, rest = self._head_bytes.partition(b"\r\n\r\n")
        if end and not self._head.done():
            self._head_bytes = bytearray(rest)
            self._head.set_result(bytes(head))
        elif len(self._head_bytes) > MAX_HEAD_BYTES:
            self._end(LineLost("the answer's head is too long"))

    def _take(self, opcode: int, content: bytes) -> None:
        if opcode == BINARY:
            self._messages.append(content)
            self._wake()
        elif opcode == PING:
            if self._lost is None:
                self.transport.write(masked(PONG, content))
        elif opcode == PONG:
            self._is_answered = True
        elif opcode == CLOSE:
            reason = content[2:].decode(errors="replace") or "connection closed"
            self._end(LineLost(clean(reason, 200)), masked(CLOSE, content[:2]))

    def _ping(self) -> None:
        if not self._is_answered:
            self._lose(LineLost(f"no answer to a ping for {self._ping_seconds:.0f} s"))
            self.transport.abort()  # what is still to be sent would keep it open
            return
        self._is_answered = False
        self.transport.write(masked(PING, b""))
        self._timer = self._loop.call_later(self._ping_seconds, self._ping)

    def _end(self, lost: LineLost, goodbye: bytes = b"") -> None:
        if self._lost is None and goodbye:
            self.transport.write(goodbye)
        self._lose(lost)
        self.transport.close()

    def _lose(self, lost: LineLost) -> None:
        if self._lost is not None:
            return
        self._lost = lost
        if self._timer is not None:
            self._timer.cancel()
        if not self._head.done():
            self._head.set_exception(lost)
            self._head.exception()  # nobody may be left to ask for it
        self._wake()
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
