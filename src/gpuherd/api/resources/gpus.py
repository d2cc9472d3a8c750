"""GET /api/v1/gpus: devices, filtered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from litestar import Request, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.fleet.views import DeviceState, DeviceView

__all__ = ["handlers", "is_wanted"]


def is_wanted(
    device: DeviceView, states: Collection[DeviceState] | None, nodes: Collection[str] | None
) -> bool:
    """Whether a device is asked for. By its state, a GPU that is split is not, but its slices are."""
    if nodes is not None and device.node_id not in nodes:
        return False
    state = device.availability.state
    is_had_by_slices = device.facts.is_partitioned and state in ("free", "busy", "held", "booked")
    return states is None or (state in states and not is_had_by_slices)


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
        """Every GPU and slice with its availability, metrics and processes. With ``state``, a GPU that is split is
        left out if its slices have the same state.
        """
        return [
            device
            for device in await services.device_views(viewer_of(request))
            if is_wanted(device, states, nodes)
        ]

    return [list_gpus]
