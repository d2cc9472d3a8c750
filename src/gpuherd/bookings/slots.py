"""When so many devices are free at once: a sweep over the gaps between bookings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuherd.model.bookings import Booking, DeviceRef

__all__ = ["Slot", "Span", "booked_spans", "free_starts", "is_free", "next_free"]


class Span(NamedTuple):
    """From when to when, UTC seconds; the end is free again."""

    starts_at: int
    ends_at: int


class Slot(NamedTuple):
    """A time at which enough devices are free, and until when each of them is (none: for good)."""

    starts_at: int
    free_until: dict[DeviceRef, int | None]


def booked_spans(bookings: Iterable[Booking]) -> dict[DeviceRef, list[Span]]:
    """Sort bookings by device and start."""
    spans: dict[DeviceRef, list[Span]] = {}
    for booking in bookings:
        span = Span(booking.starts_at, booking.ends_at)
        for device in booking.devices:
            spans.setdefault(device, []).append(span)
    for of_device in spans.values():
        of_device.sort()
    return spans


def is_free(spans: Sequence[Span], starts_at: int, ends_at: int) -> bool:
    """Tell whether nothing of a device's bookings, sorted and apart, touches this time."""
    place = bisect_right(spans, (starts_at, ends_at))
    return (place == 0 or spans[place - 1].ends_at <= starts_at) and (
        place == len(spans) or spans[place].starts_at >= ends_at
    )


def _gaps(spans: Sequence[Span], since: int, seconds: int) -> list[tuple[int, int | None]]:
    """Give the gaps from ``since`` on that are long enough; the last one has no end."""
    gaps: list[tuple[int, int | None]] = []
    free_from = since
    for span in spans:
        if span.starts_at - free_from >= seconds:
            gaps.append((free_from, span.starts_at))
        free_from = max(free_from, span.ends_at)
    gaps.append((free_from, None))
    return gaps


def free_starts(
    spans: Mapping[DeviceRef, Sequence[Span]],
    devices: Sequence[DeviceRef],
    *,
    count: int,
    seconds: int,
    since: int,
    until: int,
    limit: int,
) -> list[Slot]:
    """Find the times from ``since`` to ``until`` at which ``count`` of the devices become free for so long.

    A slot is told once, when it begins; the next one begins after too few were free in between.
    """
    # A device may be taken from the begin of a gap to `seconds` before its end: +1 and, a second later, -1.
    steps: list[tuple[int, int, int]] = []
    gaps: list[tuple[int, int | None]] = []
    for place, device in enumerate(devices):
        for begin, end in _gaps(spans.get(device, ()), since, seconds):
            if begin <= until:
                steps.append((begin, 1, len(gaps)))
                if end is not None:
                    steps.append((end - seconds + 1, 0, len(gaps)))
                gaps.append((place, end))
    steps.sort()  # at one moment, what ends before what begins
    open_gaps: dict[int, None] = {}
    slots: list[Slot] = []
    was_enough, position = False, 0
    while position < len(steps) and len(slots) < limit:
        moment = steps[position][0]
        while position < len(steps) and steps[position][0] == moment:
            _, is_begin, gap = steps[position]
            if is_begin:
                open_gaps[gap] = None
            else:
                del open_gaps[gap]
            position += 1
        is_enough = len(open_gaps) >= count
        if is_enough and not was_enough:
            slots.append(Slot(moment, {devices[gaps[gap][0]]: gaps[gap][1] for gap in sorted(open_gaps)}))
        was_enough = is_enough
    return slots


def next_free(
    spans: Mapping[DeviceRef, Sequence[Span]],
    devices: Sequence[DeviceRef],
    *,
    seconds: int,
    since: int,
    until: int,
) -> int | None:
    """Find when all of the devices are free for so long; none if not until then."""
    found = free_starts(
        spans, devices, count=len(devices), seconds=seconds, since=since, until=until, limit=1
    )
    return found[0].starts_at if found else None
