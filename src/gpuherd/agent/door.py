"""A listening socket that strangers cannot wear out: few of them at a time, and each for a few seconds only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from gpuherd.agent.listen_address import ListenAddress
from gpuherd.agent.requests import (
    MAX_HEAD_BYTES,
    BadRequest,
    Request,
    Response,
    body_length,
    parse_head,
)
from gpuherd.agent.said import SaidOnce
from gpuherd.wire.proof import PROOF_SECONDS

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["MOST_STRANGERS", "STRANGER_SECONDS", "Door", "Visit"]

log = logging.getLogger(__name__)

MOST_STRANGERS = 16
STRANGER_SECONDS = PROOF_SECONDS
"""How long a visitor may stay that has not proven itself; TLS handshake, request and answer included."""
PARTING_SECONDS = 1.0
CROWDED_SECONDS = 0.01
"""From one connection to the next when there are too many."""


class Visit:
    """One connection, from its first byte; its request is read whole before anything is done about it."""

    def __init__(self, taken: socket.socket, address: str, limit: asyncio.Timeout) -> None:
        self.taken: socket.socket | None = taken  # until it is a stream
        self.address = address
        self.limit = limit
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.head = b""
        self.is_stranger = True

    def welcome(self) -> None:
        """The visitor has proven itself and may stay."""
        self.is_stranger = False
        self.limit.reschedule(None)

    async def body(self, request: Request) -> bytes:
        """Read the request's body; ``BadRequest`` if it is too large."""
        return await self.reader.readexactly(body_length(request))

    async def answer(self, response: Response) -> None:
        """Send an answer and part. What is still coming in is read away, else the answer could be lost."""
        self.writer.write(response.encode())
        with contextlib.suppress(TimeoutError, OSError, NotImplementedError):
            async with asyncio.timeout(PARTING_SECONDS):
                await self.writer.drain()
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                    while await self.reader.read(65_536):
                        pass
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


Serve = Callable[[Visit, Request], Awaitable[None]]


class Door:
    """Takes connections and hands each request to ``serve``."""

    def __init__(
        self,
        address: ListenAddress,
        serve: Serve,
        *,
        tls: SSLContext | None = None,
        stranger_seconds: float = STRANGER_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self.port = address.port
        self._serve = serve
        self._tls = tls
        self._stranger_seconds = stranger_seconds
        self._visits: dict[asyncio.Task[None], Visit] = {}
        self._said = SaidOnce(log, monotonic)

    @property
    def strangers(self) -> int:
        """Visitors that have not proven themselves."""
        return sum(visit.is_stranger for visit in self._visits.values())

    async def run(self) -> None:
        """Listen until cancelled; ``Misconfigured`` if the address cannot be had."""
        loop = asyncio.get_running_loop()
        listening = self.address.listen()
        self.port = listening.getsockname()[1]
        try:
            while True:
                try:
                    taken, peer = await loop.sock_accept(listening)
                except OSError as error:  # the visitor is gone again, or there are too many open files
                    self._said.say(
                        logging.WARNING, f"cannot accept a connection on {self.address}: {error.strerror}"
                    )
                    await asyncio.sleep(0.2)
                    continue
                is_crowded = self._make_room()
                visit = Visit(taken, peer[0], asyncio.timeout(self._stranger_seconds))
                task = loop.create_task(self._receive(visit, taken))
                self._visits[task] = visit
                task.add_done_callback(self._left)
                # Taking a waiting connection does not give way by itself; in a flood, most of the time is for the rest.
                await asyncio.sleep(CROWDED_SECONDS if is_crowded else 0)
        finally:
            listening.close()
            tasks = list(self._visits)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _make_room(self) -> bool:
        """When there are too many strangers, send away the oldest from where most of them come; whether it was so."""
        strangers = [
            (task, visit.address)
            for task, visit in self._visits.items()
            if visit.is_stranger and not task.cancelling()
        ]
        if len(strangers) < MOST_STRANGERS:
            return False
        ((crowd, _),) = Counter(address for _, address in strangers).most_common(1)
        next(task for task, address in strangers if address == crowd).cancel()
        return True

    def _left(self, task: asyncio.Task[None]) -> None:
        if (taken := self._visits.pop(task).taken) is not None:
            taken.close()  # sent away before anything could begin

    async def _receive(self, visit: Visit, taken: socket.socket) -> None:
        transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            async with visit.limit:
                visit.taken = None
                transport, _ = await loop.connect_accepted_socket(
                    lambda: protocol,
                    taken,
                    ssl=self._tls,
                    ssl_handshake_timeout=self._stranger_seconds if self._tls is not None else None,
                )
                visit.reader, visit.writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
                await self._attend(visit)
        except (TimeoutError, OSError, EOFError) as error:  # EOFError: gone in the middle of a request
            log.debug("lost the connection from %s: %r", visit.address, error)
        except Exception:
            log.exception(
                "failed to answer a request from %s", visit.address
            )  # the next one is not to suffer
        finally:
            if transport is not None:
                transport.abort()

    async def _attend(self, visit: Visit) -> None:
        try:
            try:
                visit.head = await visit.reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError as error:
                raise BadRequest(
                    431, f"the request's header is larger than {MAX_HEAD_BYTES} bytes"
                ) from error
            await self._serve(visit, parse_head(visit.head))
        except BadRequest as bad:
            await visit.answer(Response(status=bad.status, body=f"{bad}\n".encode()))
