"""WebSocket frames (RFC 6455): ours masked, the server's taken apart and put together to messages."""

from __future__ import annotations

import os
from collections.abc import Iterator

from gpuherd.model.errors import Failed

__all__ = ["BINARY", "CLOSE", "PING", "PONG", "BadFrame", "FrameReader", "masked"]

CONTINUATION = 0x0
TEXT = 0x1
BINARY = 0x2
CLOSE = 0x8
PING = 0x9
PONG = 0xA

_FIN = 0x80
_RESERVED = 0x70
_MASK = 0x80
_LONGEST_CONTROL = 125


class BadFrame(Failed):
    """The other side breaks the protocol."""


def masked(opcode: int, content: bytes) -> bytes:
    """Make one frame of a client: final, masked with fresh random bits."""
    size = len(content)
    if size < 126:
        head = bytes((_FIN | opcode, _MASK | size))
    elif size < 65_536:
        head = bytes((_FIN | opcode, _MASK | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FIN | opcode, _MASK | 127)) + size.to_bytes(8, "big")
    key = os.urandom(4)
    # As two long numbers: a few microseconds for a sample, where a loop over bytes would take a hundred.
    mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return head + key + (int.from_bytes(content, "little") ^ mask).to_bytes(size, "little")


class FrameReader:
    """Puts a server's frames together; gives (opcode, content) of messages, all as binary, and of control frames."""

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._buffer = bytearray()
        self._parts: list[bytes] | None = None

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take in bytes and give what is whole; ``BadFrame`` when the server breaks the protocol."""
        self._buffer += data
        while (frame := self._next()) is not None:
            is_final, opcode, content = frame
            if opcode >= CLOSE:
                if not is_final or len(content) > _LONGEST_CONTROL or opcode not in (CLOSE, PING, PONG):
                    raise BadFrame("the hub sent a malformed control frame")
                yield opcode, content
                continue
            if (opcode == CONTINUATION) != (self._parts is not None) or opcode > BINARY:
                raise BadFrame("the hub sent a frame out of turn")
            self._parts = [*(self._parts or ()), content]
            if sum(map(len, self._parts)) > self._max_message_bytes:
                raise BadFrame("the hub sent a message that is too large")
            if is_final:
                message, self._parts = b"".join(self._parts), None
                yield BINARY, message

    def _next(self) -> tuple[bool, int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, size, at = buffer[0], buffer[1], 2
        if first & _RESERVED or size & _MASK:
            raise BadFrame("the hub sent a frame that no server may send")
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < at + width:
                return None
            size = int.from_bytes(buffer[at : at + width], "big")
            at += width
        if size > self._max_message_bytes:
            raise BadFrame("the hub sent a message that is too large")
        if len(buffer) < at + size:
            return None
        content = bytes(buffer[at : at + size])
        del buffer[: at + size]
        return bool(first & _FIN), first & 0xF, content
