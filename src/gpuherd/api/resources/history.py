"""/api/v1/history: numbers over time."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import PathParameter, QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.history_service import (
    MAX_DEVICES,
    DevicesQuestion,
    HerdQuestion,
    HostQuestion,
    UserQuestion,
    Wanted,
)
from gpuherd.api.resources.past import Format, Points, Since, Type, Until, send
from gpuherd.api.services import Services
from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS
from gpuherd.model.history import HerdSeries, SeriesView, UserSeries

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]
DEFAULT_POINTS = 500


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/history/devices",
        operation_id="getDeviceHistory",
        opt=needs(Access.LOOK),
        summary="Devices over time",
    )
    async def get_device_history(
        request: AnyRequest,
        devices: Annotated[
            list[str],
            QueryParameter(
                name="device",
                min_items=1,
                max_items=MAX_DEVICES,
                description="A device: `gpu01/3`, or node id, colon, UUID; may be repeated.",
            ),
        ],
        metrics: Annotated[
            list[str] | None,
            QueryParameter(
                name="metric",
                max_items=len(DEVICE_METRICS),
                description=f"May be repeated; default: utilization_gpu. Known: {', '.join(DEVICE_METRICS)}.",
            ),
        ] = None,
        since: Since = None,
        until: Until = None,
        points: Points = DEFAULT_POINTS,
        format: Format = "json",  # noqa: A002 - as the API has it
    ) -> Response[SeriesView]:
        """Metrics of devices in equal steps, with the state of each. Null is a gap: nothing is known about that
        step. Each point stands for its whole step. ``resolution`` says what it was calculated from, ``missing``
        what is missing.
        """
        question = DevicesQuestion(
            span=Wanted(since=since, until=until),
            devices=tuple(devices),
            metrics=tuple(metrics or ("utilization_gpu",)),
            points=points,
            format=format,
        )
        return send(await services.history.devices(viewer_of(request), question))

    @get(
        "/history/nodes/{node_id:str}",
        operation_id="getHostHistory",
        opt=needs(Access.LOOK),
        summary="A node's host over time",
    )
    async def get_host_history(
        request: AnyRequest,
        node_id: Annotated[str, PathParameter(description="The node's id.")],
        metrics: Annotated[
            list[str] | None,
            QueryParameter(
                name="metric",
                max_items=len(HOST_METRICS),
                description=f"May be repeated; default: cpu_ratio. Known: {', '.join(HOST_METRICS)}. In public only "
                "those that the live view shows.",
            ),
        ] = None,
        since: Since = None,
        until: Until = None,
        points: Points = DEFAULT_POINTS,
        format: Format = "json",  # noqa: A002
    ) -> Response[SeriesView]:
        """Metrics of a node's host, in the same format as devices. Nodes that are gone are included."""
        question = HostQuestion(
            span=Wanted(since=since, until=until),
            node_id=node_id,
            metrics=tuple(metrics or ("cpu_ratio",)),
            points=points,
            format=format,
        )
        return send(await services.history.host(viewer_of(request), question))

    @get("/history/herd", operation_id="getHerdHistory", opt=needs(Access.LOOK), summary="The herd over time")
    async def get_herd_history(
        request: AnyRequest,
        type: Type = None,  # noqa: A002
        since: Since = None,
        until: Until = None,
        points: Points = DEFAULT_POINTS,
        format: Format = "json",  # noqa: A002
    ) -> Response[HerdSeries]:
        """How many devices were in which state, and how busy they were; all, or those of one type."""
        question = HerdQuestion(
            span=Wanted(since=since, until=until), type=type, points=points, format=format
        )
        return send(await services.history.herd(viewer_of(request), question))

    @get(
        "/history/users/{user:str}",
        operation_id="getUserHistory",
        opt=needs(Access.LOOK),
        summary="A user over time",
    )
    async def get_user_history(
        request: AnyRequest,
        user: Annotated[str, PathParameter(description="The user as shown; for the public, a pseudonym.")],
        since: Since = None,
        until: Until = None,
        points: Points = DEFAULT_POINTS,
        format: Format = "json",  # noqa: A002
    ) -> Response[UserSeries]:
        """How many GPUs a user held, in steps of a quarter of an hour or more. An unknown name held none."""
        question = UserQuestion(
            span=Wanted(since=since, until=until), user=user, points=points, format=format
        )
        return send(await services.history.user(viewer_of(request), question))

    return [get_device_history, get_host_history, get_herd_history, get_user_history]
