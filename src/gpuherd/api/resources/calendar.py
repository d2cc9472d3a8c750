"""/api/v1/calendar/{secret}.ics: bookings for calendar programs."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter

from gpuherd.api.access import Access, needs
from gpuherd.api.services import Services
from gpuherd.bookings.ical import calendar_etag

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/calendar/{file_name:str}",
        operation_id="readCalendar",
        opt=needs(Access.OPEN),
        summary="A calendar of bookings",
        media_type="text/calendar",
        responses={
            304: ResponseSpec(
                None, description="Not changed: If-None-Match matches its ETag.", generate_examples=False
            )
        },
    )
    async def read_calendar(
        request: Request[Any, Any, Any],
        file_name: Annotated[str, PathParameter(description="The calendar's secret and .ics.")],
    ) -> Response[bytes]:
        """Bookings in iCalendar format (RFC 5545), up to a year back. The address is the secret: no login is
        needed. It ends with its owner's account, or when the owner deletes it. 404: this address does not exist.
        """
        content = await services.calendars.read(file_name)
        tag = calendar_etag(content)
        if tag in {given.strip() for given in request.headers.get("if-none-match", "").split(",")}:
            return Response(b"", status_code=304, headers={"ETag": tag})
        return Response(
            content,
            media_type="text/calendar",
            headers={"ETag": tag, "Content-Disposition": 'inline; filename="gpuherd.ics"'},
        )

    return [read_calendar]
