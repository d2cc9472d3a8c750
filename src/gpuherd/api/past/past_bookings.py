"""Bookings of the past and those that run, and what a viewer calls their holders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from gpuherd.api.booking_memory import BookingMemory, People
from gpuherd.api.history_service import UsageFilter
from gpuherd.api.past.booked import BookedDevices, Holder, booked_devices
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.ranges import Range
from gpuherd.api.record_calls import RecordCalls
from gpuherd.fleet.names import Names
from gpuherd.model.bookings import Booking, BookingState
from gpuherd.model.errors import Failed
from gpuherd.records.bookings import BookingRecords

__all__ = ["LiveHolders", "PastBookings"]

NAMED_SECONDS = 180 * 86_400.0


_HELD: tuple[BookingState, ...] = ("active",)


class LiveHolders(Protocol):
    """The fleet as far as it knows what holders of bookings are called."""

    names: Names

    def public_holder(self, holder: str, users: Collection[str]) -> str:
        """Give what the holder of a booking is called in public."""


class PastBookings:
    """Bookings for reports. Used on the event loop."""

    def __init__(
        self,
        memory: BookingMemory,
        *,
        records: BookingRecords,
        calls: RecordCalls,
        people: People,
        live: LiveHolders,
        named_seconds: float = NAMED_SECONDS,
    ) -> None:
        """``named_seconds``: for how long use bears names; of before that it cannot be told whose it was."""
        self._memory = memory
        self._records = records
        self._calls = calls
        self._people = people
        self._live = live
        self._named_seconds = named_seconds

    async def booked(
        self, face: PastFace, span: Range, only: UsageFilter, *, now: float
    ) -> BookedDevices | None:
        """Give every device that was booked in a range; none if it cannot be told what became of them."""
        if span.start < now - self._named_seconds or only.job is not None:
            return None
        try:
            found = await self._calls.run(
                self._records.overlapping,
                starts_at=int(span.start),
                ends_at=int(span.end),
                states=_HELD,
            )
            # Who holds them is known here; all else is done elsewhere, as there may be many.
            holders = {_holding(booking): self._holder(face, booking) for booking in _distinct(found)}
            return await self._calls.run(
                booked_devices,
                found,
                span.start,
                span.end,
                holder_of=lambda booking: holders[_holding(booking)],
                is_wanted=_wanted(face, only),
            )
        except Failed:
            return None  # use can be told without the records; their own trouble is told elsewhere

    def reserved(self, face: PastFace, now: float) -> dict[str, int]:
        """Count the devices that are booked right now, by their holders."""
        counts: dict[str, int] = {}
        for booking in self._memory.window.between(int(now), int(now) + 1):
            if booking.state == "active":
                name = self._holder(face, booking).name
                counts[name] = counts.get(name, 0) + len(booking.devices)
        return counts

    def _holder(self, face: PastFace, booking: Booking) -> Holder:
        names = self._live.names
        users = self._memory.users_of(booking)
        person = names.person(users)
        owner = None if booking.owner_id is None else self._people.account(booking.owner_id)
        if not face.has_names:
            shown = self._live.public_holder(booking.owner_name, users)
        elif person is not None:
            shown = person
        elif owner is not None and booking.group is None and owner.name in users:
            shown = owner.name  # of someone with several names, the one they log in with
        else:
            shown = booking.owner_name
        if booking.group is not None:
            groups: tuple[str | None, ...] = (booking.group,)
        else:
            groups = owner.groups if owner is not None and owner.groups else (None,)
        return Holder(shown, groups, names.with_aliases(users))


def _holding(booking: Booking) -> tuple[str | None, str, str | None, str]:
    """Give what it depends on who holds a booking."""
    return booking.owner_id, booking.owner_name, booking.group, booking.origin


def _distinct(bookings: Iterable[Booking]) -> Iterable[Booking]:
    """Give one booking of each holder."""
    return {_holding(booking): booking for booking in bookings}.values()


def _wanted(face: PastFace, only: UsageFilter) -> Callable[[Holder, str, str], bool]:
    def is_wanted(holder: Holder, node_id: str, uuid: str) -> bool:
        return (
            (only.user is None or holder.name == only.user)
            and (only.group is None or only.group in holder.groups)
            and (only.node is None or node_id == only.node)
            and (only.device is None or only.device in (uuid, f"{node_id}:{uuid}"))
            and (only.type is None or face.device_type(node_id, uuid) == only.type)
        )

    return is_wanted
