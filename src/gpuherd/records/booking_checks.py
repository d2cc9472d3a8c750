"""What is looked at before a booking is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, and_, func, select, tuple_

from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.records.booking_limits import BookedSpan
from gpuherd.records.booking_rows import HOLDING, BookingDraft, Conflict, read_bookings
from gpuherd.records.tables import booking_devices, bookings

__all__ = [
    "check_change",
    "check_draft",
    "during",
    "is_id",
    "known_booking",
    "of_devices",
    "refuse_clashing_drafts",
    "refuse_conflicts",
    "spans_ahead",
]

CONFLICTS_SHOWN = 100
"""Bookings in the way that are told; more would only be scrolled past."""


def during(starts_at: int, ends_at: int) -> ColumnElement[bool]:
    return and_(booking_devices.c.starts_at < ends_at, booking_devices.c.ends_at > starts_at)


def of_devices(devices: Collection[DeviceRef]) -> ColumnElement[bool]:
    return tuple_(booking_devices.c.node_id, booking_devices.c.uuid).in_(
        [(device.node_id, device.uuid) for device in devices]
    )


def refuse_conflicts(
    connection: Connection, devices: Sequence[DeviceRef], starts_at: int, ends_at: int, but: int = 0
) -> None:
    """Raise ``Conflict`` if someone holds one of these devices then; the booking ``but`` does not count."""
    found = connection.execute(
        select(booking_devices.c.booking_id, booking_devices.c.node_id, booking_devices.c.uuid)
        .where(
            of_devices(devices),
            booking_devices.c.holds,
            during(starts_at, ends_at),
            booking_devices.c.booking_id != but,
        )
        .order_by(booking_devices.c.starts_at, booking_devices.c.booking_id)
    ).all()
    if found:
        ids = list(dict.fromkeys(row.booking_id for row in found))[:CONFLICTS_SHOWN]
        raise Conflict(
            read_bookings(connection, bookings.c.id.in_(ids)),
            tuple(sorted({DeviceRef(row.node_id, row.uuid) for row in found})),
        )


def check_draft(draft: BookingDraft) -> None:
    if not draft.devices:
        raise Refused("no_devices", "a booking needs at least one device")
    if draft.ends_at <= draft.starts_at:
        raise Refused("reversed", "a booking must end after it starts")


def refuse_clashing_drafts(drafts: Sequence[BookingDraft]) -> None:
    """Refuse drafts that stand in each other's way."""
    until: dict[DeviceRef, int] = {}
    holding = [draft for draft in drafts if draft.state in HOLDING]
    for draft in sorted(holding, key=lambda draft: draft.starts_at):
        if clashing := [device for device in draft.devices if until.get(device, 0) > draft.starts_at]:
            raise Conflict((), tuple(sorted(set(clashing))))
        until.update(dict.fromkeys(draft.devices, draft.ends_at))


def check_change(before: Booking, after: Booking, now: float) -> None:
    if not after.devices:
        raise Refused("no_devices", "a booking needs at least one device")
    if after.ends_at <= after.starts_at:
        raise Refused("reversed", "a booking must end after it starts")
    if before.ends_at <= now:
        raise Refused("past", "this booking is over; make a new one")
    if before.starts_at <= now and after.starts_at != before.starts_at:
        raise Refused("past", "this booking has started; its start cannot be changed")


def known_booking(connection: Connection, booking_id: int) -> Booking:
    found = read_bookings(connection, bookings.c.id == booking_id) if is_id(booking_id) else ()
    if not found:
        raise Refused("unknown_booking", "there is no such booking")
    return found[0]


def is_id(number: int) -> bool:
    return 0 < number < 2**31


def spans_ahead(connection: Connection, owner_id: str, now: int, but: int = 0) -> list[BookedSpan]:
    """Give the times and device counts of what someone holds from now on; the booking ``but`` does not count."""
    devices = (
        select(func.count())
        .select_from(booking_devices)
        .where(booking_devices.c.booking_id == bookings.c.id)
        .scalar_subquery()
    )
    query = select(bookings.c.starts_at, bookings.c.ends_at, devices).where(
        bookings.c.owner_id == owner_id, bookings.c.holds, bookings.c.ends_at > now, bookings.c.id != but
    )
    return [BookedSpan(*row) for row in connection.execute(query).all()]
