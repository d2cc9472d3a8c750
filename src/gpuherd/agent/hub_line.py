"""The WebSocket of a hub that dialled us: the library's protocol without its I/O, on a connection of our own door."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from gpuherd.agent.door import PARTING_SECONDS, Visit
from gpuherd.agent.talk import MAX_HUB_FRAME_BYTES, PING_SECONDS, LineLost
from gpuherd.model.text import clean
from gpuherd.wire.frames import SUBPROTOCOL

__all__ = ["HubLine"]


class HubLine:
    """Whole messages to and from a hub; one task receives, one sends."""

    def __init__(self, visit: Visit) -> None:
        self._reader, self._writer = visit.reader, visit.writer
        self._protocol = ServerProtocol(subprotocols=[SUBPROTOCOL], max_size=MAX_HUB_FRAME_BYTES)  # type: ignore[list-item]
        self._messages: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._writing = asyncio.Lock()
        self._pongs = 0

    async def accept(self, head: bytes) -> bool:
        """Answer the request that was read; whether it became a WebSocket."""
        self._protocol.receive_data(head)
        (request,) = self._protocol.events_received() or (None,)
        if not isinstance(request, Request):
            return False
        response: Response = self._protocol.accept(request)
        response.headers["Server"] = "gpuherd-agent"
        self._protocol.send_response(response)
        await self._flush()
        return self._protocol.state is OPEN

    async def recv(self) -> bytes:
        """Wait for the next message; ``LineLost`` when there is none to come."""
        while not self._messages:
            try:
                data = await self._reader.read(65_536)
            except OSError as error:
                raise _lost(error) from error
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            for event in self._protocol.events_received():
                if isinstance(event, Frame):
                    self._take(event)
            await self._flush()
            if self._protocol.state is not OPEN and not self._messages:
                closed = self._protocol.close_rcvd
                raise LineLost(
                    clean((closed.reason if closed is not None else "") or "connection closed", 200)
                )
        return self._messages.popleft()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            self._pongs += 1
        elif frame.opcode in (Opcode.BINARY, Opcode.TEXT, Opcode.CONT):
            self._parts.append(bytes(frame.data))
            if frame.fin:
                self._messages.append(b"".join(self._parts))
                self._parts.clear()

    async def send(self, message: bytes) -> None:
        """Send a message, waiting as long as the hub does not read."""
        try:
            self._protocol.send_binary(message)
        except InvalidState as error:
            raise LineLost("connection closed") from error
        await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            self._write()
            try:
                await self._writer.drain()
            except OSError as error:
                raise _lost(error) from error

    def _write(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)

    async def stay_awake(self) -> None:
        """Ping now and then; ``LineLost`` when an answer fails to come: the hub or the way to it is dead."""
        while True:
            await asyncio.sleep(PING_SECONDS)
            pongs = self._pongs
            self._protocol.send_ping(b"")
            self._write()  # without waiting: a hub that does not read must not keep us from noticing
            await asyncio.sleep(PING_SECONDS)
            if self._pongs == pongs:
                raise LineLost(f"no response to a ping for {PING_SECONDS:.0f} s")

    async def close(self, code: int, reason: str) -> None:
        """Say why, and give the hub a moment to hear it."""
        with contextlib.suppress(InvalidState, LineLost, OSError, TimeoutError):
            async with asyncio.timeout(PARTING_SECONDS):
                self._protocol.send_close(code, reason)
                while True:
                    self._messages.clear()
                    await self._flush()
                    await self.recv()


def _lost(error: OSError) -> LineLost:
    return LineLost(clean(error.strerror or "connection closed", 200))
