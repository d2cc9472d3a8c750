"""/api/v1/nodes and /api/v1/nodes/{id}; what an admin says of a node's GPUs."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta, Struct

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.errors import HttpError
from gpuherd.api.services import Services
from gpuherd.fleet.views import NodeView
from gpuherd.model.text import Identifier

__all__ = ["handlers"]


class NamedGpu(Struct, frozen=True, kw_only=True):
    """A GPU of a node."""

    uuid: Annotated[Identifier, Meta(description="The vendor's unique id.")]


class AcknowledgedFaults(Struct, frozen=True, kw_only=True):
    """What was acknowledged."""

    faults: Annotated[tuple[str, ...], Meta(description="Empty: there was nothing to acknowledge.")]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/nodes", operation_id="listNodes", opt=needs(Access.LOOK), summary="All nodes")
    async def list_nodes(request: Request[Any, Any, Any]) -> tuple[NodeView, ...]:
        """Every node, including those that have never reported."""
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

    @post(
        "/nodes/{node_id:str}/forget-gpu",
        operation_id="forgetGpu",
        opt=needs(Access.ADMIN),
        summary="Forget a missing GPU",
        status_code=204,
    )
    async def forget_gpu(
        request: Request[Any, Any, Any],
        node_id: Annotated[str, PathParameter(description="The node's id.")],
        data: JSONBody[NamedGpu],
    ) -> None:
        """Confirm that a missing GPU was taken out. 404: no such GPU is missing."""
        if await services.settle_gpu(viewer_of(request), node_id, data.uuid, "forget") is None:
            raise HttpError(404, "not_missing", "no GPU with this UUID is missing on this node")

    @post(
        "/nodes/{node_id:str}/acknowledge-gpu",
        operation_id="acknowledgeGpu",
        opt=needs(Access.ADMIN),
        summary="Acknowledge a GPU's faults",
        status_code=200,
    )
    async def acknowledge_gpu(
        request: Request[Any, Any, Any],
        node_id: Annotated[str, PathParameter(description="The node's id.")],
        data: JSONBody[NamedGpu],
    ) -> AcknowledgedFaults:
        """Acknowledge the remembered Xids and the ECC errors of a GPU: only new ones are faults. 404: this node has
        no GPU with this UUID.
        """
        faults = await services.settle_gpu(viewer_of(request), node_id, data.uuid, "acknowledge")
        if faults is None:
            raise HttpError(404, "unknown_gpu", "this node has no GPU with this UUID")
        return AcknowledgedFaults(faults=faults)

    return [list_nodes, get_node, forget_gpu, acknowledge_gpu]
