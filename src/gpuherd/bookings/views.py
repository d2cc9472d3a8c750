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
    """A device of a booking, with what people call it."""

    node_id: str
    uuid: str
    node_name: Annotated[str, Meta(description="The node's id if the node is gone.")]
    index: Annotated[int | None, Meta(description="Of a slice, within its GPU; none if the device is gone.")]
    parent_index: Annotated[int | None, Meta(description="Of a slice, the index of its GPU.")]
    short_name: Annotated[str | None, Meta(description="None if the device is gone.")]
    is_gone: Annotated[bool, Meta(description="No node reports it any more.")]


class BookingView(Struct, frozen=True, kw_only=True):
    """One booking as the one who looks may see it."""

    id: Annotated[int, Meta(description="0 in a dry run: nothing was booked.")]
    title: Annotated[str, Meta(description="Empty in the public view.")]
    comment: Annotated[str, Meta(description="Empty in the public view.")]
    holder: Annotated[
        str, Meta(description="Who has it: a person's or group's shown name; in public, a pseudonym.")
    ]
    owner_id: Annotated[str | None, Meta(description="The holder's account; never told in public.")]
    group: Annotated[str | None, Meta(description="Group on whose behalf; never told in public.")]
    devices: tuple[BookedDevice, ...]
    starts_at: EpochSeconds
    ends_at: Annotated[EpochSeconds, Meta(description="The first second that is free again.")]
    zone: Annotated[str, Meta(description="IANA time zone in which it was made; in public always UTC.")]
    state: Annotated[
        BookingState, Meta(description="Pending: waits for an admin and holds its devices meanwhile.")
    ]
    phase: BookingPhase
    series_id: int | None
    released_from: Annotated[
        EpochSeconds | None, Meta(description="Of one released early, the end it had before.")
    ]
    origin: Annotated[
        Literal["person", "comments"], Meta(description="Made here, or read from a comments.json.")
    ]
    created_at: float
    changed_at: float
    revision: Annotated[int, Meta(description="Give it back when changing the booking.")]
    is_own: Annotated[bool, Meta(description="It is the viewer's, or of a group of the viewer's.")]
    may_edit: Annotated[bool, Meta(description="The viewer may change, release or cancel it now.")]


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
    """Devices × time: every booking that holds a device within a span, once."""

    time: Annotated[float, Meta(description="The hub's time, UTC epoch seconds.")]
    since: EpochSeconds
    until: EpochSeconds
    is_current: Annotated[
        bool, Meta(description="False while the records do not answer: bookings as they were last known.")
    ]
    devices: Annotated[
        tuple[TimelineDevice, ...], Meta(description="In the order of the page; partitioned GPUs as slices.")
    ]
    bookings: Annotated[tuple[TimelineBooking, ...], Meta(description="Pending and active ones, by start.")]


class FreeSlot(Struct, frozen=True, kw_only=True):
    """A span in which what was asked for is free."""

    starts_at: EpochSeconds
    ends_at: EpochSeconds
    free_until: Annotated[
        EpochSeconds | None, Meta(description="When one of these is booked next; none if not at all.")
    ]
    devices: tuple[BookedDevice, ...]


class BookingConflict(Struct, frozen=True, kw_only=True):
    """A booking that is in the way, on one device."""

    booking_id: int
    holder: str
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    device: BookedDevice


class BookingPolicy(Struct, frozen=True, kw_only=True):
    """What the viewer may book, and what is used of it. A limit that is none does not apply."""

    may_book: bool
    is_exempt: Annotated[bool, Meta(description="An admin: no limits but those of other bookings.")]
    horizon_days: float | None
    max_days: float | None
    max_devices: Annotated[int | None, Meta(description="Devices at one time.")]
    gpu_hours_ahead: Annotated[float | None, Meta(description="Device-hours booked from now on.")]
    needs_approval: bool
    devices_booked: Annotated[int, Meta(description="Most devices at one time from now on.")]
    gpu_hours_booked: Annotated[float, Meta(description="Device-hours booked from now on.")]
    groups: Annotated[tuple[str, ...], Meta(description="Groups that one may book on behalf of.")]
    zone: Annotated[str, Meta(description="Time zone of texts that come without one.")]
