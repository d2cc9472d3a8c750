"""Which devices are booked when, and by whom: what someone who chooses has to stay clear of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from gpuherd.client.herd_views import Gpu
from gpuherd.client.views import Timeline

__all__ = ["BookedSpan", "BookedTimes", "free_from"]


class BookedSpan(Struct, frozen=True, kw_only=True):
    """One booking on one device, UTC epoch seconds; the end is free again."""

    booking_id: int
    starts_at: int
    ends_at: int
    holder: str = ""
    is_own: bool = False


class BookedTimes:
    """The bookings of all devices, from the timeline and from the herd itself.

    The herd tells of each device only what runs and what comes next, and not whose it is to us; the timeline tells all.
    Where both tell, the stricter word counts: a booking is one's own only if the timeline says so.
    """

    def __init__(self, timeline: Timeline | None = None) -> None:
        self._spans: dict[tuple[str, str], list[BookedSpan]] = {}
        self._own: set[int] = set()
        self._quiet = {
            (device.node_id, device.uuid)
            for device in (() if timeline is None else timeline.devices)
            if device.is_quiet
        }
        for booking in () if timeline is None else timeline.bookings:
            span = BookedSpan(
                booking_id=booking.id,
                starts_at=booking.starts_at,
                ends_at=booking.ends_at,
                holder=booking.holder,
                is_own=booking.is_own,
            )
            if booking.is_own:
                self._own.add(booking.id)
            for place in booking.devices:
                if timeline is not None and 0 <= place < len(timeline.devices):
                    device = timeline.devices[place]
                    self._spans.setdefault((device.node_id, device.uuid), []).append(span)

    def is_quiet(self, gpu: Gpu) -> bool:
        """Tell whether a device is kept out of booking."""
        return (gpu.node_id, gpu.uuid) in self._quiet

    def of(self, gpu: Gpu) -> list[BookedSpan]:
        """Give the bookings of a device by their start, those of the GPU that a slice is cut from included."""
        found: dict[int, BookedSpan] = {}
        for uuid in (gpu.facts.parent_uuid, gpu.uuid):
            if uuid is not None:
                found |= {span.booking_id: span for span in self._spans.get((gpu.node_id, uuid), ())}
        for booking in gpu.bookings:
            if booking.id not in found and booking.phase != "past":
                found[booking.id] = BookedSpan(
                    booking_id=booking.id,
                    starts_at=booking.starts_at,
                    ends_at=booking.ends_at,
                    holder=booking.holder,
                    is_own=booking.id in self._own,
                )
        return sorted(found.values(), key=lambda span: (span.starts_at, span.booking_id))

    def between(self, gpu: Gpu, starts_at: float, ends_at: float) -> Iterator[BookedSpan]:
        """Give those bookings of a device that touch a time."""
        for span in self.of(gpu):
            if span.starts_at < ends_at and span.ends_at > starts_at:
                yield span


def free_from(spans: Iterable[BookedSpan], since: float, seconds: float) -> float:
    """Tell from when on a device with these bookings of others, sorted by start, is not booked for so long."""
    moment = since
    for span in spans:
        if span.is_own or span.ends_at <= moment:
            continue
        if span.starts_at - moment >= seconds:
            break
        moment = span.ends_at
    return moment
