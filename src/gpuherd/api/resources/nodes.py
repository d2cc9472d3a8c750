"""GET /api/v1/nodes and /api/v1/nodes/{id}."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import PathParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.errors import HttpError
from gpuherd.api.services import Services
from gpuherd.fleet.views import NodeView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/nodes", operation_id="listNodes", opt=needs(Access.LOOK), summary="All nodes")
    async def list_nodes(request: Request[Any, Any, Any]) -> tuple[NodeView, ...]:
        """Every enrolled node, also those that have never reported."""
        return (await services.fleet_view(viewer_of(request))).nodes

    @get("/nodes/{node_id:str}", operation_id="getNode", opt=needs(Access.LOOK), summary="One node")
    async def get_node(
        request: Request[Any, Any, Any],
        node_id: Annotated[str, PathParameter(description="The node's id.")],
    ) -> NodeView:
        """One node with its devices and processes."""
        node = services.node_view(viewer_of(request), node_id)
        if node is None:
            raise HttpError(
                404, "unknown_node", "there is no node with this id; GET /api/v1/nodes lists them"
            )
        return node

    return [list_nodes, get_node]
