"""Times, sizes and shares as people read them on the page."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

__all__ = ["bytes_text", "long_moment", "machine_moment", "percent", "short_moment", "span_text"]

GIB = 2**30


def machine_moment(at: float) -> str:
    """Write a moment for programs: ISO 8601 in UTC."""
    return _date(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def long_moment(at: float, zone: tzinfo | None) -> str:
    """Write a moment with its day and zone, such as ``Mon 2026-11-16 17:02:11 CET (UTC+01:00)``.

    No zone is this machine's.
    """
    moment = _date(at, zone)
    offset = moment.strftime("%z")
    name = moment.strftime("%Z")
    written = moment.strftime("%a %Y-%m-%d %H:%M:%S")
    if name == "UTC":
        return f"{written} UTC"
    return f"{written} {name} (UTC{offset[:3]}:{offset[3:5]})"


def short_moment(at: float, now: float, zone: tzinfo | None) -> str:
    """Write a moment as glancing people need it: the time, and before it the day if that is another."""
    moment = _date(at, zone)
    is_today = moment.date() == _date(now, zone).date()
    return moment.strftime("%H:%M" if is_today else "%a %Y-%m-%d %H:%M")


def span_text(seconds: float) -> str:
    """Write how long something takes or has lasted, in its largest unit."""
    for unit, size, least in (("d", 86_400, 172_800), ("h", 3600, 7200), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def bytes_text(count: int | None) -> str:
    """Write an amount of memory in GiB; unknown is a question mark."""
    if count is None:
        return "?"
    return f"{count / GIB:.1f}" if count < 10 * GIB else f"{count / GIB:.0f}"


def percent(ratio: float | None) -> str:
    """Write a share; unknown is a question mark, never 0 %."""
    return "? %" if ratio is None else f"{100 * ratio:.0f} %"


def _date(at: float, zone: tzinfo | None) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
