"""A hub in a process of its own, which can be killed, and a node that never gives up on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from gpuherd.api.hub import Hub
from gpuherd.api.settings import HubSettings
from gpuherd.fleet.clock import SystemClock
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.wire.frames import Welcome
from gpuherd.wiring.past import past_outfit
from support.hub import NodeClient
from support.ready import forking_context
from support.running import PATIENCE_SECONDS, free_port, stand_still


class ShiftedClock(SystemClock):
    """The machine's clock, with another idea of UTC."""

    def __init__(self, shift_seconds: float = 0.0) -> None:
        self.shift_seconds = shift_seconds

    def wall(self) -> float:
        return super().wall() + self.shift_seconds


async def _run(settings: HubSettings, history: HistorySettings | None, shift_seconds: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    past = None if history is None else past_outfit(history, UsageSettings(), settings.state_dir)
    async with Hub(settings, clock=ShiftedClock(shift_seconds), past=past) as hub:
        await hub.run_until(stop)


def _main(settings: HubSettings, history: HistorySettings | None, shift_seconds: float) -> None:
    asyncio.run(_run(settings, history, shift_seconds))


class HubProcess:
    """Starts fast: the processes are forked from one that has imported everything."""

    def __init__(
        self,
        state_dir: Path,
        *,
        history: HistorySettings | None = None,
        shift_seconds: float = 0.0,
        records_url: str | None = None,
    ) -> None:
        """``shift_seconds``: how far its wall clock is ahead of the machine's."""
        self.state_dir = state_dir
        self._records_url = records_url
        self._history = history
        self._shift_seconds = shift_seconds
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self._context = forking_context()
        self._process: BaseProcess | None = None

    @property
    def settings(self) -> HubSettings:
        return HubSettings(
            state_dir=self.state_dir,
            listen=f"127.0.0.1:{self.port}",
            records_url=self._records_url,
            tick_seconds=0.1,
        )

    async def start(self) -> None:
        self._process = self._context.Process(
            target=_main, args=(self.settings, self._history, self._shift_seconds)
        )
        self._process.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    assert self._process.is_alive(), "the hub did not start"
                    await asyncio.sleep(0.005)
                else:
                    writer.close()
                    return

    async def kill(self) -> None:
        """Kill it with -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Stop it politely and give its exit code."""
        return await self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop it as a debugger would: it gets no processor until it is thawed."""
        assert self._process is not None
        assert self._process.pid is not None
        stand_still(self._process.pid)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def close(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    async def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._signal(number)
        await asyncio.to_thread(self._process.join, PATIENCE_SECONDS)
        assert self._process.exitcode is not None
        return self._process.exitcode


class StubbornNode(NodeClient):
    """Keeps every frame until it is acknowledged and sends the rest again after each loss, as an agent does."""

    def __init__(self, url: str, credential: str, *, every_seconds: float) -> None:
        super().__init__(url, credential, boot_id="stubborn", devices=4)
        self.every_seconds = every_seconds
        self.seq = 2  # 1 is the facts, 2 the table
        self.sent_at: dict[int, float] = {}
        """Frames of the present link, and when they went out."""
        self.is_finishing = False

    async def run(self) -> None:
        """Report for ever, or until told to finish and all is acknowledged."""
        while not (self.is_finishing and self.acked >= self.seq):
            with contextlib.suppress(OSError, ConnectionClosed, InvalidHandshake, EOFError, TimeoutError):
                await self._report()
            await self.close()
            await asyncio.sleep(0.01)

    async def _report(self) -> None:
        self.sent_at = {}
        welcome: Welcome = await self.open()
        assert welcome.resume_after_seq >= self.acked, "what was acknowledged is never asked for again"
        assert welcome.resume_after_seq <= self.seq
        self.acked = welcome.resume_after_seq
        await self.send(self.facts_message(1))
        await self.send(self.table_message(2))
        hearing = asyncio.create_task(self._hear())
        try:
            for seq in range(max(self.acked, 2) + 1, self.seq + 1):
                await self._send_sample(seq)
            while not hearing.done() and not self.is_finishing:
                await self._send_sample(self.next_seq())
                await asyncio.sleep(self.every_seconds)
            if not hearing.done():
                # All may be acknowledged already. One more sample brings the ack that ends the wait.
                await self._send_sample(self.next_seq())
            await hearing
        finally:
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await hearing

    async def _send_sample(self, seq: int) -> None:
        await self.send(self.sample_message(seq))
        self.sent_at[seq] = time.monotonic()

    async def _hear(self) -> None:
        while not (self.is_finishing and self.acked >= self.seq):
            await self.receive()

    def seq_sent_before(self, moment: float) -> int:
        """The highest number that went out over the present link before a moment."""
        return max((seq for seq, at in self.sent_at.items() if at <= moment), default=-1)
