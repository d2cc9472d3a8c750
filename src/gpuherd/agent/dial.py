"""The WebSocket to a hub that is dialled: the library's protocol without its I/O, on a transport of our own.

The library's own connection takes 256 KiB of memory for every read and gives it back; on a node that gets a small ack
each second a small buffer that stays is enough. Compression, redirects and proxies are left out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidMessage, InvalidState, InvalidStatus, NegotiationError
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from gpuherd.agent.address import HubAddress
from gpuherd.agent.refusals import OTHER_PROTOCOL, HandshakeRefused, hub_code
from gpuherd.agent.talk import MAX_HUB_FRAME_BYTES, LineLost
from gpuherd.model.errors import Failed
from gpuherd.model.text import clean
from gpuherd.wire.frames import SUBPROTOCOL

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["DialledLine", "dial"]

CHUNK_BYTES = 4096
GOING_AWAY = 1001
SWITCHING_PROTOCOLS = 101
PARTING_SECONDS = 1.0


async def dial(
    address: HubAddress, headers: dict[str, str], *, tls: SSLContext | None, ping_seconds: float
) -> DialledLine:
    """Open a WebSocket to a hub; ``Failed`` or ``OSError`` if there is none, ``HandshakeRefused`` if it says no."""
    loop = asyncio.get_running_loop()
    protocol = ClientProtocol(
        parse_uri(address.agent_url),
        subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
        max_size=MAX_HUB_FRAME_BYTES,
    )
    line = DialledLine(loop, protocol, ping_seconds)
    await loop.create_connection(lambda: line, address.host, address.port, ssl=tls)
    try:
        await line.shake_hands(headers)
    except BaseException:
        line.transport.abort()
        raise
    return line


def _refusal(error: Exception) -> Failed:
    """Say in our words why the answer opens no WebSocket."""
    if isinstance(error, InvalidStatus):
        return HandshakeRefused(error.response.status_code, hub_code(error.response.body))
    if isinstance(error, NegotiationError):
        return HandshakeRefused(SWITCHING_PROTOCOLS, OTHER_PROTOCOL)
    if isinstance(error.__cause__, EOFError):
        return Failed("connection closed")
    if isinstance(error, InvalidMessage):
        return Failed("the server there does not speak HTTP")
    return Failed(
        "the web server there does not support WebSockets; a proxy in front of the hub must pass them on, "
        "see docs/deploy/proxies.md"
    )


class DialledLine(asyncio.BufferedProtocol):
    """Whole messages to and from a hub. Pings by itself; a hub that does not answer is lost."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: ClientProtocol, ping_seconds: float
    ) -> None:
        self.transport: asyncio.Transport
        self._loop = loop
        self._protocol = protocol
        self._ping_seconds = ping_seconds
        self._chunk = memoryview(bytearray(CHUNK_BYTES))
        self._opened: asyncio.Future[None] = loop.create_future()
        self._messages: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._waiting: asyncio.Future[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = loop.create_future()
        self._lost: LineLost | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_answered = True

    # --- for the agent --------------------------------------------------------------------------------------------

    async def shake_hands(self, headers: dict[str, str]) -> None:
        """Ask for a WebSocket with our subprotocol and wait until there is one; ``Failed`` otherwise."""
        request = self._protocol.connect()
        request.headers.update(headers)
        self._protocol.send_request(request)
        self._write()
        await self._opened
        self._timer = self._loop.call_later(self._ping_seconds, self._ping)

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
        try:
            self._protocol.send_binary(message)
        except InvalidState as error:  # The hub has said goodbye and the connection is about to end.
            raise LineLost("connection closed") from error
        self._write()

    async def close(self) -> None:
        """Say goodbye if the hub reads, and let go of the connection."""
        if self._lost is None and self._protocol.state is OPEN:
            self._protocol.send_close(GOING_AWAY)
            self._write()
        self._lose(LineLost("closed"))
        if self._resumed is not None:
            self.transport.abort()
        elif not self.transport.is_closing():  # Python 3.11.2 cannot abort TLS that was closed twice
            self.transport.close()
        await asyncio.wait({self._gone}, timeout=PARTING_SECONDS)
        if not self._gone.done():
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
        self._protocol.receive_data(bytes(self._chunk[:nbytes]))
        self._take_events()

    def eof_received(self) -> None:
        """Called when the hub sends no more."""
        self._protocol.receive_eof()
        self._take_events()

    def connection_lost(self, error: Exception | None) -> None:
        """Called once, whoever ended it."""
        reason = getattr(error, "strerror", None) or "connection closed"
        self._lose(LineLost(clean(str(reason), 200)))
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

    def _take_events(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                self._open()
            elif isinstance(event, Frame):
                self._take(event)
        self._write()
        refused = self._protocol.handshake_exc
        if refused is not None and not self._opened.done():
            self._opened.set_exception(_refusal(refused))
        elif self._protocol.state is not OPEN and self._opened.done():
            self._lose(LineLost(self._parting_words()))

    def _open(self) -> None:
        if self._protocol.handshake_exc is not None or self._opened.done():
            return
        if self._protocol.subprotocol == SUBPROTOCOL:
            self._opened.set_result(None)
        else:
            self._opened.set_exception(HandshakeRefused(SWITCHING_PROTOCOLS, OTHER_PROTOCOL))

    def _take(self, frame: Frame) -> None:
        # Any message is a sign of life: an overloaded hub may acknowledge frames long before it reads a ping.
        self._is_answered = True
        if frame.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
            self._parts.append(bytes(frame.data))
            if frame.fin:
                self._messages.append(b"".join(self._parts))
                self._parts.clear()
                self._wake()

    def _parting_words(self) -> str:
        broken = self._protocol.parser_exc
        # The library also reports the end of the stream as a parser error: a hub that is killed sends no close frame.
        if broken is not None and not isinstance(broken, EOFError) and self._protocol.close_rcvd is None:
            return "the hub sent an invalid or oversized WebSocket frame"
        closed = self._protocol.close_rcvd
        return clean((closed.reason if closed is not None else "") or "connection closed", 200)

    def _write(self) -> None:
        for part in self._protocol.data_to_send():
            if part:
                self.transport.write(part)
            else:
                self.transport.close()

    def _ping(self) -> None:
        if not self._is_answered:
            self._lose(LineLost(f"no response to a ping for {self._ping_seconds:.0f} s"))
            self.transport.abort()  # what is still to be sent would keep it open
            return
        self._is_answered = False
        self._protocol.send_ping(b"")
        self._write()
        self._timer = self._loop.call_later(self._ping_seconds, self._ping)

    def _lose(self, lost: LineLost) -> None:
        if self._lost is not None:
            return
        self._lost = lost
        if self._timer is not None:
            self._timer.cancel()
        if not self._opened.done():
            self._opened.set_exception(lost)
            self._opened.exception()  # nobody may be left to ask for it
        self._wake()
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
