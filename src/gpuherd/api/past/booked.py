"""Booked against used: whose bookings they were, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from gpuherd.api.past.faces import PastFace
from gpuherd.history.usage.asking import BookedSpan, BookedUse, UsageReader
from gpuherd.model.bookings import Booking
from gpuherd.model.history import BookingUsage, UsageKey

__all__ = ["BookedDevices", "Holder", "booked_devices", "booking_keys"]

HOUR = 3600.0
PORTION_SECONDS = 3_000 * 86_400.0
"""Devices × time that are looked at at once: some hundred thousand rows."""
Key = str | tuple[str, str] | None


class Holder(Struct, frozen=True):
    """Who holds a booking."""

    name: str
    """What the viewer calls them, as a user."""
    groups: tuple[str | None, ...]
    users: frozenset[str]
    """On the nodes, as nodes and aliases call them."""


class BookedDevices(Struct, frozen=True):
    """One device of each booking in a range, each with its holder."""

    spans: tuple[BookedSpan, ...]
    holders: tuple[Holder, ...]

    def ask(self, reader: UsageReader) -> tuple[BookedUse, ...]:
        """Find out what became of them, in the order of the spans. Blocking."""
        found: dict[int, BookedUse] = {}
        for places in self._portions():
            uses = reader.booked([self.spans[place] for place in places])
            found.update(zip(places, uses, strict=True))
        return tuple(found[place] for place in range(len(self.spans)))

    def _portions(self) -> Iterator[list[int]]:
        """Give the places of spans to be asked for together: neighbours in time, and not too many days of devices.

        Everything that was on a device between the first begin and the last end is looked at for them.
        """
        portion: list[int] = []
        devices: set[tuple[str, str]] = set()
        start = end = 0.0
        for place in sorted(range(len(self.spans)), key=lambda place: self.spans[place].start):
            span = self.spans[place]
            wider = max(end, span.end)
            count = len(devices | {(span.node_id, span.uuid)})
            if portion and count * (wider - start) > PORTION_SECONDS:
                yield portion
                portion, devices, wider = [], set(), span.end
            if not portion:
                start = span.start
            portion.append(place)
            devices.add((span.node_id, span.uuid))
            end = wider
        if portion:
            yield portion


def booked_devices(
    bookings: Iterable[Booking],
    start: float,
    end: float,
    *,
    holder_of: Callable[[Booking], Holder],
    is_wanted: Callable[[Holder, str, str], bool],
) -> BookedDevices:
    """Cut bookings to a range. ``is_wanted`` is asked for the holder, node and UUID of each device."""
    spans, holders = [], []
    for booking in bookings:
        first, last = max(float(booking.starts_at), start), min(float(booking.ends_at), end)
        if first >= last:
            continue
        holder = holder_of(booking)
        for device in booking.devices:
            if is_wanted(holder, device.node_id, device.uuid):
                spans.append(
                    BookedSpan(
                        id=booking.id,
                        users=holder.users,
                        node_id=device.node_id,
                        uuid=device.uuid,
                        start=first,
                        end=last,
                    )
                )
                holders.append(holder)
    return BookedDevices(tuple(spans), tuple(holders))


def booking_keys(by: UsageKey, face: PastFace, holder: Holder, use: BookedUse) -> tuple[Key, ...]:
    """Give the rows of a report that a booked device belongs to; a device whose type is not known any more to none."""
    match by:
        case "user":
            return (holder.name,)
        case "group":
            return holder.groups
        case "node":
            return (use.node_id,)
        case "device":
            return ((use.node_id, use.uuid),)
        case "type":
            kind = face.device_type(use.node_id, use.uuid)
            return () if kind is None else (kind,)
        case "job":
            return ()


def summed(uses: Collection[BookedUse]) -> BookingUsage:
    """Add up."""
    return BookingUsage(
        booked_hours=sum(use.booked_seconds for use in uses) / HOUR,
        used_hours=sum(use.used_seconds for use in uses) / HOUR,
        others_hours=sum(use.others_seconds for use in uses) / HOUR,
        unused_hours=sum(use.unused_seconds for use in uses) / HOUR,
    )


def by_key(
    by: UsageKey, face: PastFace, holders: Sequence[Holder], uses: Sequence[BookedUse]
) -> dict[Key, BookingUsage]:
    """Add up by the rows of a report."""
    found: dict[Key, list[BookedUse]] = {}
    for holder, use in zip(holders, uses, strict=True):
        for key in booking_keys(by, face, holder, use):
            found.setdefault(key, []).append(use)
    return {key: summed(group) for key, group in found.items()}
