"""Times as people write them: ``3d 4h``, ``until friday 18:00``, ``tomorrow 9:00``, ``2026-11-20 18:00``.

Durations are exact: ``3d`` is 72 hours, also over a night on which the clocks change. Everything else is what a clock
on the wall shows in the person's zone. A wall-clock time that comes twice or never is not guessed at but refused, with
both readings offered. Weekdays and bare times are the next such ones, as a start also one of a few minutes ago;
``today`` and ``tomorrow`` count from now.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuherd.bookings.refusals import TimeChoice, UnclearTime, Unfit
from gpuherd.model.text import clean

__all__ = [
    "GRACE_SECONDS",
    "LATEST",
    "format_duration",
    "format_moment",
    "moments_of",
    "read_end",
    "read_start",
    "read_zone",
    "readings_of",
    "wall_of",
]

LATEST = 253_370_764_799
"""The end of the year 9998: a year of slack, so that every zone can show it."""
GRACE_SECONDS = 900
"""A start no longer ago than this means now: forms take a while to fill in."""
EXAMPLES = "3d 4h, 90m, 2 weeks, 18:00, tomorrow 9:00, friday 18:00, 2026-11-20 18:00"
MAX_LENGTH = 80

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(/[A-Za-z0-9_+-]{1,30}){0,3}", re.ASCII)
_LEADING = re.compile(r"^(?:(?:until|till|to|at|on|from|for|in)\s+)+")
_EPOCH = re.compile(r"\d{9,16}", re.ASCII)
_DURATION_PART = (
    r"(\d{1,6}(?:\.\d{1,6})?)\s*(w|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)"
)
_DURATION = re.compile(rf"{_DURATION_PART}(?:(?:\s*,\s*|\s+and\s+|\s*){_DURATION_PART})*", re.ASCII)
_UNIT_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_CLOCK = (
    r"(?P<clock>(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d{1,9})?)?(?:\s*(?P<half>am|pm))?"
    r"|(?P<bare>\d{1,2})\s*(?P<bare_half>am|pm)|noon)"
)
_OFFSET = r"(?P<offset>z|[+-]\d\d:?\d\d(?::\d\d)?)"
_DATED = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d)(?:(?:t|\s+|\s+at\s+){_CLOCK}(?:\s*{_OFFSET})?)?", re.ASCII)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = (
    r"(?P<day>today|tomorrow|mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:rs|rsday)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)"
)
_DAY_CLOCK = re.compile(rf"{_DAY}(?:,?\s+(?:at\s+)?{_CLOCK})?", re.ASCII)
_CLOCK_DAY = re.compile(rf"{_CLOCK},?\s+(?:on\s+)?{_DAY}", re.ASCII)
_CLOCK_ALONE = re.compile(_CLOCK, re.ASCII)


def read_zone(name: str, *, path: str = "zone") -> ZoneInfo:
    """Find an IANA time zone; ``Unfit`` names one that there is not."""
    if _ZONE.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # a folder of zones, or no zone at all: told below
    raise Unfit(
        "unknown_zone",
        f'there is no time zone "{clean(name, 60)}"; write an IANA name such as Europe/Berlin or UTC',
        path=path,
    )


def read_start(given: str | int, *, now: int, zone: ZoneInfo, path: str = "start") -> int:
    """Give the UTC second at which a booking begins; ``Unfit`` if it cannot be told.

    It may be past: of weekdays and bare times, one that was just now is meant, not the next a week or a day later.
    """
    after = now - GRACE_SECONDS
    return _bounded(_read(given, base=now, after=after, now=now, zone=zone, path=path), given, path)


def read_end(given: str | int, *, starts_at: int, now: int, zone: ZoneInfo, path: str = "end") -> int:
    """Give the UTC second at which a booking ends; durations, weekdays and bare times count from its start."""
    return _bounded(_read(given, base=starts_at, after=starts_at, now=now, zone=zone, path=path), given, path)


def format_moment(at: int, zone: ZoneInfo) -> str:
    """Write a moment as ISO 8601 with its offset: it reads back as the same second in every zone."""
    moment = datetime.fromtimestamp(at, zone)
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


def format_duration(seconds: int) -> str:
    """Write ``3d 4h``; reads back as the same number of seconds."""
    parts, rest = [], seconds
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, _UNIT_SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0m"


def wall_of(at: int, zone: ZoneInfo) -> datetime:
    """Give what a clock on the wall shows, without zone."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def readings_of(wall: datetime, zone: ZoneInfo) -> tuple[int, int]:
    """Read a wall-clock time with the offset before and after the nearest change of the clocks, the earlier first.

    Both are the same unless the time comes twice or never.
    """
    first, second = sorted(int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    return first, second


def moments_of(wall: datetime, zone: ZoneInfo) -> tuple[int, ...]:
    """Give the moments at which a clock on the wall shows this: one; two when it is put back; none when forward."""
    readings = dict.fromkeys(readings_of(wall, zone))
    return tuple(at for at in readings if wall_of(at, zone) == wall)


def _read(given: str | int, *, base: int, after: int, now: int, zone: ZoneInfo, path: str) -> int:
    """Read a time. ``base``: what durations count from; ``after``: what the next such time comes after."""
    if isinstance(given, int):
        return given
    text = _LEADING.sub("", " ".join(given.lower().split())) if len(given) <= MAX_LENGTH else ""
    if text == "now":
        return now
    if _EPOCH.fullmatch(text):
        return int(text)
    if _DURATION.fullmatch(text):
        return base + _duration_seconds(text)
    if found := _DATED.fullmatch(text):
        return _dated(found, given, zone, path)
    if found := _DAY_CLOCK.fullmatch(text) or _CLOCK_DAY.fullmatch(text) or _CLOCK_ALONE.fullmatch(text):
        return _next(found, given, after=after, now=now, zone=zone, path=path)
    raise Unfit(
        "unreadable_time",
        f'"{clean(given, 60)}" is not a time; write for example {EXAMPLES}',
        path=path,
    )


def _bounded(at: int, given: str | int, path: str) -> int:
    if 0 <= at <= LATEST:
        return at
    said = clean(str(given), 60)
    raise Unfit(
        "time_out_of_range",
        f"{said}: times lie between 1970 and 9998; numbers are UTC seconds, not milliseconds",
        path=path,
    )


def _duration_seconds(text: str) -> int:
    parts = re.findall(_DURATION_PART, text)
    return int(sum(Decimal(number) * _UNIT_SECONDS[unit[0]] for number, unit in parts))


def _clock_of(found: re.Match[str], given: str, path: str) -> timedelta:
    """Give the time of day as what has passed since midnight; 24:00 is the end of the day."""
    parts = found.groupdict()
    if parts["clock"] == "noon":
        return timedelta(hours=12)
    hour = int(parts["hour"] or parts["bare"])
    minute, second = int(parts["minute"] or 0), int(parts["second"] or 0)
    half = parts["half"] or parts["bare_half"]
    is_sound = minute < 60 and second < 60
    if half is not None:
        is_sound = is_sound and 1 <= hour <= 12
        hour = hour % 12 + (12 if half == "pm" else 0)
    since_midnight = timedelta(hours=hour, minutes=minute, seconds=second)
    if is_sound and since_midnight <= timedelta(days=1):
        return since_midnight
    raise Unfit(
        "unreadable_time",
        f'"{clean(given, 60)}" has no time of day; write for example {EXAMPLES}',
        path=path,
    )


def _needs_clock(given: str, path: str) -> Unfit:
    said = clean(given.strip(), 60)
    return Unfit("unreadable_time", f'"{said}" has no time of day; write "{said} 18:00"', path=path)


def _dated(found: re.Match[str], given: str, zone: ZoneInfo, path: str) -> int:
    if found["clock"] is None:
        raise _needs_clock(given, path)
    clock = _clock_of(found, given, path)
    try:
        day = date.fromisoformat(found["date"])
    except ValueError:
        message = (
            f"there is no day {found['date']} in the calendar; write the year, month and day as 2026-11-20"
        )
        raise Unfit("unreadable_time", message, path=path) from None
    if not 1970 <= day.year <= 9998:
        return -1 if day.year < 1970 else LATEST + 1
    wall = datetime.combine(day, time()) + clock
    if found["offset"] is None:
        return _only_moment(wall, zone, path)
    return int(wall.replace(tzinfo=_offset(found["offset"], given, path)).timestamp())


def _offset(text: str, given: str, path: str) -> timezone:
    if text == "z":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:] or 0))
    if int(digits[2:4]) > 59 or int(digits[4:] or 0) > 59 or offset >= timedelta(days=1):
        message = f'"{clean(given, 60)}" has no offset from UTC at its end, such as +01:00'
        raise Unfit("unreadable_time", message, path=path)
    return timezone(-offset if text[0] == "-" else offset)


def _next(found: re.Match[str], given: str, *, after: int, now: int, zone: ZoneInfo, path: str) -> int:
    if found["clock"] is None:
        raise _needs_clock(given, path)
    clock = _clock_of(found, given, path)
    day_name = found.groupdict().get("day")
    if day_name in ("today", "tomorrow"):
        day = wall_of(now, zone).date() + timedelta(days=day_name == "tomorrow")
        return _only_moment(datetime.combine(day, time()) + clock, zone, path, after=after)
    weekday = (
        None if day_name is None else next(n for n, day in enumerate(_DAYS) if day.startswith(day_name[:3]))
    )
    # From the day before: of its 24:00 and of clocks that skip a day.
    first = wall_of(after, zone).date() - timedelta(days=1)
    for days in range(10):
        day = first + timedelta(days=days)
        wall = datetime.combine(day, time()) + clock
        if weekday in (None, day.weekday()) and readings_of(wall, zone)[1] > after:
            return _only_moment(wall, zone, path, after=after)
    raise AssertionError("every time of day comes again within ten days")


def _only_moment(wall: datetime, zone: ZoneInfo, path: str, *, after: int = -1) -> int:
    """Give the one moment that is meant; of two, the second if the first has passed."""
    moments = moments_of(wall, zone)
    coming = [at for at in moments if at > after]
    if len(coming) == 1 or len(moments) == 1:
        return (coming or list(moments))[0]
    readings = readings_of(wall, zone)
    choices = tuple(TimeChoice(format_moment(at, zone), at) for at in readings)
    said = f"{wall:%H:%M} on {wall:%Y-%m-%d}"
    offered = f"write {choices[0].text} or {choices[1].text}"
    if moments:
        message = f"{said} occurs twice in {zone.key}, when the clocks go back; {offered}"
        raise UnclearTime("ambiguous_time", message, path=path, choices=choices)
    message = f"{said} does not exist in {zone.key}, when the clocks go forward; {offered}"
    raise UnclearTime("nonexistent_time", message, path=path, choices=choices)
