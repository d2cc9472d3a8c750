"""GET /api/v1/fleet: everything at once."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
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
                description="Only nodes with this id, name or host name; where there is none, those with the same "
                "beginning up to the first dot. If these are more than 100, all nodes."
            ),
        ] = None,
    ) -> FleetView:
        """All nodes with their devices, processes and totals, as of the last tick. For scripts: the page reads
        the stream. Of a large herd, name the node that matters: each is some 10 KB.
        """
        if node is not None:
            return await services.called_view(viewer_of(request), node)
        return await services.fleet_view(viewer_of(request))

    return [get_fleet]
