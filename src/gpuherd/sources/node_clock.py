"""Times that older tools write without a zone: what they tell of a node's zone and clock, and what they do not."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["naive_seconds", "zone_seconds"]

_ZONE_STEP_SECONDS = 900.0
_LARGEST_ZONE_SECONDS = 14 * 3600.0
_TIME = re.compile(r"(\d{4})[/-](\d{2})[/-](\d{2})[ T](\d{2}):(\d{2}):(\d{2})(\.\d{1,6})?")


def naive_seconds(text: object) -> float | None:
    """Read ``2023-04-29T21:17:41.419592`` or ``2018/07/01 12:00:00.123`` as if it were UTC, in epoch seconds."""
    found = _TIME.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 64 else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() + float(found[7] or 0)


def zone_seconds(naive: float, wall: float, *, behind_seconds: float, ahead_seconds: float) -> float | None:
    """Take the node's zone from a time it wrote just now: the whole quarters of an hour between it and our clock.

    What is left over is the age of the data and the error of the clocks; ``None`` if it is outside of the bounds
    given, because then the node's clock tells nothing.
    """
    ahead = naive - wall
    zone = _ZONE_STEP_SECONDS * round(ahead / _ZONE_STEP_SECONDS)
    if abs(zone) > _LARGEST_ZONE_SECONDS or not -behind_seconds <= ahead - zone <= ahead_seconds:
        return None
    return zone
