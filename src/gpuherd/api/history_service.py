"""The past as the HTTP resources see it: questions, and answers that are ready to be sent."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from gpuherd.model.history import UsageKey, UsageStep
from gpuherd.model.people import Viewer

__all__ = [
    "MAX_DEVICES",
    "MAX_ROWS",
    "MAX_SESSIONS",
    "MAX_TOP",
    "Answer",
    "DevicesQuestion",
    "DistributionQuestion",
    "HerdQuestion",
    "HistoryService",
    "HostQuestion",
    "HoursQuestion",
    "MonthQuestion",
    "OverTimeQuestion",
    "ReportFormat",
    "SessionsQuestion",
    "TableFormat",
    "UsageFilter",
    "UsageQuestion",
    "UsageService",
    "UserQuestion",
    "Wanted",
]

MAX_DEVICES = 64
MAX_ROWS = 10_000
MAX_SESSIONS = 1_000
MAX_TOP = 50

TableFormat = Literal["json", "csv"]
ReportFormat = Literal["json", "markdown", "html"]


class Answer(Struct, frozen=True, kw_only=True):
    """An answer as it is sent: whoever asks the same gets the same bytes."""

    body: bytes
    media_type: str = "application/json"
    file_name: str | None = None
    """Of a download; made by the hub, never of what a node or a person has said."""
    policy: str | None = None
    """Of a page: what a browser lets it do."""


class Wanted(Struct, frozen=True, kw_only=True):
    """From when to when, as it was written; none: the last 24 hours."""

    since: str | None = None
    until: str | None = None


class DevicesQuestion(Struct, frozen=True, kw_only=True):
    """Numbers of some devices."""

    span: Wanted
    devices: tuple[str, ...]
    """Each as ``node id:UUID``."""
    metrics: tuple[str, ...]
    points: int
    format: TableFormat = "json"


class HostQuestion(Struct, frozen=True, kw_only=True):
    """Numbers of one node's host."""

    span: Wanted
    node_id: str
    metrics: tuple[str, ...]
    points: int
    format: TableFormat = "json"


class HerdQuestion(Struct, frozen=True, kw_only=True):
    """The whole herd, or the devices of one type."""

    span: Wanted
    type: str | None
    points: int
    format: TableFormat = "json"


class UserQuestion(Struct, frozen=True, kw_only=True):
    """What one user held. ``user`` is what the viewer calls them: in public, a pseudonym."""

    span: Wanted
    user: str
    points: int
    format: TableFormat = "json"


class UsageFilter(Struct, frozen=True, kw_only=True):
    """Whose use is asked for; users are those whom the viewer sees."""

    user: str | None = None
    group: str | None = None
    node: str | None = None
    type: str | None = None
    job: str | None = None
    device: str | None = None


class UsageQuestion(Struct, frozen=True, kw_only=True):
    """Use by user, group, node, type, job or device."""

    span: Wanted
    by: UsageKey
    only: UsageFilter
    limit: int
    format: TableFormat = "json"


class OverTimeQuestion(Struct, frozen=True, kw_only=True):
    """Use step by step, of the largest."""

    span: Wanted
    by: UsageKey
    only: UsageFilter
    step: UsageStep
    top: int
    zone: str | None
    format: TableFormat = "json"


class HoursQuestion(Struct, frozen=True, kw_only=True):
    """When the herd is busy."""

    span: Wanted
    zone: str | None
    type: str | None
    format: TableFormat = "json"


class DistributionQuestion(Struct, frozen=True, kw_only=True):
    """How well the devices in use worked."""

    span: Wanted
    type: str | None
    format: TableFormat = "json"


class SessionsQuestion(Struct, frozen=True, kw_only=True):
    """Stays on devices."""

    span: Wanted
    only: UsageFilter
    limit: int
    format: TableFormat = "json"


class MonthQuestion(Struct, frozen=True, kw_only=True):
    """A month's report."""

    month: str
    zone: str | None
    format: ReportFormat = "json"


class HistoryService(Protocol):
    """Series of numbers. On the event loop.

    ``HttpError``: 400 of what cannot be asked, 404 of what there is not, 503 if nothing can be answered now.
    """

    async def devices(self, viewer: Viewer, question: DevicesQuestion) -> Answer:
        """Give a ``SeriesView`` of devices."""

    async def host(self, viewer: Viewer, question: HostQuestion) -> Answer:
        """Give a ``SeriesView`` of a node's host."""

    async def herd(self, viewer: Viewer, question: HerdQuestion) -> Answer:
        """Give a ``HerdSeries``."""

    async def user(self, viewer: Viewer, question: UserQuestion) -> Answer:
        """Give a ``UserSeries``."""


class UsageService(Protocol):
    """Who used what. On the event loop; errors as of ``HistoryService``."""

    async def usage(self, viewer: Viewer, question: UsageQuestion) -> Answer:
        """Give a ``UsageReport``."""

    async def over_time(self, viewer: Viewer, question: OverTimeQuestion) -> Answer:
        """Give a ``UsageOverTime``."""

    async def trends(self, viewer: Viewer, format: TableFormat) -> Answer:  # noqa: A002 - as the API has it
        """Give a ``TrendsView``."""

    async def hours(self, viewer: Viewer, question: HoursQuestion) -> Answer:
        """Give an ``HourMap``."""

    async def distribution(self, viewer: Viewer, question: DistributionQuestion) -> Answer:
        """Give a ``Distribution``."""

    async def sessions(self, viewer: Viewer, question: SessionsQuestion) -> Answer:
        """Give ``UsageSessions``."""

    async def month(self, viewer: Viewer, question: MonthQuestion) -> Answer:
        """Give a ``MonthlyReport``, as JSON or to be read."""
