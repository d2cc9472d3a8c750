"""The way to a hub that is dialled: talk until the connection breaks, then dial again, later each time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from gpuherd import __version__
from gpuherd.agent.address import HubAddress
from gpuherd.agent.backoff import Backoff
from gpuherd.agent.enrol import Credentials
from gpuherd.agent.outbox import Outbox
from gpuherd.agent.refusals import HandshakeRefused, refusal
from gpuherd.agent.said import SaidOnce
from gpuherd.agent.talk import PING_SECONDS, LineLost, NeedsPerson, Talk
from gpuherd.agent.tls import tls_context
from gpuherd.model.errors import Failed
from gpuherd.model.text import clean

__all__ = ["Link"]

log = logging.getLogger(__name__)

OPEN_SECONDS = 15.0
STEADY_SECONDS = 30.0
"""After so long a session counts as good and the next loss is retried quickly."""


class Link:
    """Dials a hub and sends it an outbox, for ever."""

    def __init__(
        self,
        address: HubAddress,
        credentials: Credentials,
        outbox: Outbox,
        *,
        tls_ca_file: str | None = None,
        on_welcome: Callable[[float | None], None] = lambda _: None,
        on_pace: Callable[[float | None], None] = lambda _: None,
        backoff: Backoff | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        node_time: Callable[[], float] = time.time,
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._outbox = outbox
        self._tls_ca_file = tls_ca_file
        self._on_welcome = on_welcome
        self._on_pace = on_pace
        self._backoff = backoff or Backoff()
        self._monotonic = monotonic
        self._node_time = node_time
        self._said = SaidOnce(log, monotonic)

    async def run(self) -> None:
        """Keep the link up. Ends only with ``Misconfigured`` or when cancelled."""
        if self._address.is_exposed:
            log.warning(
                "connecting to the hub without TLS: this node's credential can be read on the network; use https"
            )
        while True:
            started = self._monotonic()
            needs_person = False
            try:
                await self._session()
            except Failed as failed:
                needs_person = isinstance(failed, NeedsPerson)
                self._said.say(logging.ERROR if needs_person else logging.WARNING, str(failed))
            if self._monotonic() - started >= STEADY_SECONDS:
                self._backoff.reset()
            wait = self._backoff.slow_seconds() if needs_person else self._backoff.next_seconds()
            await asyncio.sleep(wait)

    async def _session(self) -> None:
        """One connection, from dialling to its loss, which is always a ``Failed``."""
        from gpuherd.agent.dial import dial  # noqa: PLC0415 - --once and --print do without

        url = self._address.url
        credential = await asyncio.to_thread(self._credentials.get)
        headers = {"Authorization": f"Bearer {credential}", "User-Agent": f"gpuherd-agent/{__version__}"}
        tls = tls_context(self._tls_ca_file) if self._address.is_secure else None
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                line = await dial(self._address, headers, tls=tls, ping_seconds=PING_SECONDS)
        except HandshakeRefused as refused:
            raise refusal(refused, url) from refused
        except (OSError, Failed) as error:
            text = clean(str(error) or type(error).__name__, 200)
            hint = (
                "; set agent.tls_ca_file to the hub's certificate authority" if "CERTIFICATE" in text else ""
            )
            raise Failed(f"the hub at {url} cannot be reached: {text}{hint}") from error
        talk = Talk(
            line,
            self._outbox,
            peer=url,
            said=self._said,
            on_welcome=self._on_welcome,
            on_pace=self._on_pace,
            node_time=self._node_time,
        )
        try:
            await talk.run()
        except LineLost as lost:
            raise Failed(f"the link to {url} was lost: {lost}") from lost
        finally:
            await line.close()
