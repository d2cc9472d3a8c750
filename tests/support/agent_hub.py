"""A small hub for the agent's tests: a real WebSocket server that keeps what it is sent and acknowledges it."""

from __future__ import annotations

import http
from ssl import SSLContext
from typing import Any, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from gpuherd.wire.codec import agent_decoder, encode
from gpuherd.wire.frames import (
    PROTOCOL_MINOR,
    SUBPROTOCOL,
    Ack,
    FactsFrame,
    Hello,
    Notice,
    PastFrames,
    SampleFrame,
    TableFrame,
    Welcome,
)

__all__ = ["TestHub"]

Numbered = FactsFrame | TableFrame | SampleFrame


class TestHub:
    """Keeps hellos and frames in order of arrival; forgets nothing, also over ``stop`` and ``start``."""

    __test__ = False

    def __init__(self, tls: SSLContext | None = None) -> None:
        self.port = 0
        self._tls = tls
        self.protocol_minor = PROTOCOL_MINOR
        self.hellos: list[Hello] = []
        self.past_hellos: list[Hello] = []
        self.arrived: list[tuple[str, Numbered]] = []  # (boot id, frame), repetitions included
        self.kept: dict[str, dict[int, Numbered]] = {}
        self.acked: dict[str, int] = {}
        self.authorizations: list[str | None] = []
        self.acknowledges = True
        self.refuse_with: int | None = None
        self.tells_received = False  # says in its welcome what it has but did not acknowledge
        self.forgets = False  # answers every hello as if it had nothing
        self.interval_seconds: float | None = None
        self.notices: list[Notice] = []
        self.connections: set[ServerConnection] = set()
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """The hub's address for agents."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/base"

    async def start(self) -> None:
        """Listen, on the same port as before."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self.port,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            process_request=self._check,
            compression=None,
            ssl=self._tls,
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Vanish: break all connections without a goodbye and stop listening."""
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def cut(self) -> None:
        """Break all connections without a goodbye."""
        for connection in self.connections:
            connection.transport.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        self.authorizations.append(request.headers.get("Authorization"))
        assert request.path == "/base/api/v1/agent"
        if self.refuse_with is not None:
            error = '{"error": {"code": "unauthorized", "message": "no"}}'  # the shape of a hub's no
            return connection.respond(http.HTTPStatus(self.refuse_with), error)
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        self.connections.add(connection)
        decoder = agent_decoder()
        boot_id = past_id = ""
        try:
            async for message in connection:
                assert isinstance(message, bytes)
                frame: Any = decoder.decode(message)
                if isinstance(frame, Hello):
                    boot_id = frame.boot_id
                    self.hellos.append(frame)
                    self.kept.setdefault(boot_id, {})
                    resume = -1 if self.forgets else self.acked.get(boot_id, -1)
                    await connection.send(
                        encode(
                            Welcome(
                                node_id="node-1",
                                resume_after_seq=resume,
                                received_seq=max(self.kept[boot_id], default=-1)
                                if self.tells_received
                                else -1,
                                interval_seconds=self.interval_seconds,
                                protocol_minor=self.protocol_minor,
                            )
                        )
                    )
                    for notice in self.notices:
                        await connection.send(encode(notice))
                    continue
                if isinstance(frame, PastFrames):
                    assert self.protocol_minor > 0
                    for past in map(decoder.decode, frame.frames):
                        if isinstance(past, Hello):
                            past_id = past.boot_id
                            self.past_hellos.append(past)
                        else:
                            self._keep(past_id, past)
                    if self.acknowledges and past_id in self.acked:
                        await connection.send(encode(Ack(seq=self.acked[past_id], boot_id=past_id)))
                    continue
                self._keep(boot_id, frame)
                if self.acknowledges:
                    await connection.send(encode(Ack(seq=self.acked[boot_id])))
        except ConnectionClosed:
            pass
        finally:
            self.connections.discard(connection)

    def _keep(self, boot_id: str, frame: Any) -> None:
        self.arrived.append((boot_id, frame))
        self.kept.setdefault(boot_id, {})[frame.seq] = frame
        if self.acknowledges:
            self.acked[boot_id] = max(self.acked.get(boot_id, -1), frame.seq)

    def samples(self, boot_id: str | None = None) -> list[SampleFrame]:
        """All samples kept, by run and number."""
        runs = [boot_id] if boot_id is not None else list(self.kept)
        return [
            frame
            for run in runs
            for _, frame in sorted(self.kept.get(run, {}).items())
            if isinstance(frame, SampleFrame)
        ]

    def missing(self, boot_id: str) -> list[int]:
        """The numbers of a run that never came."""
        kept = self.kept[boot_id]
        return [seq for seq in range(max(kept, default=-1) + 1) if seq not in kept]
