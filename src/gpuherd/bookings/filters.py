"""Which bookings are asked for."""

from __future__ import annotations

from msgspec import Struct

from gpuherd.model.bookings import BookingState

__all__ = ["MAX_LISTED", "BookingFilter"]

MAX_LISTED = 1_000


class BookingFilter(Struct, frozen=True, kw_only=True):
    """What a list of bookings is narrowed to; none does not narrow."""

    is_mine: bool = False
    node_id: str | None = None
    uuid: str | None = None
    since: int | None = None
    until: int | None = None
    states: tuple[BookingState, ...] = ("active", "pending")
    series_id: int | None = None
    before_id: int | None = None
    limit: int = 200
