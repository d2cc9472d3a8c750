"""GET /api/v1/slots: when so many devices are free for so long."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get
from litestar.params import QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.bookings.requests import MAX_DEVICES, AnyDevices
from gpuherd.bookings.times import LATEST
from gpuherd.bookings.views import FreeSlot

__all__ = ["handlers"]

MAX_HOURS = 24 * 366
MAX_SLOTS = 50


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/slots", operation_id="findSlots", opt=needs(Access.LOOK), summary="Next free slots")
    async def find_slots(
        request: Request[Any, Any, Any],
        count: Annotated[int, QueryParameter(ge=1, le=MAX_DEVICES, description="How many devices.")] = 1,
        model: Annotated[
            str | None,
            QueryParameter(
                max_length=128, description="Words that their names must contain, such as A100 80GB."
            ),
        ] = None,
        min_memory_bytes: Annotated[
            int | None, QueryParameter(ge=1, le=2**62, description="Minimum memory of each device.")
        ] = None,
        hours: Annotated[
            float, QueryParameter(gt=0, le=MAX_HOURS, description="Duration without a break.")
        ] = 1.0,
        is_same_node: Annotated[
            bool, QueryParameter(name="same_node", description="All on one node.")
        ] = False,
        since: Annotated[
            int | None,
            QueryParameter(ge=0, le=LATEST, description="Earliest start, UTC epoch seconds. Default: now."),
        ] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MAX_SLOTS, description="Maximum number of slots.")] = 5,
    ) -> list[FreeSlot]:
        """The next times at which this many devices are not booked, the earliest first. Programs without a booking
        are ignored. Devices that are faulty, offline or excluded from booking are not offered.
        """
        wanted = AnyDevices(
            count=count, model=model, min_memory_bytes=min_memory_bytes, same_node=is_same_node
        )
        return await services.bookings.slots(
            viewer_of(request), wanted, seconds=max(1, round(hours * 3600)), since=since, limit=limit
        )

    return [find_slots]
