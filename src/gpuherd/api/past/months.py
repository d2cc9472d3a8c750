"""A month's report."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from gpuherd.api.errors import HttpError
from gpuherd.api.past.booked import BookedDevices
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.ranges import Range, month_range, steps_of
from gpuherd.api.past.reports import Reports
from gpuherd.api.past.sources import Memory
from gpuherd.bookings.times import wall_of
from gpuherd.model.history import MonthlyReport, UsageReport

__all__ = ["MonthSpan", "monthly_report"]

MAX_ROWS = 200
"""Of each kind; a report is for reading."""
DAILY_TOP = 8


class MonthSpan:
    """A month in a zone, as far as it has passed."""

    def __init__(self, month: str, zone: ZoneInfo, now: float) -> None:
        """Raise ``HttpError`` 400 for one that has not begun."""
        whole = month_range(month, zone)
        if whole.start >= now:
            raise HttpError(
                400, "bad_month", "this month has not started; choose an earlier one", path="month"
            )
        self.month = month
        self.zone = zone
        self.is_complete = whole.end <= now
        self.span = Range(whole.start, min(whole.end, now))

    @property
    def before(self) -> Range:
        """The month before it, as a whole."""
        last_day = wall_of(int(self.span.start) - 1, self.zone)
        return month_range(f"{last_day:%Y-%m}", self.zone)


def monthly_report(
    memory: Memory, reports: Reports, face: PastFace, month: MonthSpan, booked: BookedDevices | None
) -> MonthlyReport:
    """Put the report together. Blocking."""
    span = month.span
    by_user = reports.usage(face, span, by="user", limit=MAX_ROWS, booked=booked)
    if face.is_public:
        by_group = UsageReport(
            start=by_user.start, end=by_user.end, by="group", rows=(), totals=by_user.totals
        )
    else:
        by_group = reports.usage(face, span, by="group", limit=MAX_ROWS, booked=booked)
    return MonthlyReport(
        month=month.month,
        zone=month.zone.key,
        is_complete=month.is_complete,
        by_user=by_user,
        by_group=by_group,
        by_type=reports.usage(face, span, by="type", limit=MAX_ROWS, booked=booked),
        by_node=reports.usage(face, span, by="node", limit=MAX_ROWS, booked=booked),
        previous=reports.totals(month.before),
        hours=memory.herd.hours(span.start, span.end, zone=month.zone, type=None),
        distribution=memory.herd.distribution(span.start, span.end, type=None),
        by_day=reports.over_time(
            face, span, steps_of(span, "day", month.zone), by="user", step="day", top=DAILY_TOP
        ),
    )
