"""GET /api/v1/fleet: everything at once."""

from __future__ import annotations

from typing import Any

from litestar import Request, get

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.fleet.views import FleetView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/fleet", operation_id="getFleet", opt=needs(Access.LOOK), summary="The whole herd")
    async def get_fleet(request: Request[Any, Any, Any]) -> FleetView:
        """All nodes with their devices, processes and totals, as of the last tick. For scripts: the page reads
        the stream.
        """
        return await services.fleet_view(viewer_of(request))

    return [get_fleet]
