"""/api/v1/bookings: who has which device when; making, changing and ending bookings."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get, patch, post
from litestar.openapi import ResponseSpec
from litestar.params import HeaderParameter, JSONBody, PathParameter, QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.bookings.filters import MAX_LISTED, BookingFilter
from gpuherd.bookings.requests import (
    BookingChange,
    BookingRequest,
    Cancellation,
    CopyRequest,
    Decision,
    Extension,
)
from gpuherd.bookings.times import LATEST
from gpuherd.bookings.views import BookingView
from gpuherd.model.bookings import BookingState

__all__ = ["handlers"]

BookingId = Annotated[int, PathParameter(description="The booking's number.")]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=128,
        pattern="^[!-~]+$",
        description="A random string, new for each booking. A request that is repeated with the same key within 24 "
        "hours books only once and returns the same booking.",
    ),
]
AnyRequest = Request[Any, Any, Any]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    return [*_reading(services), *_making(services), *_ending(services), *_deciding(services)]


def _reading(services: Services) -> list[Any]:
    @get("/bookings", operation_id="listBookings", opt=needs(Access.LOOK), summary="Bookings")
    async def list_bookings(
        request: AnyRequest,
        is_mine: Annotated[
            bool,
            QueryParameter(name="mine", description="Only yours and those of your groups."),
        ] = False,
        node: Annotated[
            str | None,
            QueryParameter(max_length=96, description="Only those of this node's devices, by its id."),
        ] = None,
        device: Annotated[
            str | None,
            QueryParameter(max_length=96, description="Only those of this device: `gpu01/3` or its UUID."),
        ] = None,
        since: Annotated[
            int | None,
            QueryParameter(ge=0, le=LATEST, description="Only those that end after this; UTC epoch seconds."),
        ] = None,
        until: Annotated[
            int | None,
            QueryParameter(
                ge=0, le=LATEST, description="Only those that start before this; UTC epoch seconds."
            ),
        ] = None,
        states: Annotated[
            list[BookingState] | None,
            QueryParameter(
                name="state",
                description="Only those in this state; may be repeated. Default: active and pending.",
            ),
        ] = None,
        series: Annotated[
            int | None, QueryParameter(ge=1, le=2**31 - 1, description="Only those of this weekly series.")
        ] = None,
        before: Annotated[
            int | None,
            QueryParameter(ge=1, le=2**31 - 1, description="Only those with a lower number, for paging."),
        ] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MAX_LISTED, description="Maximum number.")] = 200,
    ) -> list[BookingView]:
        """Bookings, the newest first. For the next page, send the number of the last one as ``before``."""
        return await services.bookings.find(
            viewer_of(request),
            BookingFilter(
                is_mine=is_mine,
                node_id=node,
                uuid=device,
                since=since,
                until=until,
                states=tuple(states or ("active", "pending")),
                series_id=series,
                before_id=before,
                limit=limit,
            ),
        )

    @get(
        "/bookings/{booking_id:int}", operation_id="getBooking", opt=needs(Access.LOOK), summary="One booking"
    )
    async def get_booking(request: AnyRequest, booking_id: BookingId) -> BookingView:
        """One booking in any state. 404: there is none with this number."""
        return await services.bookings.get(viewer_of(request), booking_id)

    return [list_bookings, get_booking]


def _making(services: Services) -> list[Any]:
    @post(
        "/bookings",
        operation_id="createBooking",
        opt=needs(Access.BOOK),
        summary="Book",
        status_code=201,
        responses={
            200: ResponseSpec(
                list[BookingView], description="A dry run: what would be booked.", generate_examples=False
            )
        },
    )
    async def create_booking(
        request: AnyRequest, data: JSONBody[BookingRequest], idempotency_key: IdempotencyKey = None
    ) -> Response[list[BookingView]]:
        """Book devices, all or none; a weekly booking creates one for each week. With ``dry_run``, nothing is
        booked and the status is 200. 409 ``conflict``: a device is already booked; the error lists the conflicts
        and when all devices are free. 422: a field is invalid; ``path`` names it; ``idempotency_key_reused``:
        the key was used with another request.
        """
        made = await services.bookings.book(viewer_of(request), data, idempotency_key)
        return Response(made, status_code=200 if data.dry_run else 201)

    @patch(
        "/bookings/{booking_id:int}",
        operation_id="changeBooking",
        opt=needs(Access.BOOK),
        summary="Change a booking",
    )
    async def change_booking(
        request: AnyRequest, booking_id: BookingId, data: JSONBody[BookingChange]
    ) -> BookingView:
        """Change a booking as a whole. 409 ``past``: it is over; ``changed_meanwhile``: read it again first."""
        return await services.bookings.change(viewer_of(request), booking_id, data)

    @post(
        "/bookings/{booking_id:int}/extend",
        operation_id="extendBooking",
        opt=needs(Access.BOOK),
        summary="Extend a booking",
        status_code=200,
    )
    async def extend_booking(
        request: AnyRequest, booking_id: BookingId, data: JSONBody[Extension]
    ) -> BookingView:
        """Set a later end, within your limits."""
        return await services.bookings.extend(viewer_of(request), booking_id, data)

    @post(
        "/bookings/{booking_id:int}/copy",
        operation_id="copyBooking",
        opt=needs(Access.BOOK),
        summary="Book the same again",
        status_code=201,
    )
    async def copy_booking(
        request: AnyRequest,
        booking_id: BookingId,
        data: JSONBody[CopyRequest],
        idempotency_key: IdempotencyKey = None,
    ) -> BookingView:
        """Book the same devices at another time for yourself. You can also copy someone else's booking."""
        return await services.bookings.copy(viewer_of(request), booking_id, data, idempotency_key)

    return [create_booking, change_booking, extend_booking, copy_booking]


def _ending(services: Services) -> list[Any]:
    @post(
        "/bookings/{booking_id:int}/release",
        operation_id="releaseBooking",
        opt=needs(Access.BOOK),
        summary="Release a booking",
        status_code=200,
    )
    async def release_booking(request: AnyRequest, booking_id: BookingId) -> BookingView:
        """End a current booking now, or cancel one that has not started."""
        return await services.bookings.release(viewer_of(request), booking_id)

    @post(
        "/bookings/{booking_id:int}/cancel",
        operation_id="cancelBooking",
        opt=needs(Access.BOOK),
        summary="Cancel a booking",
        status_code=200,
    )
    async def cancel_booking(
        request: AnyRequest, booking_id: BookingId, data: JSONBody[Cancellation]
    ) -> list[BookingView]:
        """Cancel a booking that has not started; with ``series``, this one and all later ones of its weekly series.
        If it has started, only the later ones can be cancelled; release it instead. The response is what was
        cancelled.
        """
        return await services.bookings.cancel(viewer_of(request), booking_id, data)

    return [release_booking, cancel_booking]


def _deciding(services: Services) -> list[Any]:
    @post(
        "/bookings/{booking_id:int}/approve",
        operation_id="approveBooking",
        opt=needs(Access.ADMIN),
        summary="Approve a booking",
        status_code=200,
    )
    async def approve_booking(
        request: AnyRequest, booking_id: BookingId, data: JSONBody[Decision]
    ) -> BookingView:
        """Approve a pending booking. 409 ``changed_meanwhile``: it has changed since you read it; read it again."""
        return await services.bookings.decide(viewer_of(request), booking_id, data, is_approved=True)

    @post(
        "/bookings/{booking_id:int}/refuse",
        operation_id="refuseBooking",
        opt=needs(Access.ADMIN),
        summary="Refuse a booking",
        status_code=200,
    )
    async def refuse_booking(
        request: AnyRequest, booking_id: BookingId, data: JSONBody[Decision]
    ) -> BookingView:
        """Refuse a pending booking; its devices can be booked again. 409 ``changed_meanwhile``: see approve."""
        return await services.bookings.decide(viewer_of(request), booking_id, data, is_approved=False)

    return [approve_booking, refuse_booking]
