"""Bookings as the HTTP resources see them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from gpuherd.bookings.filters import BookingFilter
from gpuherd.bookings.requests import (
    AnyDevices,
    BookingChange,
    BookingRequest,
    Cancellation,
    CopyRequest,
    Decision,
    Extension,
)
from gpuherd.bookings.views import BookingPolicy, BookingView, FreeSlot, TimelineView
from gpuherd.model.people import Viewer

__all__ = ["BookingService"]


class BookingService(Protocol):
    """Everything is called on the event loop. ``Failed``: the records do not answer. ``HttpError``: it may not be."""

    async def find(self, viewer: Viewer, wanted: BookingFilter) -> list[BookingView]:
        """Give the bookings that fit, the newest first."""

    async def get(self, viewer: Viewer, booking_id: int) -> BookingView:
        """Give one."""

    async def book(
        self, viewer: Viewer, request: BookingRequest, idempotency_key: str | None = None
    ) -> list[BookingView]:
        """Make one, or a weekly series, all or nothing."""

    async def change(self, viewer: Viewer, booking_id: int, change: BookingChange) -> BookingView:
        """Change one as a whole."""

    async def extend(self, viewer: Viewer, booking_id: int, extension: Extension) -> BookingView:
        """Give one a later end."""

    async def copy(
        self, viewer: Viewer, booking_id: int, request: CopyRequest, idempotency_key: str | None = None
    ) -> BookingView:
        """Book the same devices at another time."""

    async def release(self, viewer: Viewer, booking_id: int) -> BookingView:
        """End a running one now; cancel one that has not begun."""

    async def cancel(self, viewer: Viewer, booking_id: int, request: Cancellation) -> list[BookingView]:
        """Cancel one that has not begun, and the later ones of its series if so wished."""

    async def decide(
        self, viewer: Viewer, booking_id: int, decision: Decision, *, is_approved: bool
    ) -> BookingView:
        """Approve or refuse a pending one."""

    async def timeline(
        self, viewer: Viewer, since: int | None, until: int | None, nodes: Collection[str] | None
    ) -> TimelineView:
        """Give devices and the bookings that hold them within a span."""

    async def slots(
        self, viewer: Viewer, wanted: AnyDevices, *, seconds: int, since: int | None, limit: int
    ) -> list[FreeSlot]:
        """Find the next spans in which so many devices are free."""

    async def policy(self, viewer: Viewer) -> BookingPolicy:
        """Tell what the viewer may book, and what is used of it."""
