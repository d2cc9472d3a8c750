"""The way to the hub: dial, say hello, send what is not confirmed in order, take acks; dial again when it breaks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpuherd import __version__
from gpuherd.agent.address import HubAddress
from gpuherd.agent.backoff import Backoff
from gpuherd.agent.enrol import HOW_TO_ENROL, Credentials
from gpuherd.agent.outbox import CurrentRun, Outbox, Run
from gpuherd.agent.said import SaidOnce
from gpuherd.agent.tls import tls_context
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.text import clean
from gpuherd.wire.codec import UnknownFrame, encode, hub_decoder
from gpuherd.wire.frames import SUBPROTOCOL, Ack, Hello, Notice, Welcome

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

__all__ = ["Link", "NeedsPerson"]

log = logging.getLogger(__name__)

OPEN_SECONDS = 15.0
WELCOME_SECONDS = 15.0
ACK_SECONDS = 20.0
"""A hub that confirms nothing for so long is taken for dead."""
WINDOW_FRAMES = 1024
WINDOW_BYTES = 2 * 1024 * 1024
"""What may be on its way without an ack."""
MAX_HUB_FRAME_BYTES = 65_536
STEADY_SECONDS = 30.0
"""After so long a session counts as good and the next loss is retried quickly."""


class NeedsPerson(Failed):
    """The hub said no in a way that trying again soon will not change."""


class Link:
    """Sends an outbox to a hub, for ever."""

    def __init__(
        self,
        address: HubAddress,
        credentials: Credentials,
        outbox: Outbox,
        *,
        tls_ca_file: str | None = None,
        on_interval: Callable[[float], None] = lambda _: None,
        backoff: Backoff | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        node_time: Callable[[], float] = time.time,
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._outbox = outbox
        self._tls_ca_file = tls_ca_file
        self._on_interval = on_interval
        self._backoff = backoff or Backoff()
        self._monotonic = monotonic
        self._node_time = node_time
        self._ack_seconds = ack_seconds
        self._decoder = hub_decoder()
        self._said = SaidOnce(log, monotonic)
        self._run: Run | None = None
        self._welcome: asyncio.Future[Welcome] | None = None
        self.is_connected = False

    async def run(self) -> None:
        """Keep the link up. Ends only with ``Misconfigured`` or when cancelled."""
        if self._address.is_exposed:
            log.warning(
                "the hub is addressed by plain http: this node's credential can be read on the network; use https"
            )
        while True:
            started = self._monotonic()
            needs_person = False
            try:
                await self._session()
            except Failed as failed:
                needs_person = isinstance(failed, NeedsPerson)
                self._said.say(logging.ERROR if needs_person else logging.WARNING, str(failed))
            finally:
                self.is_connected = False
                self._outbox.set_away(True)
            if self._monotonic() - started >= STEADY_SECONDS:
                self._backoff.reset()
            wait = self._backoff.slow_seconds() if needs_person else self._backoff.next_seconds()
            await asyncio.sleep(wait)

    async def _session(self) -> None:
        """One connection, from dialling to its loss, which is always a ``Failed``."""
        from websockets.asyncio.client import connect  # noqa: PLC0415 - --once and --print do without
        from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException  # noqa: PLC0415

        credential = await asyncio.to_thread(self._credentials.get)
        options: dict[str, Any] = {}
        if self._address.is_secure:
            options["ssl"] = tls_context(self._tls_ca_file)
        try:
            async with connect(
                self._address.agent_url,
                subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
                additional_headers={"Authorization": f"Bearer {credential}"},
                user_agent_header=f"gpuherd-agent/{__version__}",
                compression=None,
                proxy=None,
                open_timeout=OPEN_SECONDS,
                close_timeout=2.0,
                max_size=MAX_HUB_FRAME_BYTES,
                **options,
            ) as connection:
                if connection.subprotocol != SUBPROTOCOL:
                    raise NeedsPerson(
                        f"{self._address.url} does not speak {SUBPROTOCOL}; upgrade the hub or this agent"
                    )
                await self._talk(connection)
        except InvalidStatus as error:
            raise self._refusal(error.response.status_code) from error
        except ConnectionClosed as error:
            reason = error.rcvd.reason if error.rcvd is not None else ""
            raise Failed(
                f"the link to {self._address.url} was lost: {clean(reason or 'connection closed', 200)}"
            ) from error
        except (OSError, WebSocketException) as error:
            text = clean(str(error) or type(error).__name__, 200)
            hint = (
                "; set agent.tls_ca_file to the hub's certificate authority" if "CERTIFICATE" in text else ""
            )
            raise Failed(f"the hub at {self._address.url} cannot be reached: {text}{hint}") from error

    def _refusal(self, status: int) -> Failed:
        url = self._address.url
        if status in (401, 403):
            return NeedsPerson(
                f"{url} does not know this node's credential (HTTP {status}). To enrol again delete the credential "
                f"file, {HOW_TO_ENROL}"
            )
        if status in (404, 405, 426):
            return NeedsPerson(
                f"agent.hub_url: there is no gpuherd hub at {url} (HTTP {status}); check the address and its base path"
            )
        return Failed(f"{url} does not take connections now (HTTP {status})")

    async def _talk(self, connection: ClientConnection) -> None:
        """Send and receive until one of both ends, which is the end of the session."""
        tasks = {
            asyncio.create_task(self._receive(connection)),
            asyncio.create_task(self._send_runs(connection)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._run = self._welcome = None
        errors = [result for result in results if isinstance(result, Exception)]
        # What the hub said last matters more than that the connection closed after it.
        for error in sorted(errors, key=lambda error: not isinstance(error, NeedsPerson)):
            raise error

    # --- receiving ----------------------------------------------------------------------------------------------

    async def _receive(self, connection: ClientConnection) -> None:
        while True:
            message = await connection.recv()
            try:
                frame = self._decoder.decode(message if isinstance(message, bytes) else message.encode())
            except Refused as refused:
                raise NeedsPerson(f"{self._address.url} sent what is no frame: {refused}") from refused
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

    async def _send_runs(self, connection: ClientConnection) -> None:
        while True:
            run = self._outbox.next_run()
            await self._open_run(connection, run)
            await self._send_run(connection, run)
            self._outbox.finish(run)

    async def _open_run(self, connection: ClientConnection, run: Run) -> None:
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
        await connection.send(encode(hello))
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                welcome = await self._welcome
        except TimeoutError as error:
            raise Failed(f"{self._address.url} does not answer to hello") from error
        run.ack(welcome.resume_after_seq)
        resume_after_seq = welcome.resume_after_seq
        if isinstance(run, CurrentRun):
            # What the hub has but cannot save yet stays here and is not sent again: it would keep back what is live.
            resume_after_seq = max(resume_after_seq, welcome.received_seq)
        self._resume_after_seq = min(resume_after_seq, run.next_seq - 1)
        if isinstance(run, CurrentRun):
            self.is_connected = True
            self._outbox.set_away(False)
            log.info("connected to %s as %s", self._address.url, clean(welcome.node_id))
            if welcome.interval_seconds is not None:
                self._on_interval(welcome.interval_seconds)

    async def _send_run(self, connection: ClientConnection, run: Run) -> None:
        """Send a run's frames in order; an older run is done when all of it is confirmed."""
        cursor = self._resume_after_seq
        window = Window(run, self._monotonic, self._ack_seconds)
        has_begun = False
        while True:
            run.changed.clear()
            entries, context = run.batch(cursor)
            if not entries:
                if not isinstance(run, CurrentRun) and window.is_empty():
                    return
                await window.wait_for_change()
                continue
            if not has_begun or entries[0].seq != cursor + 1:
                # At the beginning, and after a gap: what the next frame is about.
                for entry in context:
                    await connection.send(entry.message)
                has_begun = True
            for entry in entries:
                while window.is_full():
                    await window.wait_for_change()
                await connection.send(entry.message)
                window.sent(entry.seq, len(entry.message))
                cursor = entry.seq


class Window:
    """What was sent and is not confirmed."""

    def __init__(self, run: Run, monotonic: Callable[[], float], ack_seconds: float) -> None:
        self._run = run
        self._monotonic = monotonic
        self._ack_seconds = ack_seconds
        self._sent: deque[tuple[int, int, float]] = deque()
        self._size_bytes = 0

    def sent(self, seq: int, size_bytes: int) -> None:
        """A frame is on its way."""
        self._sent.append((seq, size_bytes, self._monotonic()))
        self._size_bytes += size_bytes

    def _prune(self) -> None:
        while self._sent and self._sent[0][0] <= self._run.acked_seq:
            self._size_bytes -= self._sent.popleft()[1]

    def is_empty(self) -> bool:
        """Whether all that was sent is confirmed."""
        self._prune()
        return not self._sent

    def is_full(self) -> bool:
        """Whether to wait for acks before sending more."""
        self._prune()
        self._run.changed.clear()
        return len(self._sent) >= WINDOW_FRAMES or self._size_bytes >= WINDOW_BYTES

    async def wait_for_change(self) -> None:
        """Wait for an ack or a new frame; ``Failed`` when the oldest frame has waited too long for its ack."""
        self._prune()
        limit = None
        if self._sent:
            limit = max(self._sent[0][2] + self._ack_seconds - self._monotonic(), 0.0)
        try:
            async with asyncio.timeout(limit):
                await self._run.changed.wait()
        except TimeoutError as error:
            raise Failed(f"the hub confirmed nothing for {self._ack_seconds:.0f} s") from error
