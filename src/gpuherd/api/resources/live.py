"""GET /api/v1/stream and /api/v1/agent as the schema describes them.

Both are served before Litestar sees them (``api/stream.py``, ``api/agent_socket.py``): they carry the traffic.
What arrives here came the wrong way and gets told so.
"""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.openapi import ResponseSpec

from gpuherd.api.access import Access, needs
from gpuherd.api.errors import ErrorBody, HttpError
from gpuherd.api.services import Services
from gpuherd.fleet.changes import FleetChange

__all__ = ["handlers"]


def handlers(_: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/stream",
        operation_id="stream",
        opt=needs(Access.COUNTS),
        summary="Live changes",
        responses={
            200: ResponseSpec(
                FleetChange,
                description="Server-sent events: first `snapshot`, then a `change` per tick, each a FleetChange. If "
                "you are logged in, also `own`, an OwnCommands, after the snapshot and whenever it changes.",
                media_type="text/event-stream",
                generate_examples=False,
            )
        },
    )
    async def stream() -> None:
        """Everything that the viewer can see, then the changes of each tick. The stream ends with the session or
        token, or when the account changes: then connect again. A viewer that is too slow for every change gets a
        new snapshot instead. With ``Accept-Encoding: gzip``, the stream is compressed. 503: too many viewers.
        """
        raise HttpError(405, "method_not_allowed", "the stream is read with GET")

    @get(
        "/agent",
        operation_id="agentLink",
        opt=needs(Access.NODE),
        summary="The nodes' WebSocket",
        responses={
            426: ResponseSpec(ErrorBody, description="Not a WebSocket handshake.", generate_examples=False)
        },
    )
    async def agent_link() -> None:
        """WebSocket with subprotocol ``gpuherd.v1`` and the node's credential in ``Authorization: Bearer``."""
        raise HttpError(
            426,
            "upgrade_required",
            "nodes connect here by WebSocket with the subprotocol gpuherd.v1",
            headers={"Upgrade": "websocket"},
        )

    return [stream, agent_link]
