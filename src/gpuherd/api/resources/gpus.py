"""GET /api/v1/gpus: devices, filtered."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.fleet.views import DeviceState, DeviceView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/gpus", operation_id="listGpus", opt=needs(Access.LOOK), summary="GPUs and slices")
    async def list_gpus(
        request: Request[Any, Any, Any],
        states: Annotated[
            list[DeviceState] | None,
            QueryParameter(name="state", description="Only devices in this state; may be repeated."),
        ] = None,
        nodes: Annotated[
            list[str] | None,
            QueryParameter(
                name="node", description="Only devices of the node with this id; may be repeated."
            ),
        ] = None,
    ) -> list[DeviceView]:
        """Every GPU and slice with its availability, numbers and processes."""
        return [
            device
            for device in await services.device_views(viewer_of(request))
            if (states is None or device.availability.state in states)
            and (nodes is None or device.node_id in nodes)
        ]

    return [list_gpus]
