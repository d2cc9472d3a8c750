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
    """Devices that are all the same to the person: the hub chooses, when booking."""

    count: Annotated[int, Meta(ge=1, le=MAX_DEVICES)] = 1
    model: Annotated[
        Label | None,
        Meta(description="Words that the short or full name must have, such as A100 80GB or 1g.10gb."),
    ] = None
    min_memory_bytes: Annotated[
        Annotated[int, Meta(ge=0, le=2**62)] | None, Meta(description="Memory that each must have at least.")
    ] = None
    same_node: Annotated[
        bool, Meta(description="All on one node, or none at all. Otherwise one node is only preferred.")
    ] = False


class Weekly(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same again every week, at the same time by the clock on the wall; all of them or none."""

    times: Annotated[int, Meta(ge=2, le=MAX_WEEKS, description="How many in all.")]


class BookingRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A booking to be made. Devices are given by ``devices`` and ``nodes``, or by one of ``any`` and ``running``."""

    devices: Annotated[Devices, Meta(description="These. A partitioned GPU stands for its slices.")] = ()
    nodes: Annotated[
        Annotated[tuple[Identifier, ...], Meta(max_length=MAX_DEVICES)],
        Meta(description="Every device of these nodes, by their ids."),
    ] = ()
    any: Annotated[
        AnyDevices | Annotated[str, Meta(max_length=200)] | None,
        Meta(description='As many of a kind, also as text: "2 x A100 80GB".'),
    ] = None
    running: Annotated[
        bool, Meta(description="The devices on which processes of the person who asks run right now.")
    ] = False
    start: Annotated[
        Moment, Meta(description='UTC epoch seconds, or text: "now", "tomorrow 9:00", "2026-11-20 18:00".')
    ] = "now"
    end: Annotated[Moment, Meta(description='UTC epoch seconds, or text: "3d 4h", "until friday 18:00".')]
    zone: Annotated[
        ZoneName | None, Meta(description="IANA time zone of the texts; by default bookings.zone.")
    ] = None
    title: Title = ""
    comment: Comment = ""
    group: Annotated[
        Label | None,
        Meta(description="Group on whose behalf; all its members may then change the booking."),
    ] = None
    weekly: Weekly | None = None
    dry_run: Annotated[
        bool, Meta(description="Check everything and tell what would be booked, but book nothing.")
    ] = False


class BookingChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be different. What is not given stays."""

    revision: Annotated[
        int | UnsetType,
        Meta(description="That of the booking as it was read; if it has changed since, nothing is done."),
    ] = UNSET
    title: Title | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET
    group: Annotated[Label | UnsetType | None, Meta(description="null: on nobody's behalf any more.")] = UNSET
    devices: Annotated[Devices, Meta(min_length=1)] | UnsetType = UNSET
    start: Annotated[Moment | UnsetType, Meta(description="Only of a booking that has not begun.")] = UNSET
    end: Moment | UnsetType = UNSET
    zone: Annotated[ZoneName | UnsetType, Meta(description="By default that of the booking.")] = UNSET


class Extension(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A later end."""

    end: Annotated[
        Moment, Meta(description='A duration such as "1d" counts from the end the booking has now.')
    ]
    zone: Annotated[ZoneName | None, Meta(description="By default that of the booking.")] = None
    revision: int | None = None


class CopyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same devices for as long as before, at another time."""

    start: Moment
    end: Annotated[Moment | None, Meta(description="By default it lasts as long as the first one.")] = None
    zone: Annotated[ZoneName | None, Meta(description="By default that of the booking.")] = None


class Cancellation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be cancelled."""

    series: Annotated[
        bool, Meta(description="Also the later ones of the same weekly series; of a running one, only those.")
    ] = False


class Decision(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an admin answers to."""

    revision: Annotated[
        int,
        Meta(description="That of the booking as it was read; if it has changed since, nothing is decided."),
    ]
