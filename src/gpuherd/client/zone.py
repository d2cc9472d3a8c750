"""The time zone of this machine."""

from __future__ import annotations

import os

__all__ = ["machine_zone"]


def machine_zone() -> str | None:
    """Give the IANA name of this machine's zone, none if it cannot be told."""
    zone = os.environ.get("TZ", "").removeprefix(":")
    if not zone:
        place = os.path.realpath("/etc/localtime")
        zone = place.partition("/zoneinfo/")[2].removeprefix("posix/")
    return zone if zone and not zone.startswith("/") and zone[:1].isalpha() else None
