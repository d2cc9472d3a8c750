"""GET /api/v1/timeline: devices × time."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.bookings.times import LATEST
from gpuherd.bookings.views import TimelineView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/timeline", operation_id="getTimeline", opt=needs(Access.LOOK), summary="Bookings, device by device"
    )
    async def get_timeline(
        request: Request[Any, Any, Any],
        since: Annotated[
            int | None,
            QueryParameter(
                ge=0, le=LATEST, description="Start of the range, UTC epoch seconds. Default: a day ago."
            ),
        ] = None,
        until: Annotated[
            int | None,
            QueryParameter(
                ge=0,
                le=LATEST,
                description="End of the range, UTC epoch seconds. Default: 8 days later. At most 400 days.",
            ),
        ] = None,
        nodes: Annotated[
            list[str] | None,
            QueryParameter(
                name="node", description="Only devices of the node with this id; may be repeated."
            ),
        ] = None,
    ) -> TimelineView:
        """Every device, and every active or pending booking of one of them in a range."""
        return await services.bookings.timeline(
            viewer_of(request), since, until, None if nodes is None else frozenset(nodes)
        )

    return [get_timeline]
