"""Between bookings and their rows."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, select

from gpuherd.model.bookings import Booking, BookingState, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.records.tables import booking_devices, bookings

__all__ = [
    "HOLDING",
    "BookingDraft",
    "Conflict",
    "booking_of",
    "booking_row",
    "describe",
    "describe_change",
    "device_rows",
    "read_bookings",
]

HOLDING: tuple[BookingState, ...] = ("active", "pending")
"""States in which a booking holds its devices against others."""

FEW_BOOKINGS = 500
"""Up to which they are asked for by their ids, rather than by the same condition again."""
_COLUMNS = (
    bookings.c.id,
    bookings.c.title,
    bookings.c.comment,
    bookings.c.owner_id,
    bookings.c.owner_name,
    bookings.c.group_name,
    bookings.c.starts_at,
    bookings.c.ends_at,
    bookings.c.zone,
    bookings.c.state,
    bookings.c.series_id,
    bookings.c.released_from,
    bookings.c.origin,
    bookings.c.created_at,
    bookings.c.changed_at,
    bookings.c.revision,
)
"""In the order of ``read_bookings``."""


class BookingDraft(Struct, frozen=True, kw_only=True):
    """A booking that is to be made."""

    title: str = ""
    comment: str = ""
    owner_id: str | None
    owner_name: str
    group: str | None = None
    devices: tuple[DeviceRef, ...]
    starts_at: int
    ends_at: int
    zone: str = "UTC"
    state: BookingState = "active"
    origin: Literal["person", "comments"] = "person"


class Conflict(Refused):
    """Someone else holds a device at that time."""

    def __init__(self, in_the_way: tuple[Booking, ...], devices: tuple[DeviceRef, ...]) -> None:
        count = "a device is" if len(devices) == 1 else f"{len(devices) or 'some'} devices are"
        super().__init__("conflict", f"{count} already booked at that time; choose others, or another time")
        self.bookings = in_the_way
        """Those in the way, by their ids; none if those asked for are in each other's way."""
        self.devices = devices
        """Those that cannot be had; sorted."""


def booking_of(draft: BookingDraft, *, series_id: int | None, now: float, revision: int) -> Booking:
    """Make a booking of a draft; its id comes from the database."""
    return Booking(
        id=0,
        title=draft.title,
        comment=draft.comment,
        owner_id=draft.owner_id,
        owner_name=draft.owner_name,
        group=draft.group,
        devices=tuple(sorted(set(draft.devices))),
        starts_at=draft.starts_at,
        ends_at=draft.ends_at,
        zone=draft.zone,
        state=draft.state,
        series_id=series_id,
        origin=draft.origin,
        created_at=now,
        changed_at=now,
        revision=revision,
    )


def booking_row(booking: Booking) -> dict[str, Any]:
    """Give the columns of a booking, without its id."""
    return {
        "title": booking.title,
        "comment": booking.comment,
        "owner_id": booking.owner_id,
        "owner_name": booking.owner_name,
        "group_name": booking.group,
        "starts_at": booking.starts_at,
        "ends_at": booking.ends_at,
        "zone": booking.zone,
        "state": booking.state,
        "holds": booking.state in HOLDING,
        "series_id": booking.series_id,
        "released_from": booking.released_from,
        "origin": booking.origin,
        "created_at": booking.created_at,
        "changed_at": booking.changed_at,
        "revision": booking.revision,
    }


def device_rows(booking: Booking, devices: tuple[DeviceRef, ...]) -> list[dict[str, Any]]:
    """Give the rows of a booking's devices."""
    return [
        {
            "booking_id": booking.id,
            "node_id": device.node_id,
            "uuid": device.uuid,
            "starts_at": booking.starts_at,
            "ends_at": booking.ends_at,
            "holds": booking.state in HOLDING,
        }
        for device in devices
    ]


def read_bookings(connection: Connection, condition: ColumnElement[bool]) -> tuple[Booking, ...]:
    """Read the bookings that meet a condition, by their ids. Two queries, however many there are."""
    rows = connection.execute(select(*_COLUMNS).where(condition).order_by(bookings.c.id)).all()
    if not rows:
        return ()
    devices: dict[int, list[DeviceRef]] = defaultdict(list)
    refs: dict[tuple[str, str], DeviceRef] = {}
    ids = [row[0] for row in rows]
    chosen = ids if len(ids) <= FEW_BOOKINGS else select(bookings.c.id).where(condition)
    for booking_id, node_id, uuid in connection.execute(
        select(booking_devices.c.booking_id, booking_devices.c.node_id, booking_devices.c.uuid).where(
            booking_devices.c.booking_id.in_(chosen)
        )
    ).all():
        ref = refs.get((node_id, uuid))
        if ref is None:
            ref = refs[node_id, uuid] = DeviceRef(node_id, uuid)
        devices[booking_id].append(ref)
    return tuple(
        [
            Booking(
                id=number,
                title=title,
                comment=comment,
                owner_id=owner_id,
                owner_name=owner_name,
                group=group,
                devices=tuple(sorted(devices[number])),
                starts_at=starts_at,
                ends_at=ends_at,
                zone=zone,
                state=state,
                series_id=series_id,
                released_from=released_from,
                origin=origin,
                created_at=created_at,
                changed_at=changed_at,
                revision=revision,
            )
            for (
                number,
                title,
                comment,
                owner_id,
                owner_name,
                group,
                starts_at,
                ends_at,
                zone,
                state,
                series_id,
                released_from,
                origin,
                created_at,
                changed_at,
                revision,
            ) in rows
        ]
    )


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def describe(booking: Booking) -> str:
    """Sum a booking up for the audit log: no words of its holder's, which would outlive them there."""
    count = len(booking.devices)
    return (
        f"{count} device{'' if count == 1 else 's'}, {_time(booking.starts_at)} to {_time(booking.ends_at)}, "
        f"{booking.state}"
    )


def describe_change(before: Booking, after: Booking) -> str:
    """Tell the audit log what changed; of texts only that they did."""
    parts = []
    if before.state != after.state:
        parts.append(f"{before.state} → {after.state}")
    if before.starts_at != after.starts_at:
        parts.append(f"starts {_time(before.starts_at)} → {_time(after.starts_at)}")
    if before.ends_at != after.ends_at:
        parts.append(f"ends {_time(before.ends_at)} → {_time(after.ends_at)}")
    old, new = set(before.devices), set(after.devices)
    if old != new:
        parts.append(f"devices +{len(new - old)} −{len(old - new)}")
    if before.group != after.group:
        parts.append(f"group {before.group or 'none'} → {after.group or 'none'}")
    parts += [
        name
        for name, changed in (
            ("title", before.title != after.title),
            ("comment", before.comment != after.comment),
            ("holder's name", before.owner_name != after.owner_name),
        )
        if changed
    ]
    return "; ".join(parts)
