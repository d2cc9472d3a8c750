"""This process's own sockets: which connections came in at a port, what was read from one, and how to end it.

The web server shows a connection to Python only once the head of a request is complete, and never its socket. The
process's own open files show both. See docs/adr/0019-bytes-of-unfinished-messages.md and
docs/adr/0020-connections-are-counted-at-the-socket.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import stat
import struct
import termios
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, TypeVar

from gpuherd.api.asgi import Scope

__all__ = [
    "UNREAD_BYTES",
    "Connection",
    "Connections",
    "Peer",
    "bytes_read",
    "in_turns",
    "limit_unread",
    "open_file_count",
    "peer_of",
    "reset",
]

OPEN_FILES = "/proc/self/fd"
TURN = 1000
UNREAD_BYTES = 65_536
"""The kernel allows itself twice as much."""
_RESET = struct.pack("ii", 1, 0)
_BYTES_RECEIVED_AT = 128
"""Where ``tcpi_bytes_received`` is in Linux's ``struct tcp_info``; there since 4.1."""

Peer = tuple[str, int]
T = TypeVar("T")


class Connection(NamedTuple):
    """A connection that came in."""

    file: int
    inode: int
    peer: Peer
    since: float


class Connections:
    """The connections that came in at one port. Used on one event loop."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._port = 0
        self._seen: dict[int, tuple[int, Connection | None]] = {}

    def begin(self, port: int) -> None:
        """Say at which port; there are none before."""
        self._port = port

    async def find(self) -> list[Connection]:
        """List those that are open. What was seen before is recognised by file and inode."""
        seen: dict[int, tuple[int, Connection | None]] = {}
        before = self._seen
        async for name in in_turns(_open_files()):
            file = int(name)
            try:
                status = os.fstat(file)
            except OSError:
                continue  # closed meanwhile
            if stat.S_ISSOCK(status.st_mode):
                known = before.get(file)
                if known is None or known[0] != status.st_ino:
                    known = status.st_ino, self._look(file, status.st_ino)
                seen[file] = known
        self._seen = seen
        return [connection for _, connection in seen.values() if connection is not None]

    def _look(self, file: int, inode: int) -> Connection | None:
        try:
            borrowed = _borrow(file)
        except OSError:
            return None
        try:
            if borrowed.getsockname()[1] != self._port:
                return None
            peer = borrowed.getpeername()
        except (OSError, IndexError):  # it listens, is gone, or has no port
            return None
        finally:
            borrowed.detach()
        return Connection(file, inode, _plain(peer[0], peer[1]), self._monotonic())


def peer_of(scope: Scope) -> Peer | None:
    """Return the other end of a request's connection."""
    client = scope.get("client")
    return _plain(client[0], client[1]) if client else None


def bytes_read(connection: Connection) -> int | None:
    """Return how many bytes the program has read from a connection; none if it is closed."""
    try:
        borrowed = _borrow(connection.file)
    except OSError:
        return None
    try:
        peer = borrowed.getpeername()
        if _plain(peer[0], peer[1]) != connection.peer:
            return None  # the file is another's by now
        info = borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(info) < _BYTES_RECEIVED_AT + 8:
            return None
        (received,) = struct.unpack_from("Q", info, _BYTES_RECEIVED_AT)
        (unread,) = struct.unpack("i", fcntl.ioctl(connection.file, termios.FIONREAD, bytes(4)))
    except (OSError, IndexError):
        return None
    else:
        return int(received) - int(unread)
    finally:
        borrowed.detach()


def reset(connection: Connection) -> None:
    """End a connection. The file stays the web server's, which closes it as soon as it notices.

    A file that is no socket is never closed, not even a copy of it: the number may be a database's by now, and the
    kernel would release the locks of that database with the copy.
    """
    with contextlib.suppress(OSError):
        if os.fstat(connection.file).st_ino != connection.inode:
            return
        # A file of our own: the web server may close its own at any moment and use the number again.
        own = os.dup(connection.file)
        found = os.fstat(own)
        try:
            if found.st_ino == connection.inode:
                _shut_down(own)
        finally:
            if stat.S_ISSOCK(found.st_mode):
                os.close(own)


def limit_unread(port: int) -> None:
    """Limit what the kernel keeps for a client at a port that does not read: by default up to 4 MiB each.

    Connections inherit it from the socket that listens. Nothing is closed here: see ``reset``.
    """
    for name in _open_files():
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            listening = _borrow(int(name))
        except OSError:  # closed meanwhile
            continue
        try:
            is_listening = listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if is_listening and listening.getsockname()[1] == port:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        except (OSError, IndexError):  # it has no port
            continue
        finally:
            listening.detach()


def open_file_count() -> int:
    """Return how many files this process has open."""
    try:
        # The size is their number since Linux 6.2, and 0 before.
        return os.stat(OPEN_FILES).st_size or len(_open_files())  # noqa: PTH116 - several times a second
    except OSError:
        return 0


async def in_turns(items: Sequence[T]) -> AsyncIterator[T]:
    """Give the items, and let the event loop go on after every few."""
    for number, item in enumerate(items, 1):
        yield item
        if number % TURN == 0:
            await asyncio.sleep(0)


def _open_files() -> list[str]:
    try:
        return os.listdir(OPEN_FILES)  # noqa: PTH208 - thousands, several times a second
    except OSError:
        return []


def _borrow(file: int) -> socket.socket:
    """Wrap a file that is the web server's; detach it when done. The family is not asked for: it is not used."""
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=file)


def _shut_down(file: int) -> None:
    connected = _borrow(file)
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connected.shutdown(socket.SHUT_RDWR)
    finally:
        connected.detach()


def _plain(host: str, port: int | str) -> Peer:
    """Return a peer in one form: IPv4 over IPv6 as IPv4, IPv6 without its interface; Granian gives the port as text."""
    if "." in host:
        host = host.removeprefix("::ffff:")
    return host.partition("%")[0], int(port)
