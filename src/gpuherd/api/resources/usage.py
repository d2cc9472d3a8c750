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
        limit: Annotated[
            int, QueryParameter(ge=1, le=MAX_ROWS, description="Maximum number of rows.")
        ] = 1000,
        format: Format = "json",  # noqa: A002
    ) -> Response[UsageReport]:
        """GPU-hours held, busy and wasted, energy and cost in a range, the largest first. The range is rounded to
        quarters of an hour, further back to hours; ``start`` and ``end`` are the exact range. The time of a
        shared GPU is divided among its users.
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
        summary="Who used how much over time",
    )
    async def get_usage_over_time(
        request: AnyRequest,
        by: By = "user",
        since: Since = None,
        until: Until = None,
        step: Annotated[UsageStep, QueryParameter(description="Length of a step.")] = "day",
        top: Annotated[
            int,
            QueryParameter(ge=1, le=MAX_TOP, description="How many to list; the rest is summed up."),
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
        """The largest of a range, by hour, day, week or month in a time zone."""
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
        summary="Who to ask for a GPU",
    )
    async def get_usage_trends(request: AnyRequest, format: Format = "json") -> Response[TrendsView]:  # noqa: A002
        """What each user holds now and held recently, users who hold most first."""
        return send(await services.usage.trends(viewer_of(request), format))

    @get(
        "/usage/sessions",
        operation_id="getUsageSessions",
        opt=needs(Access.LOOK),
        summary="Who used which device when",
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
        limit: Annotated[int, QueryParameter(ge=1, le=MAX_SESSIONS, description="Maximum number.")] = 200,
        format: Format = "json",  # noqa: A002
    ) -> Response[UsageSessions]:
        """Sessions on devices that overlap a range, the latest first. Start and end are those of the session;
        figures cover its part in the range. Full command lines are visible to the user who ran them and to
        admins, while they are stored. If admins read those of others, the audit log records it.
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
        """The share of devices that are busy, held and free, for each hour of the week in a time zone."""
        question = HoursQuestion(span=Wanted(since=since, until=until), zone=zone, type=type, format=format)
        return send(await services.usage.hours(viewer_of(request), question))

    @get(
        "/usage/distribution",
        operation_id="getUtilizationDistribution",
        opt=needs(Access.LOOK),
        summary="Utilisation of devices in use",
    )
    async def get_distribution(
        request: AnyRequest,
        since: Since = None,
        until: Until = None,
        type: Type = None,  # noqa: A002
        format: Format = "json",  # noqa: A002
    ) -> Response[Distribution]:
        """Device-hours by utilisation, for devices in use."""
        question = DistributionQuestion(span=Wanted(since=since, until=until), type=type, format=format)
        return send(await services.usage.distribution(viewer_of(request), question))

    return [get_busy_hours, get_distribution]


def _month(services: Services) -> Any:
    @get(
        "/usage/months/{month:str}",
        operation_id="getMonth",
        opt=needs(Access.LOOK),
        summary="Monthly report",
    )
    async def get_month(
        request: AnyRequest,
        month: Annotated[str, PathParameter(pattern=MONTH_PATTERN, description="Such as 2026-10.")],
        zone: Zone = None,
        format: Annotated[  # noqa: A002
            ReportFormat, QueryParameter(description="JSON, Markdown, or a self-contained HTML page.")
        ] = "json",
    ) -> Response[MonthlyReport]:
        """A month in a time zone by user, group, type and node, compared with the month before."""
        return send(
            await services.usage.month(
                viewer_of(request), MonthQuestion(month=month, zone=zone, format=format)
            )
        )

    return get_month
