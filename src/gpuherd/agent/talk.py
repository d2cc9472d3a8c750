"""What an agent says to a hub, whoever dialled: hello, then what is live, beside it what has waited; it takes acks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from gpuherd.agent.backlog import Backlog, hello_of
from gpuherd.agent.outbox import Outbox, Run
from gpuherd.agent.said import SaidOnce
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.text import clean
from gpuherd.wire.codec import UnknownFrame, encode, hub_decoder
from gpuherd.wire.frames import PAST_MINOR, Ack, Notice, Pace, Welcome

__all__ = ["MAX_HUB_FRAME_BYTES", "PING_SECONDS", "Line", "LineLost", "NeedsPerson", "Talk"]

log = logging.getLogger(__name__)

WELCOME_SECONDS = 15.0
MAX_HUB_FRAME_BYTES = 65_536
PING_SECONDS = 15.0
SHORT_BACKLOG_FRAMES = 64
"""So many frames may go before what is live: they are through in a moment. More are set aside."""


class NeedsPerson(Failed):
    """The hub said no in a way that trying again soon will not change."""


class LineLost(Failed):
    """The connection is gone."""


class Line(Protocol):
    """Whole messages to and from the hub; both methods raise ``LineLost`` when the connection is gone."""

    async def recv(self) -> bytes:
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
        on_welcome: Callable[[float | None], None] = lambda _: None,
        on_pace: Callable[[float | None], None] = lambda _: None,
        node_time: Callable[[], float] = time.time,
    ) -> None:
        self._line = line
        self._outbox = outbox
        self._peer = peer
        self._said = said
        self._on_welcome = on_welcome
        self._on_pace = on_pace
        self._node_time = node_time
        self._decoder = hub_decoder()
        self._run: Run | None = None
        self._welcome: asyncio.Future[Welcome] | None = None

    async def run(self) -> None:
        """Send and receive until one of both ends, which is the end of the talk and always an error."""
        tasks = {
            asyncio.create_task(self._receive()),
            asyncio.create_task(self._send()),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._outbox.set_away(True)
            self._on_pace(None)
        errors = [result for result in results if isinstance(result, Exception)]
        # What the hub said last matters more than that the connection closed after it.
        for error in sorted(errors, key=lambda error: not isinstance(error, NeedsPerson)):
            raise error

    # --- receiving ----------------------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while True:
            message = await self._line.recv()
            try:
                frame = self._decoder.decode(message)
            except Refused as refused:
                raise NeedsPerson(f"{self._peer} sent an invalid frame: {refused}") from refused
            if isinstance(frame, Ack):
                self._acked(frame)
            elif isinstance(frame, Welcome):
                if self._welcome is not None and not self._welcome.done():
                    self._welcome.set_result(frame)
            elif isinstance(frame, Notice):
                self._noticed(frame)
            elif isinstance(frame, Pace):
                self._on_pace(frame.interval_seconds)
            elif isinstance(frame, UnknownFrame):
                log.debug("the hub is newer: ignored a frame of type %s", frame.type)

    def _acked(self, ack: Ack) -> None:
        if ack.boot_id is not None:
            self._outbox.ack_older(ack.boot_id, ack.seq)
        # Before its welcome a run is unknown to the hub: such an ack is a late one for the run before.
        elif self._run is not None and self._welcome is not None and self._welcome.done():
            self._run.ack(ack.seq)

    def _noticed(self, notice: Notice) -> None:
        text = f"the hub says: {clean(notice.message, 400)} ({clean(notice.code, 40)})"
        if notice.is_final:
            raise NeedsPerson(text)
        self._said.say(logging.WARNING, text)

    # --- sending ------------------------------------------------------------------------------------------------

    async def _send(self) -> None:
        """Send what is live for ever, and beside it what has waited.

        A hub of the first minor version takes one run after the other only: there, what has waited goes first.
        """
        welcome = await self._greet(self._outbox.current)
        if welcome.protocol_minor < PAST_MINOR and self._outbox.older_run() is not None:
            await self._send_older_first()
            welcome = await self._greet(self._outbox.current)
        current = self._outbox.current
        has_long_backlog = current.next_seq - 1 - _received_seq(welcome) > SHORT_BACKLOG_FRAMES
        if welcome.protocol_minor >= PAST_MINOR and has_long_backlog and self._outbox.set_current_aside():
            welcome = await self._greet(self._outbox.current)
            current = self._outbox.current
        self._outbox.set_away(False)
        log.info("connected to %s as %s", self._peer, clean(welcome.node_id))
        self._on_welcome(welcome.interval_seconds)
        # What the hub has but cannot save yet stays here and is not sent again: it would keep back what is live.
        lanes = {
            asyncio.create_task(self._send_live(current, min(_received_seq(welcome), current.next_seq - 1)))
        }
        if welcome.protocol_minor >= PAST_MINOR:
            backlog = Backlog(self._line.send, self._outbox, self._node_time)
            lanes.add(asyncio.create_task(backlog.run()))
        try:
            done, _ = await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
            for lane in done:
                lane.result()
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _greet(self, run: Run) -> Welcome:
        """Say hello for a run; what the hub has safely of it is forgotten here."""
        self._run = run
        self._welcome = asyncio.get_running_loop().create_future()
        await self._line.send(encode(hello_of(run, self._node_time())))
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                welcome = await self._welcome
        except TimeoutError as error:
            raise Failed(f"{self._peer} did not respond to the hello") from error
        run.ack(welcome.resume_after_seq)
        return welcome

    async def _send_live(self, run: Run, cursor: int) -> None:
        """Send the current run's frames in order, as they are made.

        They never wait for an ack: a hub that cannot save shows them all the same, and they stay in the outbox.
        Whether the hub is there at all is for the connection's pings to find out.
        """
        has_begun = False
        while True:
            run.changed.clear()
            entries, context = run.batch(cursor)
            if not entries:
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

    async def _send_older_first(self) -> None:
        """Send older runs one after the other, each in order and until it is confirmed."""
        while (run := self._outbox.older_run()) is not None:
            welcome = await self._greet(run)
            cursor = min(welcome.resume_after_seq, run.next_seq - 1)
            is_context_due = True
            while True:
                entries, context = run.batch(cursor)
                if not entries:
                    break
                is_context_due = is_context_due or entries[0].seq != cursor + 1
                for entry in (*(context if is_context_due else ()), *entries):
                    await self._line.send(entry.message)
                is_context_due = False
                cursor = entries[-1].seq
                await run.wait_acked(cursor)
            self._outbox.finish(run)


def _received_seq(welcome: Welcome) -> int:
    return max(welcome.resume_after_seq, welcome.received_seq)
