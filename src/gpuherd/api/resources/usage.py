"""/api/v1/usage: who used what, and how well."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.params import PathParameter, QueryParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.history_service import (
    MAX_ROWS,
    MAX_SESSIONS,
    MAX_TOP,
    DistributionQuestion,
    HoursQuestion,
    MonthQuestion,
    OverTimeQuestion,
    ReportFormat,
    SessionsQuestion,
    UsageFilter,
    UsageQuestion,
    Wanted,
)
from gpuherd.api.resources.past import (
    By,
    Device,
    Format,
    Group,
    Job,
    Node,
    Since,
    Type,
    Until,
    User,
    Zone,
    send,
)
from gpuherd.api.services import Services
from gpuherd.model.history import (
    MONTH_PATTERN,
    Distribution,
    HourMap,
    MonthlyReport,
    TrendsView,
    UsageOverTime,
    UsageReport,
    UsageSessions,
    UsageStep,
)

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    return [*_sums(services), *_lists(services), *_pictures(services), _month(services)]


def _sums(services: Services) -> list[Any]:
    @get("/usage", operation_id="getUsage", opt=needs(Access.LOOK), summary="Who used how much")
    async def get_usage(
        request: AnyRequest,
        by: By = "user",
        since: Since = None,
        until: Until = None,
        user: User = None,
        group: Group = None,
        node: Node = None,
        type: Type = None,  # noqa: A002 - as the API has it
        job: Job = None,
        device: Device = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MAX_ROWS, description="How many rows at most.")] = 1000,
        format: Format = "json",  # noqa: A002
    ) -> Response[UsageReport]:
        """GPU-hours held, worked and wasted, energy and cost in a range, the largest first.

        The range is counted in quarters of an hour, further back in hours, and widened to whole ones; ``start`` and
        ``end`` tell the range that was counted. A GPU that several share is split between them.
        """
        question = UsageQuestion(
            span=Wanted(since=since, until=until),
            by=by,
            only=UsageFilter(user=user, group=group, node=node, type=type, job=job, device=device),
            limit=limit,
            format=format,
        )
        return send(await services.usage.usage(viewer_of(request), question))

    @get(
        "/usage/over-time",
        operation_id="getUsageOverTime",
        opt=needs(Access.LOOK),
        summary="Who used how much, step by step",
    )
    async def get_usage_over_time(
        request: AnyRequest,
        by: By = "user",
        since: Since = None,
        until: Until = None,
        step: Annotated[UsageStep, QueryParameter(description="How long a step is.")] = "day",
        top: Annotated[
            int,
            QueryParameter(ge=1, le=MAX_TOP, description="How many are told apart; the rest is summed up."),
        ] = 10,
        zone: Zone = None,
        user: User = None,
        group: Group = None,
        node: Node = None,
        type: Type = None,  # noqa: A002
        job: Job = None,
        device: Device = None,
        format: Format = "json",  # noqa: A002
    ) -> Response[UsageOverTime]:
        """The largest of a range, hour by hour, day by day, week by week or month by month in a time zone."""
        question = OverTimeQuestion(
            span=Wanted(since=since, until=until),
            by=by,
            only=UsageFilter(user=user, group=group, node=node, type=type, job=job, device=device),
            step=step,
            top=top,
            zone=zone,
            format=format,
        )
        return send(await services.usage.over_time(viewer_of(request), question))

    return [get_usage, get_usage_over_time]


def _lists(services: Services) -> list[Any]:
    @get(
        "/usage/trends",
        operation_id="getUsageTrends",
        opt=needs(Access.LOOK),
        summary="Whom to ask for a GPU",
    )
    async def get_usage_trends(request: AnyRequest, format: Format = "json") -> Response[TrendsView]:  # noqa: A002
        """What everyone holds now and held lately, those who hold most first."""
        return send(await services.usage.trends(viewer_of(request), format))

    @get(
        "/usage/sessions",
        operation_id="getUsageSessions",
        opt=needs(Access.LOOK),
        summary="Who was on which device when",
    )
    async def get_usage_sessions(
        request: AnyRequest,
        since: Since = None,
        until: Until = None,
        user: User = None,
        group: Group = None,
        node: Node = None,
        type: Type = None,  # noqa: A002
        job: Job = None,
        device: Device = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MAX_SESSIONS, description="How many at most.")] = 200,
        format: Format = "json",  # noqa: A002
    ) -> Response[UsageSessions]:
        """Stays on devices that touch a range, the latest first.

        Begin and end are those of the stay, figures as far as it lies in the range. Command lines are for who ran them
        and for admins, as long as they are kept; that admins read those of others is in the audit log.
        """
        question = SessionsQuestion(
            span=Wanted(since=since, until=until),
            only=UsageFilter(user=user, group=group, node=node, type=type, job=job, device=device),
            limit=limit,
            format=format,
        )
        return send(await services.usage.sessions(viewer_of(request), question))

    return [get_usage_trends, get_usage_sessions]


def _pictures(services: Services) -> list[Any]:
    @get("/usage/hours", operation_id="getBusyHours", opt=needs(Access.LOOK), summary="When the herd is busy")
    async def get_busy_hours(
        request: AnyRequest,
        since: Since = None,
        until: Until = None,
        zone: Zone = None,
        type: Type = None,  # noqa: A002
        format: Format = "json",  # noqa: A002
    ) -> Response[HourMap]:
        """The share of devices at work, held and free, for each hour of the week in a time zone."""
        question = HoursQuestion(span=Wanted(since=since, until=until), zone=zone, type=type, format=format)
        return send(await services.usage.hours(viewer_of(request), question))

    @get(
        "/usage/distribution",
        operation_id="getUtilizationDistribution",
        opt=needs(Access.LOOK),
        summary="How well devices in use worked",
    )
    async def get_distribution(
        request: AnyRequest,
        since: Since = None,
        until: Until = None,
        type: Type = None,  # noqa: A002
        format: Format = "json",  # noqa: A002
    ) -> Response[Distribution]:
        """Device-hours by utilisation, of devices that someone was on."""
        question = DistributionQuestion(span=Wanted(since=since, until=until), type=type, format=format)
        return send(await services.usage.distribution(viewer_of(request), question))

    return [get_busy_hours, get_distribution]


def _month(services: Services) -> Any:
    @get(
        "/usage/months/{month:str}",
        operation_id="getMonth",
        opt=needs(Access.LOOK),
        summary="A month's report",
    )
    async def get_month(
        request: AnyRequest,
        month: Annotated[str, PathParameter(pattern=MONTH_PATTERN, description="Such as 2026-10.")],
        zone: Zone = None,
        format: Annotated[  # noqa: A002
            ReportFormat, QueryParameter(description="JSON, Markdown, or a page that needs nothing else.")
        ] = "json",
    ) -> Response[MonthlyReport]:
        """A month in a time zone by user, group, type and node, with the month before it to compare."""
        return send(
            await services.usage.month(
                viewer_of(request), MonthQuestion(month=month, zone=zone, format=format)
            )
        )

    return get_month
