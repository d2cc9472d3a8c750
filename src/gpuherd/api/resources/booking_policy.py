"""GET /api/v1/booking-policy: what one may book."""

from __future__ import annotations

from typing import Any

from litestar import Request, get

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.bookings.views import BookingPolicy

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get(
        "/booking-policy",
        operation_id="getBookingPolicy",
        opt=needs(Access.ACCOUNT),
        summary="Your booking limits",
    )
    async def get_booking_policy(request: Request[Any, Any, Any]) -> BookingPolicy:
        """Your limits, and how much of them you have used."""
        return await services.bookings.policy(viewer_of(request))

    return [get_booking_policy]
