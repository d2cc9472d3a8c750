"""The nodes' WebSocket over ASGI: handshake, credential, then ``sources/push.py`` takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from gpuherd.api.asgi import Receive, Scope, Send, header
from gpuherd.api.errors import HttpError
from gpuherd.api.sockets import peer_of
from gpuherd.api.unfinished import Incoming, UnfinishedMessages
from gpuherd.sources.push import NodeLinks
from gpuherd.wire.frames import SUBPROTOCOL

__all__ = ["AgentSocket", "AsgiChannel"]


class AsgiChannel:
    """Messages over one accepted WebSocket."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._posted: Any = None
        self.incoming: Incoming | None = None

    async def receive(self) -> bytes | None:
        """Wait for the next message; none when the other side is gone."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        content = message.get("bytes")
        if content is None:
            # Frames are never text. Passed on as it is, it fails to decode and is answered like any malformed frame.
            content = (message.get("text") or "").encode()
        if self.incoming is not None:
            self.incoming.took(len(content))
        return bytes(content)

    def post(self, message: bytes) -> bool:
        """Start sending without waiting; false if the previous post is still on its way."""
        if self._posted is not None and not self._posted.done():
            return False
        posted = self._send({"type": "websocket.send", "bytes": message})
        # Granian starts at the call and gives a future; a coroutine would not run by itself.
        self._posted = posted if hasattr(posted, "done") else asyncio.ensure_future(posted)
        return True

    async def send(self, message: bytes) -> None:
        """Send and wait until it is handed over, after what was posted before."""
        if self._posted is not None and not self._posted.done():
            await self._posted
        await self._send({"type": "websocket.send", "bytes": message})

    async def close(self, code: int, reason: str) -> None:
        """Close."""
        await self._send({"type": "websocket.close", "code": code, "reason": reason})


class AgentSocket:
    """Serves ``/api/v1/agent``."""

    def __init__(
        self,
        links: NodeLinks,
        node_of: Callable[[Scope], str],
        known_node: Callable[[str | None], str | None],
        unfinished: UnfinishedMessages,
    ) -> None:
        self._links = links
        self._node_of = node_of
        self._known_node = known_node
        self._unfinished = unfinished

    def known_node(self, scope: Scope) -> str | None:
        """Return the node whose credential a request shows; None if it shows none."""
        return self._known_node(header(scope, b"authorization"))

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one node. Raises ``HttpError`` instead of accepting the handshake."""
        node_id = self._node_of(scope)
        if SUBPROTOCOL not in scope["subprotocols"]:
            raise HttpError(
                400,
                "unsupported_protocol",
                f"this hub uses the subprotocol {SUBPROTOCOL}; install the same major version of gpuherd",
            )
        await receive()
        asked_at = self._links.monotonic()
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        channel = AsgiChannel(receive, send)
        peer = peer_of(scope)
        if peer is None:
            await self._links.serve(node_id, channel, asked_at=asked_at)
            return
        incoming = channel.incoming = Incoming(peer, lambda: self._links.refuse_unfinished(node_id, channel))
        self._unfinished.add(incoming)
        try:
            await self._links.serve(node_id, channel, asked_at=asked_at)
        finally:
            self._unfinished.remove(incoming)
