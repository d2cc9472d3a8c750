"""POST /api/v1/reports: a whole report as JSON, for scripts."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import JSONBody
from msgspec import Struct

from gpuherd.api.access import Access, needs
from gpuherd.api.services import Services
from gpuherd.model.reports import Report

__all__ = ["ReportReceipt", "handlers"]


class ReportReceipt(Struct, frozen=True, kw_only=True):
    """Whose report was taken."""

    node_id: str


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    def check_credential(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        # Before the body is read: strangers must not make the hub decode a megabyte.
        services.node_of(connection.headers.get("authorization"))

    @post(
        "/reports",
        operation_id="postReport",
        opt=needs(Access.NODE),
        summary="Report as a node",
        status_code=202,
        guards=[check_credential],
    )
    async def post_report(data: JSONBody[Report], request: Request[Any, Any, Any]) -> ReportReceipt:
        """Take a report of the node whose credential is in ``Authorization: Bearer``.

        The report never says whose it is: a node speaks only for itself. Repeating a report is harmless.
        """
        node_id = services.node_of(request.headers.get("authorization"))
        services.accept_report(node_id, data)
        return ReportReceipt(node_id=node_id)

    return [post_report]
