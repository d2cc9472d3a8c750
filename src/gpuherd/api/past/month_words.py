"""What a month's report says, before it is written as Markdown or as a page: tables of texts and of shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from gpuherd.model.history import MonthlyReport, UsageFigures, UsageReport, UsageRow

__all__ = ["KeyFigure", "Table", "headline", "hours", "key_figures", "notes", "share", "tables"]

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
UNKNOWN = "–"


class KeyFigure(Struct, frozen=True):
    """A number of the month, and how it has changed since the month before."""

    name: str
    value: str
    change: str


class Table(Struct, frozen=True):
    """A part of the report: rows of texts, and of each row its share of the largest, for a bar."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[float, float], ...]
    """Of each row: busy, and held altogether, as shares of the largest row."""
    note: str = ""


def hours(value: float | None) -> str:
    """Write hours as people compare them."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


def share(value: float | None) -> str:
    """Write a share as a percentage."""
    return UNKNOWN if value is None else f"{value:.0%}"


def _money(value: float | None, currency: str | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f} {currency or ''}".rstrip()


def headline(report: MonthlyReport) -> str:
    """Say what the report is of."""
    year, month = report.month.split("-")
    return f"GPU usage in {MONTHS[int(month) - 1]} {year}"


def notes(report: MonthlyReport, written_at: float) -> list[str]:
    """Say how the report came about, and what is missing in it."""
    moment = datetime.fromtimestamp(written_at, UTC)
    told = [f"Times are in {report.zone}. Written {moment:%Y-%m-%d %H:%M} UTC."]
    if not report.is_complete:
        told.append("This month is not over yet.")
    for part in report.by_user.missing[:5]:
        first, last = (datetime.fromtimestamp(at, UTC) for at in (part.start, part.end))
        told.append(f"Missing from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC: {part.reason}.")
    return told


def key_figures(report: MonthlyReport) -> list[KeyFigure]:
    """Give the month in a few numbers."""
    used, currency = report.by_user.totals, report.by_user.currency
    capacity = report.by_user.capacity_hours
    figures = [
        _compared(report, "GPU-hours used", lambda of: of.gpu_hours, hours),
        _compared(report, "of these busy", lambda of: of.busy_hours, hours),
        _compared(report, "of these held idle", lambda of: of.idle_hours, hours),
        _compared(report, "Efficiency (busy of used)", lambda of: of.efficiency, share, is_share=True),
        _compared(
            report, "Mean utilisation while in use", lambda of: of.mean_utilization, share, is_share=True
        ),
        _compared(report, "Energy, kWh", lambda of: of.energy_kwh, hours),
    ]
    if capacity:
        taken = min(1.0, used.gpu_hours / capacity)
        figures.append(KeyFigure("Available GPU-hours", hours(capacity), ""))
        figures.append(KeyFigure("of these used", share(taken), ""))
    if currency is not None:
        figures.append(_compared(report, "Cost", lambda of: of.cost, lambda value: _money(value, currency)))
        if used.idle_cost is not None:
            figures.append(
                _compared(
                    report,
                    "of this for hours held idle",
                    lambda of: of.idle_cost,
                    lambda v: _money(v, currency),
                )
            )
    booked = report.by_user.bookings
    if booked is not None and booked.booked_hours > 0:
        figures.append(KeyFigure("Booked device-hours", hours(booked.booked_hours), ""))
        figures.append(
            KeyFigure("of these used by the holder", share(booked.used_hours / booked.booked_hours), "")
        )
    return figures


def _compared(
    report: MonthlyReport,
    name: str,
    figure: Callable[[UsageFigures], float | None],
    write: Callable[[float | None], str],
    *,
    is_share: bool = False,
) -> KeyFigure:
    now = figure(report.by_user.totals)
    before = None if report.previous is None else figure(report.previous)
    change = ""
    if now is not None and before is not None and report.is_complete:
        if is_share:
            points = round((now - before) * 100)
            change = f"{points:+d} point{'' if abs(points) == 1 else 's'}" if points else "unchanged"
        elif before > 0 and math.isfinite(now / before):
            change = f"{percent:+d}%" if (percent := round((now / before - 1) * 100)) else "unchanged"
    return KeyFigure(name, write(now), change)


def tables(report: MonthlyReport) -> list[Table]:
    """Give the parts of the report that are tables, without empty ones."""
    parts = (
        ("By user", "User", report.by_user),
        ("By group", "Group", report.by_group),
        ("By GPU type", "Type", report.by_type),
        ("By node", "Node", report.by_node),
    )
    return [_table(title, name, part) for title, name, part in parts if part.rows]


def _table(title: str, name: str, report: UsageReport) -> Table:
    has_cost = report.currency is not None
    has_bookings = any(row.bookings is not None for row in report.rows)
    header = [name, "GPU-hours", "Busy", "Held idle", "Efficiency", "kWh"]
    if has_cost:
        header.append(f"Cost, {report.currency}")
    if has_bookings:
        header += ["Booked", "Used"]
    most = max((row.figures.gpu_hours for row in report.rows), default=0.0) or 1.0
    omitted = f"and {report.omitted_rows} more" if report.omitted_rows else ""
    return Table(
        title=title,
        header=tuple(header),
        rows=tuple(_row(row, has_cost=has_cost, has_bookings=has_bookings) for row in report.rows),
        shares=tuple((row.figures.busy_hours / most, row.figures.gpu_hours / most) for row in report.rows),
        note=omitted,
    )


def _row(row: UsageRow, *, has_cost: bool, has_bookings: bool) -> tuple[str, ...]:
    figures = row.figures
    cells = [
        row.label,
        hours(figures.gpu_hours),
        hours(figures.busy_hours),
        hours(figures.idle_hours),
        share(figures.efficiency),
        hours(figures.energy_kwh),
    ]
    if has_cost:
        cells.append(UNKNOWN if figures.cost is None else f"{figures.cost:,.2f}")
    if has_bookings:
        booked = row.bookings
        cells += [
            hours(None if booked is None else booked.booked_hours),
            share(
                None if booked is None or not booked.booked_hours else booked.used_hours / booked.booked_hours
            ),
        ]
    return tuple(cells)


def daily(report: MonthlyReport) -> tuple[list[str], list[list[float]]]:
    """Give who is told apart day by day, the others last, and their GPU-hours."""
    days = report.by_day
    labels: Sequence[str] = days.labels
    return [*labels, "all others"], [*days.gpu_hours, days.others_gpu_hours]
