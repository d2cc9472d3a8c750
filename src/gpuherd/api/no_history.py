"""The past of a hub that remembers nothing: every question gets the same clear answer."""

from __future__ import annotations

from typing import NoReturn

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import (
    DevicesQuestion,
    DistributionQuestion,
    HerdQuestion,
    HostQuestion,
    HoursQuestion,
    MonthQuestion,
    OverTimeQuestion,
    SessionsQuestion,
    TableFormat,
    UsageQuestion,
    UserQuestion,
)
from gpuherd.model.people import Viewer

__all__ = ["NoHistory", "NoUsage"]


def _refuse() -> NoReturn:
    raise HttpError(
        503,
        "history_off",
        "history is turned off on this hub; an admin can set history.enabled = true in gpuherd.toml",
    )


class NoHistory:
    """A ``HistoryService`` that knows nothing."""

    async def devices(self, viewer: Viewer, question: DevicesQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def host(self, viewer: Viewer, question: HostQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def herd(self, viewer: Viewer, question: HerdQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def user(self, viewer: Viewer, question: UserQuestion) -> NoReturn:
        """Refuse."""
        _refuse()


class NoUsage:
    """A ``UsageService`` that knows nothing."""

    async def usage(self, viewer: Viewer, question: UsageQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def over_time(self, viewer: Viewer, question: OverTimeQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def trends(self, viewer: Viewer, format: TableFormat) -> NoReturn:  # noqa: A002 - as the API has it
        """Refuse."""
        _refuse()

    async def hours(self, viewer: Viewer, question: HoursQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def distribution(self, viewer: Viewer, question: DistributionQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def sessions(self, viewer: Viewer, question: SessionsQuestion) -> NoReturn:
        """Refuse."""
        _refuse()

    async def month(self, viewer: Viewer, question: MonthQuestion) -> NoReturn:
        """Refuse."""
        _refuse()
