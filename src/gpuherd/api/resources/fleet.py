"""GET /api/v1/fleet: everything at once, or at a glance."""

from __future__ import annotations

from typing import Annotated, Any, cast

from litestar import Request, Response, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.asgi import takes_gzip
from gpuherd.api.services import Services
from gpuherd.fleet.glance import Glance
from gpuherd.fleet.views import FleetView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/fleet", operation_id="getFleet", opt=needs(Access.LOOK), summary="The whole herd")
    async def get_fleet(
        request: Request[Any, Any, Any],
        node: Annotated[
            str | None,
            QueryParameter(
                description="Only nodes with this id, name or host name. If there is none, those with the same part "
                "before the first dot. If more than 100 match, all nodes."
            ),
        ] = None,
    ) -> FleetView:
        """All nodes with their devices, processes and totals, as of the last tick. For scripts; the page reads the
        stream. In a large herd, select the node you need: each takes about 10 KB.
        """
        if node is not None:
            return await services.called_view(viewer_of(request), node)
        return await services.fleet_view(viewer_of(request))

    @get(
        "/fleet/glance",
        operation_id="getGlance",
        opt=needs(Access.LOOK),
        summary="What is free, and who holds what",
    )
    async def get_glance(request: Request[Any, Any, Any]) -> Response[Glance]:
        """All nodes and devices with their states, users and bookings, as columns, as of the last tick. A seventh
        of the size of ``GET /fleet``, and a twentieth with ``Accept-Encoding: gzip``: for frequent requests or
        large herds. Command lines and other details are left out.
        """
        glance = await services.glance(viewer_of(request))
        headers = {"Vary": "Accept-Encoding, Authorization, Cookie"}
        compressed = await glance.compressed() if takes_gzip(request.headers.get("accept-encoding")) else None
        if compressed is not None:
            headers["Content-Encoding"] = "gzip"
        return Response(
            cast("Any", glance.plain if compressed is None else compressed),
            media_type="application/json",
            headers=headers,
        )

    return [get_fleet, get_glance]
