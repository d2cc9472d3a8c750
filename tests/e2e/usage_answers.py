"""Answers about use as the hub gives them, for a page that is tried without waiting for a history to fill."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from playwright.sync_api import Page, Route

from gpuherd.model.history import (
    DISTRIBUTION_EDGES,
    BookingUsage,
    Distribution,
    HourMap,
    MissingPart,
    TrendRow,
    TrendsView,
    UsageFigures,
    UsageKey,
    UsageOverTime,
    UsageReport,
    UsageRow,
    UsageSession,
    UsageSessions,
)

__all__ = ["UsageAnswers", "figures", "report"]

DAY = 86_400.0
NAMES: Mapping[str, tuple[str | None, ...]] = {
    "user": ("ada", "bo", None, "cy", "dee", "eli", "fay", "gus", "hal", "ida", "joe", "kim"),
    "group": ("vision", "speech", None),
    "node": ("n-1", "n-2", "n-3"),
    "type": ("H100 80GB", "A100 40GB", "RTX 3090"),
    "job": (None, "4711", "4712", "4713"),
}


def figures(hours: float, *, busy: float = 0.6, idle: float = 0.3, cost: float | None = None) -> UsageFigures:
    """Make figures whose parts add up."""
    known = busy + idle
    return UsageFigures(
        gpu_hours=hours,
        busy_hours=hours * busy,
        idle_hours=hours * idle,
        unknown_hours=hours * (1 - known),
        efficiency=busy / known if known else None,
        mean_utilization=busy * 0.8 if known else None,
        memory_gib_hours=hours * 30,
        energy_kwh=hours * 0.31,
        cost=cost,
    )


def booked(hours: float) -> BookingUsage:
    """Make bookings of which three fifths were used."""
    return BookingUsage(
        booked_hours=hours, used_hours=hours * 0.6, others_hours=hours * 0.1, unused_hours=hours * 0.3
    )


def report(
    by: UsageKey,
    start: float,
    end: float,
    *,
    rows: tuple[UsageRow, ...] | None = None,
    missing: tuple[MissingPart, ...] = (),
    currency: str | None = None,
) -> UsageReport:
    """Make a report whose totals are those of its rows."""
    if rows is None:
        rows = tuple(
            UsageRow(
                key=name,
                label=name or "unknown",
                figures=figures(
                    1000.0 / (place + 1),
                    busy=0.2 + 0.6 * abs(math.sin(place + 1)),
                    idle=0.15,
                    cost=None if currency is None else 2000.0 / (place + 1),
                ),
                users=1,
                devices=4,
                sessions=40 - place,
                bookings=None if name is None or by == "job" else booked(300.0 / (place + 1)),
            )
            for place, name in enumerate(NAMES[by])
        )
    hours = sum(row.figures.gpu_hours for row in rows)
    return UsageReport(
        start=start,
        end=end,
        by=by,
        rows=rows,
        totals=figures(hours, cost=None if currency is None else hours * 2)
        if rows
        else figures(0, busy=0, idle=0),
        bookings=booked(500.0) if rows and by != "job" else None,
        capacity_hours=hours * 2 if rows else None,
        free_hours=hours if rows else None,
        currency=currency,
        missing=missing,
    )


def _over_time(by: UsageKey, start: float, end: float, top: int) -> UsageOverTime:
    times = [start + DAY * day for day in range(max(1, math.ceil((end - start) / DAY)))]
    names = list(NAMES[by][:top])
    held = [
        [(8 + 5 * math.sin(day / 3 + place)) / (place + 1) for day in range(len(times))]
        for place in range(len(names))
    ]
    return UsageOverTime(
        start=start,
        end=end,
        by=by,
        step="day",
        times=times,
        keys=names,
        labels=[name or "unknown" for name in names],
        gpu_hours=held,
        busy_hours=[[value * 0.6 for value in row] for row in held],
        others_gpu_hours=[2.0] * len(times),
        others_busy_hours=[1.0] * len(times),
        missing=(MissingPart(start=times[0], end=times[0] + 3600, reason="a file cannot be read"),),
    )


def _hours(start: float, end: float, zone: str) -> HourMap:
    def share(day: int, hour: int) -> float | None:
        if day == 6 and hour < 5:
            return None
        return max(0.0, 0.5 + 0.4 * math.sin((hour - 9) / 24 * 2 * math.pi) - (0.2 if day > 4 else 0))

    busy = [[share(day, hour) for hour in range(24)] for day in range(7)]
    held = [[None if value is None else 0.1 for value in row] for row in busy]
    free = [[None if value is None else 0.9 - value for value in row] for row in busy]
    hours = [[32.0] * 24 for _ in range(7)]
    return HourMap(start=start, end=end, zone=zone, busy=busy, held=held, free=free, hours=hours)


def _distribution(start: float, end: float) -> Distribution:
    classes = len(DISTRIBUTION_EDGES) - 1
    by_type = {
        name: [40.0 + 30 * math.cos(i / 2 + place) for i in range(classes)]
        for place, name in enumerate(n for n in NAMES["type"] if n)
    }
    total = [sum(values) for values in zip(*by_type.values(), strict=True)]
    return Distribution(start=start, end=end, edges=list(DISTRIBUTION_EDGES), hours=total, by_type=by_type)


def _trends() -> TrendsView:
    def row(user: str | None, used: float, trend: Any) -> TrendRow:
        return TrendRow(
            user=user,
            label=user or "unknown",
            reserved_gpus=2,
            used_gpus=used,
            idle_gpus=used / 4,
            mean_2h=used,
            mean_24h=used * 0.7,
            mean_1w=used * 0.4,
            trend=trend,
            trend_2h="level",
            trend_24h=trend,
            trend_1w="up",
        )

    return TrendsView(
        time=time.time(),
        rows=(row("ada", 12.0, "up"), row("bo", 4.5, "down"), row(None, 1.0, "level")),
        free=row("free", 37.0, "down"),
        earlier_until=1_790_000_000.0,
    )


def _sessions(user: str | None, start: float, end: float) -> UsageSessions:
    stays = tuple(
        UsageSession(
            id=f"s{place}",
            node_id="n-1",
            uuid=f"GPU-{place}",
            node="gpu01",
            type="H100 80GB",
            user=user,
            job="4711",
            command="python train.py",
            started_at=end - DAY * (place + 1),
            ended_at=end - DAY * place if place else None,
            last_seen_at=end - DAY * place,
            figures=figures(20.0),
        )
        for place in range(3)
    )
    return UsageSessions(start=start, end=end, sessions=stays, is_complete=False)


class UsageAnswers:
    """Stands in for the hub's routes about use; ``asked`` is what the page wanted, ``reports`` what it gets."""

    def __init__(self, page: Page, reports: Callable[..., UsageReport] = report) -> None:
        self.reports = reports
        self.asked: list[tuple[str, dict[str, str]]] = []
        page.route("**/api/v1/usage**", self._answer)
        page.route("**/api/v1/usage/**", self._answer)

    def last(self, name: str) -> dict[str, str]:
        """Give the query of the last request for something."""
        return next(query for asked, query in reversed(self.asked) if asked == name)

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        name = url.path.rsplit("/api/v1/", 1)[1]
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        self.asked.append((name, query))
        answer = self._make(name, query)
        route.fulfill(body=msgspec.json.encode(answer), content_type="application/json")

    def _make(self, name: str, query: dict[str, str]) -> Any:
        start, end = float(query.get("from", 0)), float(query.get("to", 0))
        by = msgspec.convert(query.get("by", "user"), UsageKey)
        if name == "usage":
            return self.reports(by, start, end)
        if name == "usage/over-time":
            return _over_time(by, start, end, int(query["top"]))
        if name == "usage/hours":
            return _hours(start, end, query["zone"])
        if name == "usage/sessions":
            return _sessions(query.get("user"), start, end)
        if name == "usage/distribution":
            return _distribution(start, end)
        return _trends()
