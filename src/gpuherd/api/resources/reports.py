"""POST /api/v1/reports: a whole report as JSON, for scripts."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from msgspec import Struct

from gpuherd.api.services import Services
from gpuherd.model.reports import Report

__all__ = ["ReportReceipt", "handlers"]


class ReportReceipt(Struct, frozen=True, kw_only=True):
    """Whose report was taken."""

    node_id: str


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @post("/reports", operation_id="postReport", summary="Report as a node", status_code=202)
    async def post_report(data: Report, request: Request[Any, Any, Any]) -> ReportReceipt:
        """Take a report of the node whose credential is in ``Authorization: Bearer``.

        The report never says whose it is: a node speaks only for itself. Repeating a report is harmless.
        """
        node_id = services.node_of(request.headers.get("authorization"))
        services.accept_report(node_id, data)
        return ReportReceipt(node_id=node_id)

    return [post_report]
