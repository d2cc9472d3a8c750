"""A made-up past that the page asks for, in the shapes of the API, of which one can work out what charts show."""

from __future__ import annotations

import math
from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from playwright.sync_api import Page, Route

from gpuherd.model.history import (
    HerdSeries,
    MetricSeries,
    MissingPart,
    Resolution,
    SeriesView,
    StateSpan,
    SubjectSeries,
    UsageFigures,
    UsageSession,
    UsageSessions,
    UserSeries,
)

STEPS = (5, 10, 30, 60, 300, 900, 3600, 7200, 21_600, 86_400)
POINTS = 400
GIB = 2**30
Query = dict[str, list[str]]


class Past:
    """Answers for every question about history; ``asked`` are the addresses."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gap: tuple[float, float] | None = None
        """Shares of the range between which nothing is known."""
        self.missing: tuple[MissingPart, ...] = ()
        self.users = ("ada", "bo")

    def serve(self, page: Page) -> None:
        """Answer in the hub's place."""
        page.route("**/api/v1/history/**", lambda route: self._answer(route, self._history))
        page.route("**/api/v1/usage/sessions*", lambda route: self._answer(route, self._sessions))

    def _answer(self, route: Route, make: Callable[[str, Query], msgspec.Struct]) -> None:
        self.asked.append(route.request.url)
        parts = urlsplit(route.request.url)
        path = unquote(parts.path).split("/api/v1/")[1]
        route.fulfill(
            body=msgspec.json.encode(make(path, parse_qs(parts.query))), content_type="application/json"
        )

    def _history(self, path: str, query: Query) -> msgspec.Struct:
        _, kind, *rest = path.split("/")
        start, end, step, times = grid(query)
        resolution: Resolution = "raw" if step < 60 else "minute" if step < 900 else "quarter_hour"
        if kind == "herd":
            return self._herd(query, resolution)
        if kind == "users":
            held = self._numbers(times, lambda i: 2 + math.sin(i / 20))
            return UserSeries(
                user=rest[0],
                start=start,
                end=end,
                step_seconds=step,
                times=times,
                held_gpus=held,
                busy_gpus=[None if value is None else value / 2 for value in held],
                power_watts=self._numbers(times, lambda i: 400 + 100 * math.sin(i / 20)),
                memory_bytes=self._numbers(times, lambda i: 60 * GIB),
            )
        if kind == "nodes":
            subjects: tuple[SubjectSeries, ...] = (
                SubjectSeries(
                    node_id=rest[0],
                    metrics={
                        "cpu_ratio": self._series(times, lambda i: 0.3 + 0.1 * math.sin(i / 9)),
                        "memory_used_bytes": self._series(times, lambda i: 128 * GIB),
                    },
                ),
            )
        else:
            subjects = tuple(
                self._device(device, query["metric"], position, times, step)
                for position, device in enumerate(query["device"])
            )
        return SeriesView(
            start=start,
            end=end,
            step_seconds=step,
            resolution=resolution,
            times=times,
            subjects=subjects,
            missing=self.missing,
        )

    def _device(
        self, name: str, metrics: list[str], position: int, times: list[float], step: float
    ) -> SubjectSeries:
        node_id, uuid = name.split(":")
        scales = {"utilization_gpu": 1.0, "memory_used_bytes": 70 * GIB, "clock_sm_hertz": 1.7e9}
        base = {"temperature_celsius": (40.0, 30.0), "power_watts": (80.0, 250.0)}

        def value(metric: str) -> Callable[[int], float]:
            low, scale = base.get(metric, (0.0, scales.get(metric, 1.0)))
            return lambda i: low + scale * (0.5 + 0.4 * math.sin((times[i] / step + 40 * position) / 25))

        states = ("busy", "held", "free", "booked", "fault", "offline")
        length = max(1, len(times) // len(states))
        spans = tuple(
            StateSpan(start=first, end=times[min(len(times) - 1, i + length)], state=state)
            for i, state in zip(range(0, len(times), length), states, strict=False)
            if (first := times[i]) < times[min(len(times) - 1, i + length)]
        )
        return SubjectSeries(
            node_id=node_id,
            uuid=uuid,
            metrics={metric: self._series(times, value(metric)) for metric in metrics},
            states=spans,
        )

    def _herd(self, query: Query, resolution: Resolution) -> HerdSeries:
        start, end, step, times = grid(query)
        share = 0.5 if query.get("type") else 1.0
        counts = {"free": 12.0, "busy": 20.0, "held": 5.0, "booked": 2.0, "fault": 1.0, "offline": 4.0}
        return HerdSeries(
            start=start,
            end=end,
            step_seconds=step,
            resolution=resolution,
            times=times,
            types=("A100 80GB", "H100 80GB"),
            devices={
                state: self._numbers(times, lambda i, n=count: n * share * (1 + 0.3 * math.sin(i / 30)))  # type: ignore[misc]
                for state, count in counts.items()
            },
            utilization_gpu=self._numbers(times, lambda i: 0.5 + 0.3 * math.sin(i / 30)),
            memory_ratio=self._numbers(times, lambda i: 0.4),
            power_watts=self._numbers(times, lambda i: share * (9000 + 3000 * math.sin(i / 30))),
            missing=self.missing,
        )

    def _series(self, times: list[float], value: Callable[[int], float]) -> MetricSeries:
        mean = self._numbers(times, value)
        return MetricSeries(
            mean=mean,
            low=[None if one is None else 0.8 * one for one in mean],
            high=[None if one is None else 1.1 * one for one in mean],
        )

    def _numbers(self, times: list[float], value: Callable[[int], float]) -> list[float | None]:
        count = len(times)
        first, last = self.gap or (2.0, 2.0)
        return [None if first <= i / count < last else value(i) for i in range(count)]

    def _sessions(self, path: str, query: Query) -> UsageSessions:
        del path
        start, end = float(query["from"][0]), float(query["to"][0])
        length = end - start
        users = query.get("user") or self.users
        sessions = tuple(
            UsageSession(
                id=f"{i}",
                node_id=query.get("node", ["alpha"])[0],
                uuid=query.get("device", ["GPU-alpha-0"])[0],
                node="alpha",
                type="A100 80GB",
                user=user,
                job="17" if i == 0 else None,
                started_at=start + (0.1 + 0.4 * i) * length,
                ended_at=None if i == len(users) - 1 and i > 0 else start + (0.4 + 0.4 * i) * length,
                last_seen_at=end,
                figures=UsageFigures(
                    gpu_hours=12.5,
                    busy_hours=10.0,
                    idle_hours=2.5,
                    unknown_hours=0.0,
                    efficiency=0.8,
                    mean_utilization=0.7,
                    memory_gib_hours=500.0,
                    energy_kwh=3.25,
                ),
            )
            for i, user in enumerate(users)
        )
        return UsageSessions(start=start, end=end, sessions=sessions, is_complete=True)


def grid(query: Query) -> tuple[float, float, float, list[float]]:
    """Give the range that was asked for and a grid of at most so many steps over it."""
    start, end = float(query["from"][0]), float(query["to"][0])
    points = int(query.get("points", [str(POINTS)])[0])
    step = next((step for step in STEPS if (end - start) / step <= points), STEPS[-1])
    first = math.floor(start / step)
    return start, end, step, [float(step * i) for i in range(first, math.ceil(end / step))]
