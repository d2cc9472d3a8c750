"""Bookings as they are shown: with names for devices, and what the one who looks may do and see."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.bookings import BookingState, EpochSeconds

__all__ = [
    "BookedDevice",
    "BookingConflict",
    "BookingPhase",
    "BookingPolicy",
    "BookingView",
    "FreeSlot",
    "TimelineBooking",
    "TimelineDevice",
    "TimelineView",
]

BookingPhase = Literal["past", "current", "upcoming"]


class BookedDevice(Struct, frozen=True, kw_only=True):
    """A device of a booking, with its names."""

    node_id: str
    uuid: str
    node_name: Annotated[str, Meta(description="The node's id if the node is gone.")]
    index: Annotated[
        int | None, Meta(description="Index of a slice within its GPU; null if the device is gone.")
    ]
    parent_index: Annotated[int | None, Meta(description="Index of a slice's GPU.")]
    short_name: Annotated[str | None, Meta(description="Null if the device is gone.")]
    is_gone: Annotated[bool, Meta(description="No node reports it any more.")]


class BookingView(Struct, frozen=True, kw_only=True):
    """One booking as the viewer can see it."""

    id: Annotated[int, Meta(description="0 in a dry run: nothing was booked.")]
    title: Annotated[str, Meta(description="Empty in the public view.")]
    comment: Annotated[str, Meta(description="Empty in the public view.")]
    holder: Annotated[
        str, Meta(description="Holder: display name of a person or group; for the public, a pseudonym.")
    ]
    owner_id: Annotated[str | None, Meta(description="The holder's account; never public.")]
    group: Annotated[str | None, Meta(description="Group that it is for; never public.")]
    devices: tuple[BookedDevice, ...]
    starts_at: EpochSeconds
    ends_at: Annotated[EpochSeconds, Meta(description="The first second after the booking.")]
    zone: Annotated[str, Meta(description="IANA time zone in which it was made; for the public, always UTC.")]
    state: Annotated[
        BookingState, Meta(description="Pending: needs an admin's approval; its devices are reserved.")
    ]
    phase: BookingPhase
    series_id: int | None
    released_from: Annotated[
        EpochSeconds | None, Meta(description="Original end of a booking that was released early.")
    ]
    origin: Annotated[
        Literal["person", "comments"],
        Meta(description="Whether it was made here or read from a comments.json."),
    ]
    created_at: float
    changed_at: float
    revision: Annotated[int, Meta(description="Send it back when you change the booking.")]
    is_own: Annotated[bool, Meta(description="It belongs to the viewer or to one of the viewer's groups.")]
    may_edit: Annotated[bool, Meta(description="The viewer can change, release or cancel it now.")]


class TimelineDevice(Struct, frozen=True, kw_only=True):
    """One line of the timeline."""

    node_id: str
    node_name: str
    uuid: str
    index: int | None
    parent_index: int | None
    short_name: str | None
    is_quiet: Annotated[bool, Meta(description="Cannot be booked.")]
    is_gone: Annotated[bool, Meta(description="No node reports it any more, but it is booked.")]


class TimelineBooking(Struct, frozen=True, kw_only=True):
    """One bar of the timeline, over one or more lines."""

    id: int
    title: str
    holder: str
    group: str | None
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    state: BookingState
    series_id: int | None
    revision: int
    is_own: bool
    may_edit: bool
    devices: Annotated[tuple[int, ...], Meta(description="Positions in the timeline's devices.")]


class TimelineView(Struct, frozen=True, kw_only=True):
    """Devices × time: every booking of a device in a range, once."""

    time: Annotated[float, Meta(description="The hub's time, UTC epoch seconds.")]
    since: EpochSeconds
    until: EpochSeconds
    is_current: Annotated[
        bool, Meta(description="False while the database does not respond: bookings are the last known ones.")
    ]
    devices: Annotated[
        tuple[TimelineDevice, ...],
        Meta(description="In the order of the page; GPUs that are split appear as slices."),
    ]
    bookings: Annotated[tuple[TimelineBooking, ...], Meta(description="Pending and active ones, by start.")]


class FreeSlot(Struct, frozen=True, kw_only=True):
    """A time in which the requested devices are free."""

    starts_at: EpochSeconds
    ends_at: EpochSeconds
    free_until: Annotated[
        EpochSeconds | None,
        Meta(description="Start of the next booking of one of these; null if there is none."),
    ]
    devices: tuple[BookedDevice, ...]


class BookingConflict(Struct, frozen=True, kw_only=True):
    """A conflicting booking, on one device."""

    booking_id: int
    holder: str
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    device: BookedDevice


class BookingPolicy(Struct, frozen=True, kw_only=True):
    """What the viewer can book, and how much of it is used. A limit that is null does not apply."""

    may_book: bool
    is_exempt: Annotated[bool, Meta(description="An admin: no limits except other bookings.")]
    horizon_days: float | None
    max_days: float | None
    max_devices: Annotated[int | None, Meta(description="Devices at one time.")]
    gpu_hours_ahead: Annotated[float | None, Meta(description="Device-hours booked from now on.")]
    needs_approval: bool
    devices_booked: Annotated[int, Meta(description="Most devices at one time from now on.")]
    gpu_hours_booked: Annotated[float, Meta(description="Device-hours booked from now on.")]
    groups: Annotated[tuple[str, ...], Meta(description="Groups that you can book for.")]
    zone: Annotated[str, Meta(description="Time zone of texts without one.")]
    takes_idempotency_keys: Annotated[
        bool, Meta(description="Whether a booking request with an Idempotency-Key can be repeated safely.")
    ] = True
