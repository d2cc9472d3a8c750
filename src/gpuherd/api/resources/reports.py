"""POST /api/v1/reports: a whole report as JSON, for scripts."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import JSONBody
from msgspec import Struct

from gpuherd.api.access import Access, needs
from gpuherd.api.sender import sender_of
from gpuherd.api.services import Services
from gpuherd.model.reports import Report
from gpuherd.wire.codec import MAX_FRAME_BYTES

__all__ = ["ReportReceipt", "handlers"]


class ReportReceipt(Struct, frozen=True, kw_only=True):
    """Node whose report was accepted."""

    node_id: str


def _announced_bytes(content_length: str | None) -> int:
    """Return the size of a body from its header; a chunked body counts as the largest that is accepted."""
    if content_length is None or not content_length.isascii() or not content_length.isdigit():
        return MAX_FRAME_BYTES
    return min(int(content_length[:12]), MAX_FRAME_BYTES)


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    async def check_sender(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        # Before the body is read, so that neither strangers nor a flooding node can make the hub decode a megabyte.
        node_id = services.node_of(connection.headers.get("authorization"), sender_of(connection).address)
        services.count_report(node_id, _announced_bytes(connection.headers.get("content-length")))

    @post(
        "/reports",
        operation_id="postReport",
        opt=needs(Access.NODE),
        summary="Report as a node",
        status_code=202,
        guards=[check_sender],
    )
    async def post_report(data: JSONBody[Report], request: Request[Any, Any, Any]) -> ReportReceipt:
        """Accept a report of the node whose credential is in ``Authorization: Bearer``. A node can report only for
        itself. Repeating a report is harmless. 429 ``too_many_frames``: this node sends too much, over WebSocket
        and HTTP together; the hub shows that on the node.
        """
        node_id = services.node_of(request.headers.get("authorization"), sender_of(request).address)
        services.accept_report(node_id, data)
        return ReportReceipt(node_id=node_id)

    return [post_report]
