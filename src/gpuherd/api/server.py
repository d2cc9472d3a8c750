"""Granian in our own event loop, so that one loop owns the state; its quirks are kept in here."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from pathlib import Path
from typing import NamedTuple

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from gpuherd.api.asgi import App
from gpuherd.api.settings import ListenAddress
from gpuherd.api.sockets import limit_unread
from gpuherd.model.errors import Failed, Misconfigured

__all__ = ["TlsFiles", "WebServer", "claim_address"]

log = logging.getLogger(__name__)

SLOW_HEADER_MILLISECONDS = 10_000
MAX_HEADER_BYTES = 32_768
OWN_FILES = 256
"""Open files that are reserved for the hub itself: records, history, other nodes."""
START_SECONDS = 10.0


class TlsFiles(NamedTuple):
    """PEM files to serve HTTPS with."""

    certificate: Path
    key: Path


def claim_address(address: ListenAddress, key: str = "hub.listen") -> ListenAddress:
    """Check that we may listen there, and choose the port if it is 0; ``Misconfigured`` says what to do.

    ``key`` is what the complaint calls the setting.

    Granian itself would share a taken port with another hub in silence.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Not to listen: whoever knocks meanwhile must be refused, not let in and forgotten.
            probe.bind((address.host, address.port))
        except OSError as error:
            raise Misconfigured(_remedy(address, error, key)) from error
        return ListenAddress(address.host, probe.getsockname()[1])


def _remedy(address: ListenAddress, error: OSError, key: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"{key}: port {address.port} of {address.host} is in use, perhaps by another gpuherd; stop "
            "that program or choose another port"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{key}: this user is not allowed to listen on port {address.port}; choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{key}: this machine has no address {address.host}; choose one of its addresses"
    return f"{key}: cannot listen on {address}: {error.strerror}"


def allow_open_files(wanted: int) -> int:
    """Raise the limit of open files as far as the system allows, and return it; each connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted // 2:
        log.warning(
            "the hub can open only %d files; raise LimitNOFILE to %d to serve more nodes", allowed, wanted
        )
    return max(soft, allowed)


class WebServer:
    """One listening address and the application behind it; a hub may have several."""

    def __init__(
        self,
        app: App,
        *,
        address: ListenAddress,
        max_connections: int,
        tls: TlsFiles | None = None,
        key: str = "hub.listen",
    ) -> None:
        self._app = app
        self._max_connections = max_connections
        self._tls = tls
        self._key = key
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.address = address
        self.capacity = max_connections
        """Connections that can be open at a time, within the limit of open files."""

    async def start(self) -> None:
        """Listen; returns when connections are taken. ``Misconfigured`` if the address cannot be had."""
        allowed = allow_open_files(self._max_connections + OWN_FILES)
        self.capacity = max(16, min(self._max_connections, allowed - OWN_FILES))
        self.address = claim_address(self.address, self._key)
        try:
            self._server = Server(
                self._app,
                address=self.address.host,
                port=self.address.port,
                interface=Interfaces.ASGINL,
                http=HTTPModes.http1,
                backlog=4096,
                # Connections beyond this wait in the backlog: streams and node links each hold one.
                backpressure=self.capacity,
                http1_settings=HTTP1Settings(
                    header_read_timeout=SLOW_HEADER_MILLISECONDS, max_buffer_size=MAX_HEADER_BYTES
                ),
                log_enabled=False,
                ssl_cert=None if self._tls is None else self._tls.certificate,
                ssl_key=None if self._tls is None else self._tls.key,
            )
        except OSError as error:
            raise Misconfigured(f"hub.tls_certificate, hub.tls_key: cannot be used: {error}") from error
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(), name="web server")
        await self._wait_until_connectable(self._serving)
        limit_unread(self.address.port)

    async def _wait_until_connectable(self, serving: asyncio.Task[None]) -> None:
        host = self.address.host
        if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"  # noqa: S104
        async with asyncio.timeout(START_SECONDS):
            while not serving.done():
                try:
                    _, writer = await asyncio.open_connection(host, self.address.port)
                except OSError:
                    await asyncio.sleep(0.005)
                else:
                    writer.close()
                    await writer.wait_closed()
                    return
        reason = None if serving.cancelled() else serving.exception()
        raise Failed(f"the web server did not start on {self.address}" + (f": {reason}" if reason else ""))

    async def wait_until_stopped(self) -> None:
        """Wait for the server to end, which it does by itself only when it fails."""
        if self._serving is not None:
            await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Stop listening and end what is left open."""
        if self._server is None or self._serving is None:
            return
        self._server.stop()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(5.0):
                await self._serving
        except TimeoutError:
            log.warning("the web server did not stop in time")
        # Its threads end a moment later; one that meets an interpreter already shutting down prints a crash report.
        await asyncio.sleep(0.1)
