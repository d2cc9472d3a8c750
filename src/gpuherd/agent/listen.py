"""The way to a hub that dials: take its connection, prove ourselves to each other, then talk as if we had dialled.

One hub is served at a time. A second one that proves itself replaces the first: it is the same hub after a restart,
whose old connection may take long to be missed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpuherd.agent.door import Door, Visit
from gpuherd.agent.enrol import read_secret
from gpuherd.agent.hub_line import HubLine
from gpuherd.agent.listen_address import ListenAddress, Networks
from gpuherd.agent.outbox import Outbox
from gpuherd.agent.requests import BadRequest, Request, Response
from gpuherd.agent.said import SaidOnce
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.talk import LineLost, Talk
from gpuherd.agent.tls import certificate_in, server_tls_context
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.reports import Report
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import SUBPROTOCOL
from gpuherd.wire.proof import (
    LINK_PATH,
    REPLACED,
    UNPROVEN,
    AgentProof,
    Challenge,
    HubProof,
    channel_of,
    decode_proof,
    is_proof,
    new_nonce,
    proof,
)

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["DEFAULT_PORT", "HOW_TO_SHARE", "Listener"]

log = logging.getLogger(__name__)

DEFAULT_PORT = 8472
GOING_AWAY = 1001
SHORTEST_SECRET = 40
HOW_TO_SHARE = (
    "print this node's secret on the hub with `gpuherd node secret NAME`, put it in a file that only "
    "the agent's user can read, and set agent.listen_secret_file to its path"
)


class Listener:
    """Listens for the hub and sends it an outbox, for ever."""

    def __init__(
        self,
        settings: AgentSettings,
        outbox: Outbox,
        *,
        latest: Callable[[], Report | None],
        on_welcome: Callable[[float | None], None] = lambda _: None,
        on_pace: Callable[[float | None], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        node_time: Callable[[], float] = time.time,
    ) -> None:
        """Check everything that can be wrong with the settings; ``Misconfigured`` names the key."""
        self._secret = _secret(settings.listen_secret_file)
        tls, self._channel = _tls(settings)
        address = ListenAddress.parse("agent.listen", settings.listen or "", DEFAULT_PORT)
        self._status_networks = Networks("agent.listen_status_networks", settings.listen_status_networks)
        self.door = Door(address, self._serve, tls=tls, monotonic=monotonic)
        self._is_exposed = tls is None and not address.is_loopback
        self._outbox = outbox
        self._latest = latest
        self._on_welcome = on_welcome
        self._on_pace = on_pace
        self._node_time = node_time
        self._said = SaidOnce(log, monotonic)
        self._talking: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Listen until cancelled; ``Misconfigured`` if the address cannot be had."""
        if self._is_exposed:
            log.warning(
                "listening on %s without TLS: reports can be read and changed on the network; set "
                "agent.listen_tls_certificate and agent.listen_tls_key",
                self.door.address,
            )
        await self.door.run()

    async def _serve(self, visit: Visit, request: Request) -> None:
        if request.method == "GET" and request.path == LINK_PATH:
            await self._link(visit, request)
        elif request.path == "/status":
            await visit.answer(self._status(visit.address, request))
        else:
            raise BadRequest(404, f"this is a gpuherd agent; it serves {LINK_PATH} and /status")

    # --- status -------------------------------------------------------------------------------------------------

    def _status(self, address: str, request: Request) -> Response:
        if not self._status_networks.include(address):
            raise BadRequest(403, f"{address} is not in any network of {self._status_networks.key}")
        if not _is_own_name(request.headers.get("host", "")):
            raise BadRequest(421, "use this machine's IP address or host name")
        if request.method != "GET":
            raise BadRequest(405, "only GET is supported here")
        report = self._latest()
        if report is None:
            raise BadRequest(503, "no data yet; try again in a moment")
        return Response(status=200, body=msgspec.json.encode(report) + b"\n", content_type="application/json")

    # --- hub ----------------------------------------------------------------------------------------------------

    async def _link(self, visit: Visit, request: Request) -> None:
        offered = [name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(",")]
        if SUBPROTOCOL not in offered:
            raise BadRequest(
                426, f"this agent uses {SUBPROTOCOL}; install a gpuherd of the same major version"
            )
        line = HubLine(visit)
        if not await line.accept(visit.head):
            return
        try:
            await self._prove(line)
        except (Refused, LineLost) as failed:
            # How it failed is told to our own log only.
            self._said.say(logging.WARNING, f"a hub at {visit.address} failed to authenticate: {failed}")
            await line.close(UNPROVEN, "hub_unproven")
            return
        visit.welcome()
        await self._converse(line, f"the hub at {visit.address}")

    async def _prove(self, line: HubLine) -> None:
        """Let the hub prove itself, then do so; until then nothing but a random number is said."""
        agent_nonce = new_nonce()
        await line.send(encode(Challenge(nonce=agent_nonce)))
        hub = decode_proof(await line.recv(), HubProof)
        if not is_proof(
            hub.proof,
            self._secret,
            "hub",
            hub_nonce=hub.nonce,
            agent_nonce=agent_nonce,
            channel=self._channel,
        ):
            raise Refused("hub_unproven", f"its secret is not this node's; {HOW_TO_SHARE}")
        mine = proof(
            self._secret, "agent", hub_nonce=hub.nonce, agent_nonce=agent_nonce, channel=self._channel
        )
        await line.send(encode(AgentProof(proof=mine)))

    async def _converse(self, line: HubLine, peer: str) -> None:
        """Talk until the connection is lost or another hub has come."""
        talk = Talk(
            line,
            self._outbox,
            peer=peer,
            said=self._said,
            on_welcome=self._on_welcome,
            on_pace=self._on_pace,
            node_time=self._node_time,
        )
        before, self._talking = self._talking, asyncio.create_task(self._talk(talk))
        talking = self._talking
        if before is not None:
            before.cancel()
        awake = asyncio.create_task(line.stay_awake())
        try:
            await asyncio.wait({talking, awake}, return_when=asyncio.FIRST_COMPLETED)
            if talking.cancelled():
                self._said.say(logging.WARNING, f"{peer} was replaced by another hub that knows the secret")
                await line.close(REPLACED, "replaced")
                return
        except asyncio.CancelledError:
            await line.close(GOING_AWAY, "stopping")
            raise
        finally:
            talking.cancel()
            awake.cancel()
            results = await asyncio.gather(talking, awake, return_exceptions=True)
            if self._talking is talking:
                self._talking = None
        for result in results:
            if isinstance(result, Failed):
                self._said.say(logging.WARNING, f"the link to {peer} was lost: {result}")
            elif isinstance(result, Exception):
                raise result
        await line.close(GOING_AWAY, "lost")

    async def _talk(self, talk: Talk) -> None:
        async with self._turn:  # the one before must have let go of the outbox
            await talk.run()


def _secret(file: str | None) -> str:
    if file is None:
        raise Misconfigured(f"agent.listen_secret_file: is required to listen; {HOW_TO_SHARE}")
    secret = read_secret(file, "secret of this node")
    if len(secret) < SHORTEST_SECRET:
        raise Misconfigured(f"{file} does not contain a secret created by a hub; {HOW_TO_SHARE}")
    if file != "-" and Path(file).stat().st_mode & 0o044:
        log.warning("other users can read %s and act as this node's hub; run: chmod 600 %s", file, file)
    return secret


def _tls(settings: AgentSettings) -> tuple[SSLContext | None, bytes]:
    certificate, key = settings.listen_tls_certificate, settings.listen_tls_key
    if certificate is None and key is None:
        return None, channel_of(None)
    if certificate is None or key is None:
        missing = "listen_tls_certificate" if certificate is None else "listen_tls_key"
        raise Misconfigured(
            f"agent.{missing}: is missing; TLS needs both agent.listen_tls_certificate and agent.listen_tls_key"
        )
    return server_tls_context(certificate, key), channel_of(certificate_in(certificate))


def _is_own_name(host: str) -> bool:
    """Whether a Host header names this machine; another name may be one that a web page has bent to our address.

    Not what merely begins like our name: anybody may have a domain, and in it a host that is called like us.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.removeprefix("[").removesuffix("]").lower()
    own = socket.gethostname().lower()
    if name in ("localhost", own, own.partition(".")[0]):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
