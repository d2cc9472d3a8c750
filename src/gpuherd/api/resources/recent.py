"""GET /api/v1/nodes/{id}/recent: the last minutes, for charts."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import PathParameter, QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.errors import HttpError
from gpuherd.api.services import Services
from gpuherd.fleet.recent import RecentView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/nodes/{node_id:str}/recent",
        operation_id="getRecent",
        opt=needs(Access.LOOK),
        summary="A node's last minutes",
    )
    async def get_recent(
        request: Request[Any, Any, Any],
        node_id: Annotated[str, PathParameter(description="The node's id.")],
        devices: Annotated[
            list[str] | None,
            QueryParameter(name="device", description="Only the device with this UUID; may be repeated."),
        ] = None,
    ) -> RecentView:
        """The last 15 minutes of a node and its devices, in steps of 5 seconds. Null is unknown, also while the
        node was not live. For newer values, follow the stream.
        """
        recent = services.recent_view(
            viewer_of(request), node_id, None if devices is None else frozenset(devices)
        )
        if recent is None:
            raise HttpError(
                404, "unknown_node", "there is no node with this id; GET /api/v1/nodes lists them"
            )
        return recent

    return [get_recent]
