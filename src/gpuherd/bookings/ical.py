"""Bookings as an iCalendar feed (RFC 5545), for the calendar that someone has already.

Times are UTC, so no zone has to be described. An event's UID never changes and its SEQUENCE only grows, so calendars
follow changes; what was cancelled stays for a while as cancelled, so that they learn of it. The same bookings always
give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import cast

from icalendar import Calendar, Event
from msgspec import Struct

from gpuherd import __version__
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.text import clean, clip

__all__ = [
    "CANCELLED_SHOWN_SECONDS",
    "PAST_SHOWN_SECONDS",
    "CalendarFeed",
    "calendar_etag",
    "is_shown",
    "write_calendar",
]

PAST_SHOWN_SECONDS = 366 * 86_400
CANCELLED_SHOWN_SECONDS = 30 * 86_400
REFRESH = timedelta(minutes=15)
MAX_EVENTS = 1_000
"""Of more, the latest: calendar programs read all of it every few minutes."""
KEPT_EVENTS = 4_096
"""Writing one takes 0.6 ms, and most are asked for again unchanged."""
MAX_DEVICES_NAMED = 50
TITLE_LENGTH = 200
DESCRIPTION_LENGTH = 4_000
_STATUS = {"active": "CONFIRMED", "pending": "TENTATIVE", "cancelled": "CANCELLED", "refused": "CANCELLED"}


class CalendarFeed(Struct, frozen=True, kw_only=True):
    """What a feed is called and what its events are called by."""

    name: str
    hub: str
    """Tells this hub's events from another's; never changes."""
    device_name: Callable[[DeviceRef], str]
    """Gives what people call a device."""
    owner_id: str | None = None
    """Whose calendar it is, if it is someone's: events of others then say whose they are, and all if it is nobody's."""


def is_shown(booking: Booking, now: float) -> bool:
    """Tell whether a booking belongs into a feed: not older than a year, and not cancelled long ago."""
    if booking.ends_at < now - PAST_SHOWN_SECONDS:
        return False
    is_off = booking.state in ("cancelled", "refused")
    return not is_off or booking.changed_at >= now - CANCELLED_SHOWN_SECONDS


def write_calendar(bookings: Iterable[Booking], feed: CalendarFeed, now: float) -> bytes:
    """Write the feed."""
    calendar = Calendar()
    calendar.add("prodid", f"-//gpuherd//gpuherd {__version__}//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("method", "PUBLISH")
    name = clean(feed.name, TITLE_LENGTH)
    calendar.add("name", name)
    calendar.add("x-wr-calname", name)
    calendar.add("refresh-interval", REFRESH, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", "PT15M")
    shown = sorted(
        (booking for booking in bookings if is_shown(booking, now)),
        key=lambda booking: (booking.ends_at, booking.id),
    )
    head, end, tail = cast("bytes", calendar.to_ical()).partition(b"END:VCALENDAR")
    return head + b"".join(_event(booking, feed) for booking in shown[-MAX_EVENTS:]) + end + tail


def calendar_etag(content: bytes) -> str:
    """Give the entity tag of a feed as it stands in a header."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _event(booking: Booking, feed: CalendarFeed) -> bytes:
    return _written(
        booking,
        feed.hub,
        _summary(booking, feed),
        clip(_places(booking, feed), TITLE_LENGTH),
        _description(booking, feed),
    )


@lru_cache(maxsize=KEPT_EVENTS)
def _written(booking: Booking, hub: str, summary: str, location: str, description: str) -> bytes:
    changed = datetime.fromtimestamp(int(booking.changed_at), UTC)
    event = Event()
    event.add("uid", f"booking-{booking.id}@{hub}.gpuherd")
    # Without a question and answer between calendars, this is when the event was last revised.
    event.add("dtstamp", changed)
    event.add("last-modified", changed)
    event.add("created", datetime.fromtimestamp(int(booking.created_at), UTC))
    event.add("sequence", min(booking.revision, 2**31 - 1))
    event.add("dtstart", datetime.fromtimestamp(booking.starts_at, UTC))
    event.add("dtend", datetime.fromtimestamp(booking.ends_at, UTC))
    event.add("status", _STATUS[booking.state])
    # Having a GPU does not keep a person from going to lunch.
    event.add("transp", "TRANSPARENT")
    event.add("summary", summary)
    event.add("location", location)
    event.add("description", description)
    return cast("bytes", event.to_ical())


def _summary(booking: Booking, feed: CalendarFeed) -> str:
    title = clean(booking.title, TITLE_LENGTH)
    if not title:
        title = _places(booking, feed, limit=2)
    if feed.owner_id is None or booking.owner_id != feed.owner_id:
        title = f"{clean(booking.owner_name, TITLE_LENGTH)}: {title}"
    return clip(f"{title} (pending approval)" if booking.state == "pending" else title, 2 * TITLE_LENGTH)


def _places(booking: Booking, feed: CalendarFeed, limit: int = 8) -> str:
    names = [clean(feed.device_name(device)) for device in booking.devices[:limit]]
    more = len(booking.devices) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _description(booking: Booking, feed: CalendarFeed) -> str:
    lines = [clean(line, DESCRIPTION_LENGTH) for line in booking.comment.splitlines()]
    lines += [""] if lines else []
    lines.append(f"Holder: {clean(booking.owner_name)}")
    lines += [f"Group: {clean(booking.group)}"] if booking.group is not None else []
    lines.append(f"Devices: {_places(booking, feed, limit=MAX_DEVICES_NAMED)}")
    if booking.released_from is not None:
        lines.append("Released early")
    lines.append(f"Booking {booking.id}")
    return clip("\n".join(lines), DESCRIPTION_LENGTH)
