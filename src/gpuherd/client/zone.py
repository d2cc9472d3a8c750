"""The time zone of this machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["machine_zone", "zone_hint"]


def machine_zone() -> str | None:
    """Give the IANA name of this machine's zone, none if it cannot be told.

    A POSIX rule in ``TZ``, such as ``CET-1CEST``, has no such name: then that of the offset which holds now.
    """
    zone = _asked()
    if not zone:
        place = os.path.realpath("/etc/localtime")
        zone = place.partition("/zoneinfo/")[2].removeprefix("posix/")
        return zone if zone[:1].isalpha() else None
    if zone.startswith("/"):
        return zone.partition("/zoneinfo/")[2].removeprefix("posix/") or None
    return zone if _is_name(zone) else _fixed()


def zone_hint() -> str | None:
    """Say what becomes of a ``TZ`` that names no zone; none if there is nothing to say."""
    zone = _asked()
    if not zone or zone.startswith("/") or _is_name(zone):
        return None
    offset = datetime.now(UTC).astimezone().strftime("%z")
    used = f"UTC{offset[:3]}:{offset[3:5]}" if _fixed() else "the hub's zone"
    return (
        f"the hub does not know the time zone in TZ; times are in {used}. Give --zone, such as Europe/Berlin"
    )


def _asked() -> str:
    return os.environ.get("TZ", "").removeprefix(":")


def _is_name(zone: str) -> bool:
    if "/" in zone and zone[0].isalpha() and "," not in zone:
        return True  # this machine need not have the zone's file
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return zone in ("UTC", "GMT")
    return True


def _fixed() -> str | None:
    """Give the zone that always has the offset of now; there are none but for whole hours, and east of UTC is minus."""
    offset = datetime.now(UTC).astimezone().utcoffset() or timedelta()
    hours, rest = divmod(offset, timedelta(hours=1))
    return None if rest or not -12 <= hours <= 14 else f"Etc/GMT{-hours:+d}"
