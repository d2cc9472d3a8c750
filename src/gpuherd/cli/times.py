"""Times as wide as the screen has room for; on a narrow one without the weekday, the year and the zone."""

from __future__ import annotations

from gpuherd.cli.asking import moment, span
from gpuherd.cli.showing import Screen

__all__ = ["TINY_CELLS", "brief_moment", "shown_moment", "shown_span"]

NARROW_CELLS = 100
"""Screens with less are narrow."""
TINY_CELLS = 60
"""Screens with less are very narrow."""


def brief_moment(at: float, now: float) -> str:
    """Show a time as ``11-16 10:20``, of another year only the day, ``2025-11-16``."""
    text, today = moment(int(at)), moment(int(now))
    if not text[4:8].isdecimal():
        return text
    return text[9:20] if text[4:8] == today[4:8] else text[4:14]


def shown_moment(at: float, now: float, screen: Screen) -> str:
    """Show a time as ``Mon 2026-11-16 10:20``, on a narrow screen briefly."""
    return brief_moment(at, now) if 0 < screen.width < NARROW_CELLS else moment(int(at))[:20]


def shown_span(starts_at: int, ends_at: int, now: float, screen: Screen) -> str:
    """Show from when to when: ``11-16 10:20–11-18 18:00`` on a narrow screen.

    On a very narrow one only what matters most: until when it is, or when it begins and on which day it ends.
    """
    if not 0 < screen.width < NARROW_CELLS:
        return span(starts_at, ends_at)
    first, last = brief_moment(starts_at, now), brief_moment(ends_at, now)
    if first[:6] == last[:6] and first[5:6] == " ":
        return f"{first}–{last[6:]}"
    if screen.width >= TINY_CELLS:
        return f"{first}–{last}"
    return f"until {last}" if starts_at <= now < ends_at else f"{first}–{last.partition(' ')[0]}"
