"""Ranges of time that have been: ``from`` and ``to`` as people and programs write them.

What has no offset is what a clock on the wall of the zone showed. Where the clocks were changed and that can be read in
two ways, the range is the wider one: unlike a booking, one that is an hour too long harms nobody.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import Wanted
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.times import read_zone, readings_of, wall_of
from gpuherd.model.history import UsageStep
from gpuherd.model.text import clean

__all__ = ["MAX_RANGE_SECONDS", "Range", "known_zone", "month_range", "read_range", "steps_of"]

DAY_SECONDS = 86_400.0
MAX_RANGE_SECONDS = 20 * 366 * DAY_SECONDS
MAX_STEPS = 2_000
EXAMPLES = "1791234000, 2026-10-01, 2026-10-01T08:00+02:00, 36h or 7d"

_SECONDS = re.compile(r"0|\d{9,12}(?:\.\d{1,9})?", re.ASCII)
_AGO = re.compile(r"-?(\d{1,5})\s*(m|min|h|d|w|y)(?:\s+ago)?", re.ASCII)
_UNIT_SECONDS = {"m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 365 * 86_400}
_MONTH = re.compile(r"(\d{4})-(\d\d)", re.ASCII)
_DAY = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|z|[+\s-]\d\d:?\d\d)?)?", re.ASCII
)


class Range(NamedTuple):
    """From when to when, UTC epoch seconds; the end is not in it."""

    start: float
    end: float

    def snapped(self, seconds: float) -> Range:
        """Widen it to multiples of so many seconds, so that questions a moment apart are the same."""
        return Range(self.start // seconds * seconds, -(-self.end // seconds) * seconds)


def known_zone(name: str | None, default: str) -> ZoneInfo:
    """Give the zone that is named, or else the hub's; ``HttpError`` 400 if there is no such zone."""
    try:
        return read_zone(name or default)
    except Unfit as error:
        raise HttpError(400, error.code, str(error), path="zone") from None


def read_range(wanted: Wanted, *, now: float, zone: ZoneInfo) -> Range:
    """Give the range that is meant, without what lies ahead; ``HttpError`` 400 ``bad_range`` if there is none."""
    end = now if wanted.until is None else _moment(wanted.until, "to", now=now, zone=zone)
    end = min(end, now)
    start = end - DAY_SECONDS if wanted.since is None else _moment(wanted.since, "from", now=now, zone=zone)
    start = max(0.0, start)
    if start >= end:
        problem = "lies ahead" if start >= now else "is not before the end"
        raise _bad(
            f"the start {problem}; write for example from=7d, or from=2026-10-01&to=2026-10-07", "from"
        )
    if end - start > MAX_RANGE_SECONDS:
        raise _bad("the range is longer than 20 years; numbers are UTC seconds, not milliseconds", "from")
    return Range(start, end)


def month_range(month: str, zone: ZoneInfo) -> Range:
    """Give a month such as ``2026-10`` from its first midnight in the zone to its last."""
    found = _MONTH.fullmatch(month)
    if found is None or not (1970 < int(found[1]) < 9000 and 1 <= int(found[2]) <= 12):
        raise HttpError(400, "bad_month", "write the month as 2026-10", path="month")
    first = date(int(found[1]), int(found[2]), 1)
    return Range(_midnight(first, zone), _midnight(_next_month(first), zone))


def steps_of(span: Range, step: UsageStep, zone: ZoneInfo) -> list[float]:
    """Give the bounds of the hours, days, weeks or months that a range touches, by the zone's calendar.

    Days on which the clocks change have 23 or 25 hours. ``HttpError`` 400 ``bad_range`` if there are too many.
    """
    first = wall_of(int(span.start), zone)
    if step == "hour":
        begin = span.start // 3600 * 3600
        count = int(-(-(span.end - begin) // 3600))
        _check_count(count, step)
        return [begin + 3600.0 * number for number in range(count + 1)]
    day = first.date()
    if step == "week":
        day -= timedelta(days=day.weekday())
    if step == "month":
        day = day.replace(day=1)
    edges = [_midnight(day, zone)]
    while edges[-1] < span.end:
        day = _next_month(day) if step == "month" else day + timedelta(days=7 if step == "week" else 1)
        edges.append(_midnight(day, zone))
        _check_count(len(edges), step)
    return edges


def _check_count(count: int, step: UsageStep) -> None:
    if count > MAX_STEPS:
        raise _bad(f"this would be more than {MAX_STEPS:,} steps; choose a longer step than a {step}", "step")


def _bad(message: str, path: str) -> HttpError:
    return HttpError(400, "bad_range", message, path=path)


def _moment(text: str, path: str, *, now: float, zone: ZoneInfo) -> float:
    """Read one bound; a day or month as an end means its end."""
    said, is_end = text.strip(), path == "to"
    if _SECONDS.fullmatch(said):
        return float(said)
    if ago := _AGO.fullmatch(said):
        return now - int(ago[1]) * _UNIT_SECONDS[ago[2]]
    today = wall_of(int(now), zone).date()
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        if said == "now":
            return now
        if said in days:
            return _day(days[said], zone, is_end=is_end)
        if (month := _MONTH.fullmatch(said)) and 1970 <= int(month[1]) <= 9000:
            first = date(int(month[1]), int(month[2]), 1)
            return _midnight(_next_month(first) if is_end else first, zone)
        if (found := _DAY.fullmatch(said)) and 1970 <= int(said[:4]) <= 9000:
            day = date.fromisoformat(found[1])
            if found[2] is None:
                return _day(day, zone, is_end=is_end)
            return _at(datetime.combine(day, time.fromisoformat(found[2])), found[3], zone, is_end=is_end)
    except ValueError:
        pass  # a day or an hour that no calendar or clock has: told below
    raise _bad(f'"{clean(text, 60)}" is not a time; write for example {EXAMPLES}', path)


def _at(wall: datetime, offset: str | None, zone: ZoneInfo, *, is_end: bool) -> float:
    if offset is None:
        return readings_of(wall, zone)[1 if is_end else 0] + wall.microsecond / 1e6
    if offset in "Zz":
        return wall.replace(tzinfo=UTC).timestamp()
    # In an address, a plus sign that was not escaped has become a space.
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    east = timedelta(hours=hours, minutes=minutes)
    return wall.replace(tzinfo=timezone(-east if offset[0] == "-" else east)).timestamp()


def _day(day: date, zone: ZoneInfo, *, is_end: bool) -> float:
    return _midnight(day + timedelta(days=1) if is_end else day, zone)


def _midnight(day: date, zone: ZoneInfo) -> float:
    """Give the first moment of a day; where clocks skip midnight, that of the skip."""
    wall = datetime.combine(day, time())
    first, second = readings_of(wall, zone)
    return float(first if wall_of(first, zone) == wall else second)


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
