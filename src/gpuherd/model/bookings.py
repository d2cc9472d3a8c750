"""Bookings: who has which devices, from when to when."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Identifier

__all__ = [
    "PAST_SHOWN_SECONDS",
    "Booking",
    "BookingState",
    "BookingUse",
    "DeviceBookingFacts",
    "DeviceRef",
    "EpochSeconds",
]

EpochSeconds = Annotated[int, Meta(ge=0, le=253_402_300_799, description="UTC, whole seconds.")]
"""Up to the end of the year 9999."""
PAST_SHOWN_SECONDS = 3 * 86_400
"""How long a booking is shown after its end, in grey; as long as an older page shows those of a comments.json."""
BookingState = Literal["active", "pending", "cancelled", "refused"]
"""Pending ones wait for an admin and hold their devices meanwhile. Whether an active one has begun or ended is a matter
of the time, not of the state."""
BookingUse = Literal["unused", "holder", "shared", "others", "unknown"]
"""What happens on a booked device: nothing; its holder works; holder and others; only others (a violation of the
booking, as is ``shared``); cannot be told."""


class DeviceRef(Struct, frozen=True, order=True):
    """A device by its node and UUID: nodes could claim each other's UUIDs."""

    node_id: Identifier
    uuid: Identifier


class Booking(Struct, frozen=True, kw_only=True):
    """One booking of one or more devices."""

    id: int
    title: str
    comment: str
    owner_id: Annotated[str | None, Meta(description="Account of the holder; null if there is none.")]
    owner_name: Annotated[str, Meta(description="Display name of the holder, or of the group it is for.")]
    group: Annotated[str | None, Meta(description="Group that the booking is for.")]
    devices: Annotated[tuple[DeviceRef, ...], Meta(description="Sorted; never empty.")]
    starts_at: EpochSeconds
    ends_at: Annotated[EpochSeconds, Meta(description="The first second after the booking.")]
    zone: Annotated[str, Meta(description="IANA time zone in which it was made.")]
    state: BookingState
    series_id: Annotated[int | None, Meta(description="Series of a weekly booking.")] = None
    released_from: Annotated[
        EpochSeconds | None, Meta(description="Original end of a booking that was released early.")
    ] = None
    origin: Annotated[
        Literal["person", "comments"],
        Meta(description="Whether it was made here or read from a comments.json."),
    ] = "person"
    created_at: Annotated[float, Meta(description="UTC epoch seconds.")]
    changed_at: Annotated[float, Meta(description="UTC epoch seconds.")]
    revision: Annotated[
        int, Meta(description="Revision of the last change; send it back when you change the booking.")
    ]


class DeviceBookingFacts(Struct, frozen=True, kw_only=True):
    """One booking of one device as the live state needs it: who may use the device, and when."""

    device: DeviceRef
    booking_id: int
    holder: str
    """Shown name of the person, or of the group it is for."""
    title: str
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    linux_names: frozenset[str]
    """Users on the nodes that are the holder, or someone of its group, as nodes report them."""
    is_pending: bool = False
    """Nobody has approved it yet: it is in the way of others, but is never anyone's to use."""
