"""Ends WebSocket links whose message never ends.

Granian hands over whole messages, gathers up to 64 MiB for one, and has no setting for that. So the hub asks the kernel
how many bytes were read from a link's connection, and compares them with the messages that came of it; see ADR 19.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gpuherd.api.sockets import Connection, Connections, Peer, bytes_read
from gpuherd.wire.codec import MAX_FRAME_BYTES

__all__ = ["Incoming", "UnfinishedMessages"]

MAX_UNFINISHED_BYTES = 2 * MAX_FRAME_BYTES
"""Twice the largest message: what WebSocket, TLS and the handshake add is only estimated."""
_ADDED_PER_MESSAGE = 64
_ADDED_PART = 64
"""A message costs so many bytes more on the wire, and one in so many again: WebSocket's and TLS's frames."""
GROWN_BYTES = 32 * 2**20
"""Look at once when the process has grown by this much."""
LOOK_SECONDS = 5.0
_MEMORY = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Incoming:
    """One link's connection: who is at its other end, what messages it brought, and how to end it."""

    def __init__(self, peer: Peer, end: Callable[[], None]) -> None:
        self.peer = peer
        self.end = end
        self.connection: Connection | None = None
        self._taken_bytes = 0
        self._read_before = 0
        self._open_bytes = 0

    def took(self, size_bytes: int) -> None:
        """Count a message that is whole."""
        self._taken_bytes += size_bytes + size_bytes // _ADDED_PART + _ADDED_PER_MESSAGE

    def is_unfinished(self, read: int) -> bool:
        """Tell whether too much was read that belongs to no message; ``read`` is the count of bytes so far."""
        new, taken = read - self._read_before, self._taken_bytes
        self._read_before, self._taken_bytes = read, 0
        still_open = self._open_bytes + new - taken
        if taken:
            # What was open before the message is finished, so estimates do not add up over the weeks.
            still_open = min(still_open, new)
        self._open_bytes = max(0, still_open)
        return self._open_bytes > MAX_UNFINISHED_BYTES


class UnfinishedMessages:
    """All links that others opened to the hub. Called on the event loop."""

    def __init__(
        self, connections: Connections, monotonic: Callable[[], float], grown_bytes: int = GROWN_BYTES
    ) -> None:
        self._connections = connections
        self._monotonic = monotonic
        self._grown_bytes = grown_bytes
        self._links: set[Incoming] = set()
        self._looked_at = monotonic()
        self._memory_then = _memory_bytes()

    def add(self, link: Incoming) -> None:
        """Watch a link from now on."""
        self._links.add(link)

    def remove(self, link: Incoming) -> None:
        """Watch it no more."""
        self._links.discard(link)

    async def watch(self) -> None:
        """Look at every link if the process has grown, or every few seconds. Called several times a second."""
        memory = _memory_bytes()
        self._memory_then = min(self._memory_then, memory)  # what was given back may be taken again
        now = self._monotonic()
        if memory - self._memory_then > self._grown_bytes or now - self._looked_at > LOOK_SECONDS:
            self._looked_at, self._memory_then = now, memory
            await self.look()

    async def look(self) -> None:
        """End the links that have sent too much of a message without its end."""
        if any(link.connection is None for link in self._links):
            found = {connection.peer: connection for connection in await self._connections.find()}
            for link in self._links:
                link.connection = link.connection or found.get(link.peer)
        for link in list(self._links):
            if link.connection is None:
                continue
            read = bytes_read(link.connection)
            if read is None:  # closed
                link.connection = None
            elif link.is_unfinished(read):
                link.end()


def _memory_bytes() -> int:
    try:
        return int(_MEMORY.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
