"""What is asked for: the bodies of the booking API. A field that is not known here is refused, not ignored."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from gpuherd.bookings.times import MAX_LENGTH
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.text import Identifier, Label

__all__ = [
    "MAX_COMMENT_LENGTH",
    "MAX_DEVICES",
    "MAX_TITLE_LENGTH",
    "MAX_WEEKS",
    "AnyDevices",
    "BookingChange",
    "BookingRequest",
    "Cancellation",
    "CopyRequest",
    "Decision",
    "Extension",
    "Weekly",
]

MAX_DEVICES = 1_000
MAX_WEEKS = 52
MAX_TITLE_LENGTH = 120
MAX_COMMENT_LENGTH = 2_000

Moment = int | Annotated[str, Meta(max_length=MAX_LENGTH)]
"""UTC epoch seconds, or what a person writes: see bookings.times."""
ZoneName = Annotated[str, Meta(max_length=64)]
Title = Annotated[str, Meta(max_length=MAX_TITLE_LENGTH)]
Comment = Annotated[str, Meta(max_length=MAX_COMMENT_LENGTH)]
Devices = Annotated[tuple[DeviceRef, ...], Meta(max_length=MAX_DEVICES)]


class AnyDevices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Any devices that match; the hub chooses them when you book."""

    count: Annotated[int, Meta(ge=1, le=MAX_DEVICES)] = 1
    model: Annotated[
        Label | None,
        Meta(description="Words that the short or full name must contain, such as A100 80GB or 1g.10gb."),
    ] = None
    min_memory_bytes: Annotated[
        Annotated[int, Meta(ge=0, le=2**62)] | None, Meta(description="Minimum memory of each device.")
    ] = None
    same_node: Annotated[
        bool, Meta(description="Require all on one node. Otherwise, one node is only preferred.")
    ] = False


class Weekly(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Repeat every week at the same local time; all weeks or none."""

    times: Annotated[int, Meta(ge=2, le=MAX_WEEKS, description="Total number.")]


class BookingRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A booking to make. Set ``devices`` and ``nodes``, or one of ``any`` and ``running``."""

    devices: Annotated[
        Devices, Meta(description="These devices. A GPU that is split means all its slices.")
    ] = ()
    nodes: Annotated[
        Annotated[tuple[Identifier, ...], Meta(max_length=MAX_DEVICES)],
        Meta(description="Every device of these nodes, by their ids."),
    ] = ()
    any: Annotated[
        AnyDevices | Annotated[str, Meta(max_length=200)] | None,
        Meta(description='A number of devices of a type; can be written as text: "2 x A100 80GB".'),
    ] = None
    running: Annotated[bool, Meta(description="The devices on which your processes run now.")] = False
    start: Annotated[
        Moment, Meta(description='UTC epoch seconds, or text: "now", "tomorrow 9:00", "2026-11-20 18:00".')
    ] = "now"
    end: Annotated[Moment, Meta(description='UTC epoch seconds, or text: "3d 4h", "until friday 18:00".')]
    zone: Annotated[
        ZoneName | None, Meta(description="IANA time zone of the texts. Default: bookings.zone.")
    ] = None
    title: Title = ""
    comment: Comment = ""
    group: Annotated[
        Label | None,
        Meta(description="Group that the booking is for; all its members can change it."),
    ] = None
    weekly: Weekly | None = None
    dry_run: Annotated[
        bool, Meta(description="Check everything and return what would be booked, but book nothing.")
    ] = False


class BookingChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a booking. Fields that are left out do not change."""

    revision: Annotated[
        int | UnsetType,
        Meta(description="Revision of the booking you read. If it has changed since, nothing is done."),
    ] = UNSET
    title: Title | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET
    group: Annotated[Label | UnsetType | None, Meta(description="Null: no longer for a group.")] = UNSET
    devices: Annotated[Devices, Meta(min_length=1)] | UnsetType = UNSET
    start: Annotated[Moment | UnsetType, Meta(description="Only for a booking that has not started.")] = UNSET
    end: Moment | UnsetType = UNSET
    zone: Annotated[ZoneName | UnsetType, Meta(description="Default: the booking's time zone.")] = UNSET


class Extension(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A later end."""

    end: Annotated[
        Moment, Meta(description='A duration such as "1d" counts from the current end of the booking.')
    ]
    zone: Annotated[ZoneName | None, Meta(description="Default: the booking's time zone.")] = None
    revision: int | None = None


class CopyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same devices for the same duration, at another time."""

    start: Moment
    end: Annotated[Moment | None, Meta(description="Default: the same duration as the original.")] = None
    zone: Annotated[ZoneName | None, Meta(description="Default: the booking's time zone.")] = None


class Cancellation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to cancel."""

    series: Annotated[
        bool,
        Meta(
            description="Also cancel the later bookings of the same weekly series. If this one has started, only "
            "those are cancelled."
        ),
    ] = False


class Decision(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An admin's decision."""

    revision: Annotated[
        int,
        Meta(description="Revision of the booking you read. If it has changed since, nothing is decided."),
    ]
