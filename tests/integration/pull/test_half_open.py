"""A link whose other side is silently gone is noticed by whoever is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gpuherd.agent.spec import ProbeSpec
from support.pulling import listening, small_hub
from support.running import PATIENCE_SECONDS, until

PING = b"\x89"
"""How a ping of a WebSocket begins."""


class Wire:
    """A connection through the test's hands, which can be cut without either end being told."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.unheard_pings = 0
        """What the hub asked after the cut."""
        self.port = 0

    def cut(self) -> None:
        self._whole.clear()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(65_536):
                    if self._whole.is_set():
                        sink.write(data)
                    else:
                        self.unheard_pings += data.startswith(PING)
                await self._whole.wait()
        finally:
            sink.close()

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()


@contextlib.asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[Wire]:
    wire = Wire(port)
    server = await asyncio.start_server(wire.take, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        wire.end()
        server.close()


def test_the_hub_notices_within_three_keepalives(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent") as (_, port),
            wire_to(port) as wire,
            small_hub(keepalive_seconds=1.0) as hub,
        ):
            following = hub.dial(wire.port)
            await hub.heard(3)
            wire.cut()
            async with asyncio.timeout(PATIENCE_SECONDS):  # the wire itself never tells
                failure = (await asyncio.gather(following, return_exceptions=True))[0]
            assert getattr(failure, "code", None) == "link_lost"
            assert wire.unheard_pings == 1, "one every two keepalives, and one keepalive for its answer"

    asyncio.run(main())


def test_the_agent_notices_and_keeps_what_was_not_confirmed(
    spec: ProbeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpuherd.agent.hub_line.PING_SECONDS", 0.4)

    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port), small_hub() as hub:
            async with wire_to(port) as wire:
                hub.dial(wire.port)
                await hub.heard(8)  # longer than two pings: a living hub answers them
                assert "no response to a ping" not in caplog.text
                wire.cut()
                await until(lambda: "no response to a ping" in caplog.text, "the agent notices")
            hub.dial(port)
            await hub.heard(5)
            (run,) = hub.runs.values()
            assert run.missing == []

    asyncio.run(main())


def test_the_agent_says_when_the_hub_is_gone_at_a_stroke(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (_, port), small_hub() as hub:
            hub.dial(port)
            await hub.heard(3)
            hub.vanish(is_reset=True)
            await until(lambda: "was lost: Connection reset by peer" in caplog.text, "the agent says so")

    asyncio.run(main())
