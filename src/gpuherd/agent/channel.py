"""The agent's end of a probe's socket pair: one question out, one answer in.

Bare event-loop callbacks instead of streams and tasks: this runs every tick on every node, and it is most of what
a tick costs.
"""

from __future__ import annotations

import asyncio
import socket

from gpuherd.agent.exchange import LENGTH, MAX_MESSAGE_BYTES

__all__ = ["Channel"]

_CHUNK_BYTES = 65_536
"""Read into a buffer that stays: for a large one the system would be asked for memory, and given it back, each tick."""


class Channel:
    """Sends messages and hands out futures for the answers."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chunk = memoryview(bytearray(_CHUNK_BYTES))
        self._buffer = bytearray()
        self._answer: asyncio.Future[bytes] | None = None

    def expect(self) -> asyncio.Future[bytes]:
        """Give the future of the next answer; ``ConnectionError`` in it means that the probe is gone."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket.fileno(), self._on_readable)
        self._answer = self._loop.create_future()
        return self._answer

    async def send(self, message: bytes) -> None:
        """Write one message; ``ConnectionError`` if the probe is gone."""
        try:
            sent = self._socket.send(message)
        except BlockingIOError:
            sent = 0
        if sent < len(message):
            await asyncio.get_running_loop().sock_sendall(self._socket, memoryview(message)[sent:])

    def close(self) -> None:
        """Close; the probe reads an end of file and ends. May be called twice."""
        if self._loop is not None:
            if self._socket.fileno() >= 0:
                self._loop.remove_reader(self._socket.fileno())
            self._loop = None
        self._socket.close()

    def _on_readable(self) -> None:
        try:
            count = self._socket.recv_into(self._chunk)
        except BlockingIOError:
            return
        except ConnectionError:
            count = 0
        if not count:
            self._fail("the probe closed its channel")
            return
        self._buffer += self._chunk[:count]
        if len(self._buffer) < LENGTH.size:
            return
        (length,) = LENGTH.unpack_from(self._buffer)
        if length > MAX_MESSAGE_BYTES:
            self._fail(f"the probe announced a message of {length} bytes")
        elif len(self._buffer) >= LENGTH.size + length:
            body = bytes(memoryview(self._buffer)[LENGTH.size : LENGTH.size + length])
            del self._buffer[: LENGTH.size + length]
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(body)

    def _fail(self, why: str) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(why))
