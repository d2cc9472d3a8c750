"""Reports of use as tables for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.api.past.tables import Cell, iso, write_csv
from gpuherd.model.history import (
    BookingUsage,
    Distribution,
    HourMap,
    TrendsView,
    UsageFigures,
    UsageOverTime,
    UsageReport,
    UsageSessions,
)

__all__ = ["distribution_csv", "hours_csv", "over_time_csv", "sessions_csv", "trends_csv", "usage_csv"]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIGURES = UsageFigures.__struct_fields__
_BOOKINGS = BookingUsage.__struct_fields__


def _fields(struct: object | None, names: Sequence[str]) -> list[Cell]:
    return [None if struct is None else getattr(struct, name) for name in names]


def usage_csv(report: UsageReport) -> bytes:
    """Write a line for each row."""
    return write_csv(
        [report.by, "label", *_FIGURES, "currency", "users", "devices", "sessions", *_BOOKINGS, "from", "to"],
        (
            [
                row.key,
                row.label,
                *_fields(row.figures, _FIGURES),
                report.currency,
                row.users,
                row.devices,
                row.sessions,
                *_fields(row.bookings, _BOOKINGS),
                iso(report.start),
                iso(report.end),
            ]
            for row in report.rows
        ),
    )


def over_time_csv(view: UsageOverTime) -> bytes:
    """Write a line for each step and key; the others are a key of their own at the end of each step."""
    rows: list[list[Cell]] = []
    for place, at in enumerate(view.times):
        for key, label, gpu, busy in zip(
            view.keys, view.labels, view.gpu_hours, view.busy_hours, strict=True
        ):
            rows.append([iso(at), key, label, gpu[place], busy[place]])
        rows.append(
            [iso(at), None, "all others", view.others_gpu_hours[place], view.others_busy_hours[place]]
        )
    return write_csv(["time", view.by, "label", "gpu_hours", "busy_hours"], rows)


def trends_csv(view: TrendsView) -> bytes:
    """Write a line for each user, and the free GPUs last."""
    names = view.free.__struct_fields__
    return write_csv(names, (_fields(row, names) for row in (*view.rows, view.free)))


def hours_csv(view: HourMap) -> bytes:
    """Write a line for each hour of the week."""
    return write_csv(
        ["day", "hour", "busy", "held", "free", "device_hours"],
        (
            [
                DAYS[day],
                hour,
                view.busy[day][hour],
                view.held[day][hour],
                view.free[day][hour],
                view.hours[day][hour],
            ]
            for day in range(7)
            for hour in range(24)
        ),
    )


def distribution_csv(view: Distribution) -> bytes:
    """Write a line for each class of utilisation."""
    return write_csv(
        ["utilization_from", "utilization_to", "all", *view.by_type],
        (
            [
                view.edges[place],
                view.edges[place + 1],
                hours,
                *(kind[place] for kind in view.by_type.values()),
            ]
            for place, hours in enumerate(view.hours)
        ),
    )


def sessions_csv(view: UsageSessions) -> bytes:
    """Write a line for each stay."""
    return write_csv(
        [
            *("id", "node_id", "node", "uuid", "type", "user", "container", "job", "command"),
            *("started_at", "ended_at", "last_seen_at"),
            *_FIGURES,
        ],
        (
            [
                *(
                    one.id,
                    one.node_id,
                    one.node,
                    one.uuid,
                    one.type,
                    one.user,
                    one.container,
                    one.job,
                    one.command,
                ),
                iso(one.started_at),
                None if one.ended_at is None else iso(one.ended_at),
                iso(one.last_seen_at),
                *_fields(one.figures, _FIGURES),
            ]
            for one in view.sessions
        ),
    )
