"""Agents that listen: the hub dials, both sides prove the node's secret, then the link is like any other.

From then on it is the agent that talks and the hub that acknowledges, as if the agent had dialled (``push.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import NoReturn

from aiohttp import (
    ClientError,
    ClientSession,
    ClientWebSocketResponse,
    ClientWSTimeout,
    WebSocketError,
    WSCloseCode,
    WSMsgType,
)

from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.model.targets import NodeWay, Target
from gpuherd.model.text import clean
from gpuherd.sources.dial_gate import DialGate
from gpuherd.sources.dialling import Place, connect_failure, new_session, verifying_context
from gpuherd.sources.following import NodeIntake
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.resolving import NodeResolver
from gpuherd.sources.settings import PullSettings
from gpuherd.wire.codec import MAX_FRAME_BYTES, encode
from gpuherd.wire.frames import SUBPROTOCOL, Notice
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

__all__ = ["PullWay", "SocketChannel", "check_tls"]

GOING_AWAY = 1001
CLOSE_SECONDS = 1.0


class SocketChannel:
    """Messages over one WebSocket that the hub has opened."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._posted: asyncio.Task[None] | None = None
        self.lost: BaseException | None = None

    async def receive(self) -> bytes | None:
        """Wait for the next message; none when the other side is gone."""
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            data: bytes = message.data
            return data
        if message.type is WSMsgType.TEXT:
            return str(message.data).encode()  # no frame is text: it gets the answer of every malformed frame
        self.lost = message.data if isinstance(message.data, BaseException) else self._socket.exception()
        return None

    def post(self, message: bytes) -> bool:
        """Start sending without waiting; false if the previous message is still on its way."""
        if self._posted is not None and not self._posted.done():
            return False
        self._posted = asyncio.ensure_future(self._send(message))
        return True

    async def send(self, message: bytes) -> None:
        """Send and wait until it is handed over, after what was posted before."""
        if self._posted is not None and not self._posted.done():
            await self._posted
        await self._send(message)

    async def _send(self, message: bytes) -> None:
        try:
            await self._socket.send_bytes(message)
        except ConnectionError as error:  # whoever receives will find out; an ack that is lost is sent again
            self.lost = error

    async def close(self, code: int, reason: str) -> None:
        """Close; harmless when it is closed already."""
        if self._posted is not None:
            self._posted.cancel()
        await self._socket.close(code=code, message=reason.encode())


def check_tls(settings: PullSettings) -> ssl.SSLContext | None:
    """Make what verifies the agents' certificates; ``Misconfigured`` if that cannot be done, none without TLS."""
    if settings.is_tls:
        return verifying_context(settings.tls_ca_file)
    if settings.tls_ca_file is not None:
        raise Misconfigured("reach.tls_ca_file: has no effect without reach.is_tls = true")
    return None


class PullWay:
    """Dials listening agents."""

    way: NodeWay = "pull"

    def __init__(self, settings: PullSettings, *, links: NodeLinks, secret_of: Callable[[str], str]) -> None:
        """``secret_of`` gives a node's secret by its id. ``Misconfigured`` if the certificates cannot be used."""
        self._settings = settings
        self._links = links
        self._secret_of = secret_of
        self._tls = check_tls(settings)
        self._gate = DialGate(settings.connects_at_once)
        self._resolver = NodeResolver()
        self._session: ClientSession | None = None

    @property
    def interval_seconds(self) -> float:
        """How often a node's report is to be expected."""
        return self._settings.interval_seconds

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Dial, prove each other, take frames until the link is lost; ``ContactFailed`` says why."""
        place = Place(
            name=target.name,
            host=target.address,
            port=target.port or self._settings.port,
            is_tls=self._tls is not None,
        )
        async with self._gate.place(intake.node_id):
            socket = await self._dial(place)
            channel = SocketChannel(socket)
            asked_at = self._links.monotonic()  # a node says hello only after our proof
            try:
                await self._prove(place, socket, channel, self._secret_of(intake.node_id))
            except BaseException:
                await self._hang_up(channel, UNPROVEN, "agent_unproven")
                raise
        try:
            ending = await self._links.serve(
                intake.node_id,
                channel,
                interval_seconds=self._settings.interval_seconds,
                asked_at=asked_at,
            )
        finally:
            await self._hang_up(channel, GOING_AWAY, "stopping")
        self._ended(place, socket, channel, ending)

    async def close(self) -> None:
        """Let go of what nodes share."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._resolver.close()

    async def _dial(self, place: Place) -> ClientWebSocketResponse:
        seconds = self._settings.connect_deadline_seconds
        if self._session is None:
            self._session = new_session(self._resolver, seconds)
        try:
            async with asyncio.timeout(2 * seconds):
                return await self._session.ws_connect(
                    place.url(LINK_PATH),
                    protocols=(SUBPROTOCOL,),
                    heartbeat=2 * self._settings.keepalive_seconds,  # and half of it again for the answer
                    max_msg_size=MAX_FRAME_BYTES
                    + 1024,  # a little over the cap gets the answer of every such frame
                    timeout=ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    ssl=True if self._tls is None else self._tls,
                )
        except (ClientError, OSError, ValueError) as error:
            raise connect_failure(place, error) from error

    async def _prove(
        self, place: Place, socket: ClientWebSocketResponse, channel: SocketChannel, secret: str
    ) -> None:
        """Prove ourselves and see the agent's proof; before it no frame is looked at."""
        if socket.protocol != SUBPROTOCOL:
            raise place.failure("garbled", "the program there is not a gpuherd agent", needs_person=True)
        certificate = socket.get_extra_info("ssl_object")
        tls_channel = channel_of(certificate.getpeercert(True) if certificate is not None else None)
        hub_nonce = new_nonce()
        try:
            async with asyncio.timeout(self._settings.connect_deadline_seconds):
                challenge = decode_proof(await self._hear(place, socket, channel), Challenge)
                nonces = {"hub_nonce": hub_nonce, "agent_nonce": challenge.nonce, "channel": tls_channel}
                await channel.send(encode(HubProof(nonce=hub_nonce, proof=proof(secret, "hub", **nonces))))
                theirs = decode_proof(await self._hear(place, socket, channel), AgentProof)
        except TimeoutError as error:
            raise place.failure("timeout", "the agent connected but did not authenticate in time") from error
        except Refused as error:
            raise place.failure("garbled", f"the program there is not a gpuherd agent: {error}") from error
        if not is_proof(theirs.proof, secret, "agent", **nonces):
            raise place.failure(
                "node_unproven",
                "the agent there does not know this node's secret, so the hub does not trust it; if it is "
                f"the right machine, give it what `gpuherd node secret {place.name}` prints",
                needs_person=True,
            )

    async def _hear(self, place: Place, socket: ClientWebSocketResponse, channel: SocketChannel) -> bytes:
        message = await channel.receive()
        if message is None:
            if socket.close_code == UNPROVEN:
                raise place.failure(
                    "hub_refused",
                    "the agent does not trust this hub: it has another secret"
                    + (", or a proxy between them terminates TLS" if place.is_tls else "")
                    + f"; give it what `gpuherd node secret {place.name}` prints",
                    needs_person=True,
                )
            raise place.failure(
                "link_lost", "the agent closed the connection before it had authenticated itself"
            )
        return message

    async def _hang_up(self, channel: SocketChannel, code: int, reason: str) -> None:
        with contextlib.suppress(TimeoutError, OSError):  # it is gone in any case
            async with asyncio.timeout(CLOSE_SECONDS):
                await channel.close(code, reason)

    def _ended(
        self,
        place: Place,
        socket: ClientWebSocketResponse,
        channel: SocketChannel,
        ending: Notice | None,
    ) -> NoReturn:
        """Say why a link that was proven is over."""
        if ending is not None and ending.code == "replaced":
            raise place.failure("replaced", "the same node has connected in another way", needs_person=True)
        if ending is not None and ending.code == "frame_too_large":
            raise place.failure("too_large", ending.message)
        if ending is not None and ending.is_final:
            raise place.failure("garbled", f"the hub closed the connection: {ending.message}")
        if ending is not None:
            raise place.failure("link_lost", f"the hub closed the connection: {ending.message}")
        if socket.close_code == REPLACED:
            raise place.failure(
                "replaced",
                "another hub that knows this node's secret has taken over; let only one hub connect to "
                "it, or give the hubs different secrets",
                needs_person=True,
            )
        if isinstance(channel.lost, WebSocketError) and channel.lost.code == WSCloseCode.MESSAGE_TOO_BIG:
            raise place.failure("too_large", f"it sent a frame larger than {MAX_FRAME_BYTES} bytes")
        if socket.close_code == GOING_AWAY:
            raise place.failure("link_lost", "the agent has stopped")
        why = (
            clean(str(channel.lost), 200)
            if channel.lost is not None
            else "the agent or the network path to it is down"
        )
        raise place.failure("link_lost", f"the connection was lost: {why}")
