"""Bytes of a connection since its last message, as the kernel counts them."""

from __future__ import annotations

import asyncio
import socket

from gpuherd.api.sockets import Connections
from gpuherd.api.unfinished import MAX_UNFINISHED_BYTES, Incoming, UnfinishedMessages


def swallow(client: socket.socket, served: socket.socket, size: int) -> None:
    """Send so many bytes, and read them on the other side."""
    while size > 0:
        client.sendall(bytes(min(size, 65_536)))
        size -= len(served.recv(min(size, 65_536), socket.MSG_WAITALL))


def test_a_link_ends_when_too_much_came_without_a_message(
    pair: tuple[socket.socket, socket.socket], connections: Connections
) -> None:
    client, served = pair
    ended: list[str] = []
    watch = UnfinishedMessages(connections, lambda: 0.0)
    link = Incoming(client.getsockname()[:2], lambda: ended.append("ended"))
    gone = Incoming(("192.0.2.1", 7), lambda: ended.append("gone"))
    watch.add(link)
    watch.add(gone)
    for _ in range(3):  # messages of the largest size, looked at between and within them
        swallow(client, served, MAX_UNFINISHED_BYTES // 2)
        asyncio.run(watch.look())
        link.took(MAX_UNFINISHED_BYTES // 2)
    assert ended == []
    asyncio.run(watch.look())
    swallow(client, served, MAX_UNFINISHED_BYTES)
    asyncio.run(watch.look())
    assert ended == []
    swallow(client, served, 1)
    asyncio.run(watch.look())
    assert ended == ["ended"]
    watch.remove(link)
    asyncio.run(watch.look())
    assert ended == ["ended"]


def test_links_are_looked_at_when_memory_has_grown_and_every_few_seconds() -> None:
    now = [0.0]
    looked: list[float] = []
    watch = UnfinishedMessages(Connections(lambda: now[0]), lambda: now[0])

    async def look() -> None:
        looked.append(now[0])

    watch.look = look  # type: ignore[method-assign]
    asyncio.run(watch.watch())
    assert looked == []
    now[0] = 5.1
    asyncio.run(watch.watch())
    assert looked == [5.1]
    now[0] = 6.0
    filled = bytearray(b"x") * (64 * 2**20)
    asyncio.run(watch.watch())
    assert looked == [5.1, 6.0]
    asyncio.run(watch.watch())
    assert looked == [5.1, 6.0]
    del filled


def test_what_protocols_add_does_not_add_up() -> None:
    ended: list[str] = []
    link = Incoming(("192.0.2.1", 7), lambda: ended.append("ended"))
    read = 60_000  # the handshake
    for _ in range(2_000):  # a backlog over TLS, 8 MiB between two looks
        for _ in range(8):
            link.took(2**20)
            read += 2**20 + 2**20 // 700 + 40
        assert not link.is_unfinished(read)
    for _ in range(200_000):  # nothing but a sample and a ping, for months
        link.took(800)
        read += 800 + 40 + 30
        assert not link.is_unfinished(read)
    assert link.is_unfinished(read + MAX_UNFINISHED_BYTES + 10_000)
