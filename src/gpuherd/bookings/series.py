"""The same again every week, by the clock on the wall."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.slots import Span
from gpuherd.bookings.times import LATEST, wall_of

__all__ = ["weekly_spans"]

WEEK = timedelta(days=7)


def weekly_spans(starts_at: int, ends_at: int, *, zone: ZoneInfo, times: int) -> list[Span]:
    """Give the spans of a weekly series; ``Unfit`` if they would overlap or run out of the calendar.

    The first is as given. Of a later one whose time comes twice the first is meant, and one whose time is skipped is
    as much later as the clocks were put forward: the rule that calendars follow for recurring events (RFC 5545).
    """
    if ends_at - starts_at > WEEK.total_seconds():
        raise Unfit("too_long", "a weekly booking cannot last longer than a week", path="end")
    first_start, first_end = wall_of(starts_at, zone), wall_of(ends_at, zone)
    if ends_at + (times + 1) * WEEK.total_seconds() > LATEST:
        raise Unfit("time_out_of_range", "that many weeks run beyond the year 9998", path="weekly.times")
    spans = [Span(starts_at, ends_at)]
    for number in range(1, times):
        # fold=0: of two moments the first; of none, the offset from before the change.
        start, end = (
            int((wall + number * WEEK).replace(tzinfo=zone, fold=0).timestamp())
            for wall in (first_start, first_end)
        )
        if end <= start or start < spans[-1].ends_at:
            raise Unfit(
                "nonexistent_time",
                f"in week {number + 1}, on {first_start + number * WEEK:%Y-%m-%d}, this time does not "
                "exist because the clocks change; choose other hours, or fewer weeks",
                path="weekly",
            )
        spans.append(Span(start, end))
    return spans
