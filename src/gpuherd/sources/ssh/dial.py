"""From a name to an open connection on which an SSH server has said its first word."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.ssh.login import Login
from gpuherd.sources.ssh.places import Progress

__all__ = ["Line", "ServerBusy", "busy", "dial"]

GREETING_BYTES = 255
BUSY_WORDS = (b"MaxStartups", b"Not allowed at this time")
NO_ROUTE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})

_Address = tuple[int, int, int, Any]


class ServerBusy(ContactFailed):
    """The server takes no further logins right now; worth another try within the same attempt."""


class Line:
    """A connected socket, given to asyncssh as a tunnel: so its transport is known here and can be made to rest."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.transport: asyncio.Transport | None = None

    async def create_connection(
        self, make_protocol: Callable[[], asyncio.Protocol], _host: str, _port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Start the SSH connection on the socket; called by asyncssh."""
        loop = asyncio.get_running_loop()
        self.transport, protocol = await loop.create_connection(make_protocol, sock=self._socket)
        return self.transport, protocol

    def close(self) -> None:
        """Close a socket that no connection has taken over."""
        if self.transport is None:
            self._socket.close()


async def dial(login: Login, progress: Progress, threads: Executor) -> Line:
    """Connect and wait until the server greets; the greeting is left unread.

    ``ContactFailed``: ``unreachable``; ``ServerBusy`` if the server closes before it has said who it is, as it does
    when more logins are under way than its MaxStartups allows.
    """
    progress.phase = "resolving the name"
    addresses = await _resolve(login, progress, threads)
    progress.phase = "connecting"
    connection = await _connect(addresses, login, progress)
    try:
        progress.phase = "waiting for the server's greeting"
        await _greeting(connection, login, progress)
    except BaseException:
        connection.close()
        raise
    return Line(connection)


async def _resolve(login: Login, progress: Progress, threads: Executor) -> list[_Address]:
    # Not the event loop's own threads: a name server that does not answer holds a thread for half a minute.
    loop = asyncio.get_running_loop()
    family = int(login.config.get("AddressFamily", socket.AF_UNSPEC))

    def look_up() -> list[_Address]:
        found = socket.getaddrinfo(login.host, login.port, family, socket.SOCK_STREAM)
        return [(entry[0], entry[1], entry[2], entry[4]) for entry in found]

    try:
        return await loop.run_in_executor(threads, look_up)
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise progress.failure(
            "unreachable",
            f"the name {login.host} cannot be resolved ({reason}); correct the list, or give the alias "
            "a HostName in the SSH configuration",
        ) from error


async def _connect(addresses: Sequence[_Address], login: Login, progress: Progress) -> socket.socket:
    """Try one address after the other; each gets its share of ten seconds so that a dead IPv6 does not eat all."""
    loop = asyncio.get_running_loop()
    bind_address = login.config.get("BindAddress")
    trouble: OSError | None = None
    for position, (family, kind, protocol, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setblocking(False)
            if bind_address:
                connection.bind((bind_address, 0))
            is_last = position == len(addresses) - 1
            async with asyncio.timeout(None if is_last else 10.0 / len(addresses)):
                await loop.sock_connect(connection, address)
        except OSError as error:  # TimeoutError of one address is one, too
            connection.close()
            trouble = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise progress.failure("unreachable", _why_not(trouble, login)) from trouble


def _why_not(error: OSError | None, login: Login) -> str:
    where = f"{login.host}:{login.port}"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens on {where} (connection refused); is sshd running, and is the port right?"
    if error is not None and error.errno in NO_ROUTE:
        return f"there is no route to {where} ({error.strerror}); check the network between hub and node"
    reason = (error.strerror if error is not None else None) or "no address responded"
    return f"cannot connect to {where} ({reason}); is the machine up?"


async def _greeting(connection: socket.socket, login: Login, progress: Progress) -> None:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, wake)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
    try:
        said = connection.recv(GREETING_BYTES, socket.MSG_PEEK)
    except OSError:
        said = b""
    check_greeting(said, login, progress)


def check_greeting(said: bytes, login: Login, progress: Progress) -> None:
    """Tell a server that is too busy from one to talk to; other words may come before an SSH server's greeting."""
    if said.startswith(b"SSH-"):
        return
    words = clean(said.splitlines()[0].decode("utf-8", "replace"), 80) if said.strip() else ""
    if not said or any(word in said for word in BUSY_WORDS):
        raise busy(words, login, progress)
    progress.said = words


def busy(words: str, login: Login, progress: Progress) -> ServerBusy:
    """Say that a server takes no more logins at the moment."""
    detail = f" ({words})" if words else ""
    return ServerBusy(
        "server_busy",
        f"{progress.place}: {login.host}:{login.port} closed the connection before its greeting{detail}; "
        "it has more logins in progress than its MaxStartups allows, or rejects the hub's address",
    )
