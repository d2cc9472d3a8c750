"""Who used what, for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from gpuherd.api.command_reads import CommandReads
from gpuherd.api.history_service import (
    Answer,
    DistributionQuestion,
    HoursQuestion,
    MonthQuestion,
    OverTimeQuestion,
    SessionsQuestion,
    TableFormat,
    UsageFilter,
    UsageQuestion,
    Wanted,
)
from gpuherd.api.past.booked import BookedDevices
from gpuherd.api.past.faces import PastFace
from gpuherd.api.past.figures import Prices
from gpuherd.api.past.month_page import PAGE_POLICY, month_page
from gpuherd.api.past.month_text import month_text
from gpuherd.api.past.months import MonthSpan, monthly_report
from gpuherd.api.past.past_bookings import PastBookings
from gpuherd.api.past.questions import Questions
from gpuherd.api.past.ranges import Range, known_zone, read_range, steps_of
from gpuherd.api.past.reports import Reports
from gpuherd.api.past.sources import Memory
from gpuherd.api.past.trends import LiveFree, trends_view
from gpuherd.api.past.usage_tables import (
    distribution_csv,
    hours_csv,
    over_time_csv,
    sessions_csv,
    trends_csv,
    usage_csv,
)
from gpuherd.api.past.viewing import Faces
from gpuherd.fleet.clock import Clock
from gpuherd.history.settings import UsageSettings
from gpuherd.model.history import UsageKey
from gpuherd.model.people import Viewer

__all__ = ["UsageDesk"]

View = TypeVar("View")

SNAP_SECONDS = 60.0
"""Ranges that differ by less are the same question: use is counted by the quarter of an hour."""


class UsageDesk:
    """A ``UsageService`` over what is remembered. Used on the event loop."""

    def __init__(
        self,
        memory: Memory,
        *,
        settings: UsageSettings,
        questions: Questions,
        faces: Faces,
        bookings: PastBookings,
        reads: CommandReads,
        live_free: Callable[[], LiveFree],
        clock: Clock,
        zone: str,
    ) -> None:
        """``live_free`` tells how many GPUs nobody uses now."""
        self._memory = memory
        self._reports = Reports(memory, Prices(settings))
        self._questions = questions
        self._faces = faces
        self._bookings = bookings
        self._reads = reads
        self._live_free = live_free
        self._earlier = settings.earlier
        self._clock = clock
        self._zone = zone

    async def usage(self, viewer: Viewer, question: UsageQuestion) -> Answer:
        """Give who used how much."""
        face = self._faces.of(viewer)
        only = _checked(face, question.by, question.only)
        span = self._range(question.span)

        def work(booked: BookedDevices | None) -> Answer:
            report = self._reports.usage(
                face, span, by=question.by, only=only, limit=question.limit, booked=booked
            )
            return _told(report, question.format, usage_csv, "gpuherd-usage.csv")

        async def answer() -> Answer:
            booked = await self._bookings.booked(face, span, only, now=self._clock.wall())
            return await self._questions.run(work, booked)

        key = ("usage", span, question.by, only, question.limit, question.format)
        return await self._ask(viewer, face, key, answer)

    async def over_time(self, viewer: Viewer, question: OverTimeQuestion) -> Answer:
        """Give the largest step by step."""
        face = self._faces.of(viewer)
        only = _checked(face, question.by, question.only)
        zone = known_zone(question.zone, self._zone)
        span = self._range(question.span, question.zone)
        edges = steps_of(span, question.step, zone)

        def work() -> Answer:
            view = self._reports.over_time(
                face,
                span,
                edges,
                by=question.by,
                step=question.step,
                top=question.top,
                only=only,
            )
            return _told(view, question.format, over_time_csv, "gpuherd-usage-over-time.csv")

        key = ("over_time", span, question, only)
        return await self._ask(viewer, face, key, lambda: self._questions.run(work))

    async def trends(self, viewer: Viewer, format: TableFormat) -> Answer:  # noqa: A002 - as the API has it
        """Give whom to ask for a GPU."""
        face = self._faces.of(viewer)

        async def answer() -> Answer:
            now = self._clock.wall()
            reserved, live = self._bookings.reserved(face, now), self._live_free()

            def work() -> Answer:
                view = trends_view(
                    self._memory, face, now=now, reserved=reserved, live=live, earlier=self._earlier
                )
                return _told(view, format, trends_csv, "gpuherd-trends.csv")

            return await self._questions.run(work)

        return await self._ask(viewer, face, ("trends", format), answer)

    async def hours(self, viewer: Viewer, question: HoursQuestion) -> Answer:
        """Give when the herd is busy."""
        face = self._faces.of(viewer)
        zone = known_zone(question.zone, self._zone)
        span = self._range(question.span, question.zone)

        def work() -> Answer:
            view = self._memory.herd.hours(span.start, span.end, zone=zone, type=question.type)
            return _told(view, question.format, hours_csv, "gpuherd-hours.csv")

        key = ("hours", span, zone.key, question.type, question.format)
        return await self._ask(viewer, face, key, lambda: self._questions.run(work))

    async def distribution(self, viewer: Viewer, question: DistributionQuestion) -> Answer:
        """Give how well devices in use worked."""
        face = self._faces.of(viewer)
        span = self._range(question.span)

        def work() -> Answer:
            view = self._memory.herd.distribution(span.start, span.end, type=question.type)
            return _told(view, question.format, distribution_csv, "gpuherd-distribution.csv")

        key = ("distribution", span, question.type, question.format)
        return await self._ask(viewer, face, key, lambda: self._questions.run(work))

    async def sessions(self, viewer: Viewer, question: SessionsQuestion) -> Answer:
        """Give who was on which device when."""
        face = self._faces.of(viewer)
        only = _checked(face, "user", question.only)
        span = self._range(question.span)
        if face.reads_commands_of_others:
            self._reads.note_usage(viewer)

        def work() -> Answer:
            view = self._reports.sessions(face, span, only=only, limit=question.limit)
            return _told(view, question.format, sessions_csv, "gpuherd-sessions.csv")

        # Everyone reads their own command lines in it.
        reader = None if viewer.account is None else viewer.account.id
        key = ("sessions", reader, span, only, question.limit, question.format)
        return await self._ask(viewer, face, key, lambda: self._questions.run(work))

    async def month(self, viewer: Viewer, question: MonthQuestion) -> Answer:
        """Give a month's report."""
        face = self._faces.of(viewer)
        zone = known_zone(question.zone, self._zone)
        month = MonthSpan(question.month, zone, self._clock.wall() // SNAP_SECONDS * SNAP_SECONDS)
        written_at = self._clock.wall()

        def work(booked: BookedDevices | None) -> Answer:
            report = monthly_report(self._memory, self._reports, face, month, booked)
            name = f"gpuherd-{month.month}"
            match question.format:
                case "markdown":
                    return Answer(
                        body=month_text(report, written_at).encode(),
                        media_type="text/markdown; charset=utf-8",
                        file_name=f"{name}.md",
                    )
                case "html":
                    return Answer(
                        body=month_page(report, written_at).encode(),
                        media_type="text/html; charset=utf-8",
                        policy=PAGE_POLICY,
                    )
                case "json":
                    return Answer(body=msgspec.json.encode(report))

        async def answer() -> Answer:
            booked = await self._bookings.booked(face, month.span, UsageFilter(), now=written_at)
            return await self._questions.run(work, booked)

        key = ("month", month.month, zone.key, month.span, question.format)
        return await self._ask(viewer, face, key, answer)

    def _range(self, wanted: Wanted, zone: str | None = None) -> Range:
        span = read_range(wanted, now=self._clock.wall(), zone=known_zone(zone, self._zone))
        return span.snapped(SNAP_SECONDS)

    async def _ask(
        self,
        viewer: Viewer,
        face: PastFace,
        key: tuple[object, ...],
        answer: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        whole_key = (face.privacy, self._faces.generation, *key)
        return await self._questions.ask(whole_key, answer, is_stranger=viewer.account is None)


def _checked(face: PastFace, by: UsageKey, only: UsageFilter) -> UsageFilter:
    """Refuse what is not shown in public, as the live view does. Gives the filter with the device's ids in it."""
    if by == "group" or only.group is not None:
        face.check_names("groups")
    if by == "job" or only.job is not None:
        face.check_names("jobs")
    named = None if only.device is None else face.device_named(only.device)
    return only if named is None else msgspec.structs.replace(only, device=f"{named.node_id}:{named.uuid}")


def _told(
    view: View,
    format: TableFormat,  # noqa: A002 - as the API has it
    table: Callable[[View], bytes],
    file_name: str,
) -> Answer:
    if format == "csv":
        return Answer(body=table(view), media_type="text/csv; charset=utf-8", file_name=file_name)
    return Answer(body=msgspec.json.encode(view))
