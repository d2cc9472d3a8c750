"""/api/v1/account/feeds: one's own calendars of bookings."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post
from litestar.params import JSONBody, PathParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.calendars import CreatedFeed, FeedRequest
from gpuherd.api.people_views import FeedView
from gpuherd.api.services import Services

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/account/feeds", operation_id="listFeeds", opt=needs(Access.SELF), summary="Your calendars")
    async def list_feeds(request: AnyRequest) -> list[FeedView]:
        """Your calendars, the newest first, without their addresses."""
        return await services.calendars.feeds(viewer_of(request))

    @post(
        "/account/feeds",
        operation_id="createFeed",
        opt=needs(Access.SELF),
        summary="Create a calendar",
        status_code=201,
    )
    async def create_feed(request: AnyRequest, data: JSONBody[FeedRequest]) -> CreatedFeed:
        """Create a calendar of bookings that any calendar program can read through its secret address. The hub
        stores only a digest, so the address is shown only once. 422 ``unknown_device``; 409 ``too_many_feeds``.
        """
        return await services.calendars.create(viewer_of(request), data)

    @delete(
        "/account/feeds/{feed_id:str}",
        operation_id="endFeed",
        opt=needs(Access.SELF),
        summary="End a calendar",
        status_code=204,
    )
    async def end_feed(
        request: AnyRequest, feed_id: Annotated[str, PathParameter(description="The calendar's id.")]
    ) -> None:
        """Delete a calendar's address at once. 404: you have none with this id."""
        await services.calendars.end(viewer_of(request), feed_id)

    return [list_feeds, create_feed, end_feed]
