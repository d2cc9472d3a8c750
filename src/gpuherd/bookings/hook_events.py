"""What happens to bookings, as events: which are due for a hook, and what is told of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gpuherd.bookings.hook_settings import HookEvent
from gpuherd.bookings.views import BookedDevice
from gpuherd.model.bookings import Booking, BookingUse, DeviceRef

__all__ = ["LATE_SECONDS", "Event", "Violation", "Violations", "due_events", "event_body", "event_id"]

LATE_SECONDS = 86_400
"""An event that is older than this is no news any more; a hub that was away tells younger ones late."""
_VIOLATIONS: frozenset[BookingUse] = frozenset({"others", "shared"})


class Violation(Struct, frozen=True, kw_only=True):
    """How a booking is broken."""

    since: Annotated[float, Meta(description="UTC epoch seconds.")]
    devices: tuple[DeviceRef, ...]


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened to one booking; it happens once."""

    kind: HookEvent
    booking: Booking
    at: float
    violation: Violation | None = None

    @property
    def id(self) -> str:
        """Give what tells this event from all others of this hub."""
        return event_id(self.booking.id, self.kind)


def event_id(booking_id: int, kind: HookEvent) -> str:
    """Give an event's id."""
    return f"booking-{booking_id}-{kind}"


class Violations:
    """Since when which bookings are broken. What cannot be told breaks no booking, and mends none."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def take(self, uses: Mapping[tuple[int, DeviceRef], BookingUse], now: float) -> dict[int, Violation]:
        """Take what happens on every device of every booking that runs now, and give those that are broken."""
        broken: dict[int, list[DeviceRef]] = {}
        unknown: set[int] = set()
        for (booking_id, device), use in uses.items():
            if use in _VIOLATIONS:
                broken.setdefault(booking_id, []).append(device)
            elif use == "unknown":
                unknown.add(booking_id)
        self._since = {
            booking_id: self._since.get(booking_id, now)
            for booking_id in (*broken, *(unknown & self._since.keys() - broken.keys()))
        }
        return {
            booking_id: Violation(since=self._since[booking_id], devices=tuple(sorted(devices)))
            for booking_id, devices in broken.items()
        }


def due_events(
    bookings: Iterable[Booking],
    violations: Mapping[int, Violation],
    *,
    on: Collection[HookEvent],
    since: float,
    violation_after_seconds: float,
    now: float,
) -> list[Event]:
    """Give everything a hook is to be told by now, whether it was told already or not; earliest first.

    ``since``: when the hook was set up. What happened before is none of its business.
    """
    earliest = max(since, now - LATE_SECONDS)
    due: list[Event] = []
    for booking in bookings:
        if booking.state != "active":
            continue
        if "start" in on and earliest <= booking.starts_at <= now:
            due.append(Event(kind="start", booking=booking, at=booking.starts_at))
        if "end" in on and earliest <= booking.ends_at <= now:
            due.append(Event(kind="end", booking=booking, at=booking.ends_at))
        violation = violations.get(booking.id)
        if "violation" in on and violation is not None and now - violation.since >= violation_after_seconds:
            due.append(Event(kind="violation", booking=booking, at=violation.since, violation=violation))
    return sorted(due, key=lambda event: (event.at, event.booking.id, event.kind != "start"))


class _ToldBooking(Struct, frozen=True, kw_only=True):
    id: int
    title: str
    comment: str
    holder: str
    group: str | None
    origin: str
    starts_at: int
    ends_at: int
    released_from: int | None
    zone: str
    devices: tuple[BookedDevice, ...]


class _ToldViolation(Struct, frozen=True, kw_only=True):
    since: float
    users: tuple[str, ...]
    devices: tuple[BookedDevice, ...]


class _Told(Struct, frozen=True, kw_only=True):
    version: int = 1
    id: str
    event: HookEvent
    at: float
    hub: str
    booking: _ToldBooking
    violation: _ToldViolation | None


def event_body(
    event: Event,
    *,
    hub: str,
    label: Callable[[DeviceRef], BookedDevice],
    users: Callable[[DeviceRef], Iterable[str]],
) -> bytes:
    """Write what a hook is told, as JSON.

    ``users`` gives whose processes are on a device; the holder's own may be among them.
    """
    booking, violation = event.booking, event.violation
    return msgspec.json.encode(
        _Told(
            id=event.id,
            event=event.kind,
            at=event.at,
            hub=hub,
            booking=_ToldBooking(
                id=booking.id,
                title=booking.title,
                comment=booking.comment,
                holder=booking.owner_name,
                group=booking.group,
                origin=booking.origin,
                starts_at=booking.starts_at,
                ends_at=booking.ends_at,
                released_from=booking.released_from,
                zone=booking.zone,
                devices=tuple(label(device) for device in booking.devices),
            ),
            violation=None
            if violation is None
            else _ToldViolation(
                since=violation.since,
                users=tuple(sorted({user for device in violation.devices for user in users(device)})),
                devices=tuple(label(device) for device in violation.devices),
            ),
        )
    )
