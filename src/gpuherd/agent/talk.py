"""What an agent says to a hub, whoever dialled: hello, what is not confirmed, then what is live; it takes acks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from gpuherd.agent.outbox import CurrentRun, Outbox, Run
from gpuherd.agent.said import SaidOnce
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.text import clean
from gpuherd.wire.codec import UnknownFrame, encode, hub_decoder
from gpuherd.wire.frames import Ack, Hello, Notice, Welcome

__all__ = ["MAX_HUB_FRAME_BYTES", "PING_SECONDS", "Line", "NeedsPerson", "Talk"]

log = logging.getLogger(__name__)

WELCOME_SECONDS = 15.0
MAX_HUB_FRAME_BYTES = 65_536
PING_SECONDS = 15.0


class NeedsPerson(Failed):
    """The hub said no in a way that trying again soon will not change."""


class Line(Protocol):
    """Whole messages to and from the hub; both methods raise when the connection is lost."""

    async def recv(self) -> bytes | str:
        """Wait for the next message."""

    async def send(self, message: bytes) -> None:
        """Send a message, waiting as long as the hub does not read."""


class Talk:
    """One connection's talk. ``peer`` is what the hub is called in the log."""

    def __init__(
        self,
        line: Line,
        outbox: Outbox,
        *,
        peer: str,
        said: SaidOnce,
        on_interval: Callable[[float], None] = lambda _: None,
        node_time: Callable[[], float] = time.time,
    ) -> None:
        self._line = line
        self._outbox = outbox
        self._peer = peer
        self._said = said
        self._on_interval = on_interval
        self._node_time = node_time
        self._decoder = hub_decoder()
        self._run: Run | None = None
        self._welcome: asyncio.Future[Welcome] | None = None

    async def run(self) -> None:
        """Send and receive until one of both ends, which is the end of the talk and always an error."""
        tasks = {
            asyncio.create_task(self._receive()),
            asyncio.create_task(self._send_runs()),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._outbox.set_away(True)
        errors = [result for result in results if isinstance(result, Exception)]
        # What the hub said last matters more than that the connection closed after it.
        for error in sorted(errors, key=lambda error: not isinstance(error, NeedsPerson)):
            raise error

    # --- receiving ----------------------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while True:
            message = await self._line.recv()
            try:
                frame = self._decoder.decode(message if isinstance(message, bytes) else message.encode())
            except Refused as refused:
                raise NeedsPerson(f"{self._peer} sent what is no frame: {refused}") from refused
            if isinstance(frame, Ack):
                self._acked(frame)
            elif isinstance(frame, Welcome):
                if self._welcome is not None and not self._welcome.done():
                    self._welcome.set_result(frame)
            elif isinstance(frame, Notice):
                self._noticed(frame)
            elif isinstance(frame, UnknownFrame):
                log.debug("the hub is newer: ignored a frame of type %s", frame.type)

    def _acked(self, ack: Ack) -> None:
        # Before its welcome a run is unknown to the hub: such an ack is a late one for the run before.
        if self._run is not None and self._welcome is not None and self._welcome.done():
            self._run.ack(ack.seq)

    def _noticed(self, notice: Notice) -> None:
        text = f"the hub says: {clean(notice.message, 400)} ({clean(notice.code, 40)})"
        if notice.is_final:
            raise NeedsPerson(text)
        self._said.say(logging.WARNING, text)

    # --- sending ------------------------------------------------------------------------------------------------

    async def _send_runs(self) -> None:
        while True:
            run = self._outbox.next_run()
            await self._send_run(run, await self._open_run(run))
            self._outbox.finish(run)

    async def _open_run(self, run: Run) -> int:
        """Say hello for a run and give the number after which to send."""
        self._run = run
        self._welcome = asyncio.get_running_loop().create_future()
        facts = run.facts
        hello = Hello(
            boot_id=facts.boot_id,
            layout=facts.layout,
            time=self._node_time(),
            interval_seconds=facts.interval_seconds,
            live_from_seq=run.next_seq,
            dropped_frames=facts.dropped_frames,
            agent_version=facts.agent_version,
        )
        await self._line.send(encode(hello))
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                welcome = await self._welcome
        except TimeoutError as error:
            raise Failed(f"{self._peer} does not answer to hello") from error
        run.ack(welcome.resume_after_seq)
        resume_after_seq = welcome.resume_after_seq
        if isinstance(run, CurrentRun):
            # What the hub has but cannot save yet stays here and is not sent again: it would keep back what is live.
            resume_after_seq = max(resume_after_seq, welcome.received_seq)
            self._outbox.set_away(False)
            log.info("connected to %s as %s", self._peer, clean(welcome.node_id))
            if welcome.interval_seconds is not None:
                self._on_interval(welcome.interval_seconds)
        return min(resume_after_seq, run.next_seq - 1)

    async def _send_run(self, run: Run, cursor: int) -> None:
        """Send a run's frames in order; an older run is done when all of it is confirmed.

        What is live never waits for an ack: a hub that cannot save shows it all the same, and it stays in the outbox.
        Whether the hub is there at all is for the connection's pings to find out.
        """
        has_begun = False
        while True:
            run.changed.clear()
            entries, context = run.batch(cursor)
            if not entries:
                if not isinstance(run, CurrentRun) and run.acked_seq >= run.next_seq - 1:
                    return
                await run.changed.wait()
                continue
            if not has_begun or entries[0].seq != cursor + 1:
                # At the beginning, and after a gap: what the next frame is about.
                for entry in context:
                    await self._line.send(entry.message)
                has_begun = True
            for entry in entries:
                await self._line.send(entry.message)
                cursor = entry.seq
            if not isinstance(run, CurrentRun):
                while run.acked_seq < cursor:
                    run.changed.clear()
                    await run.changed.wait()
