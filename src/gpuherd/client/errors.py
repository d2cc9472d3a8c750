"""What can go wrong between the client and the hub."""

from __future__ import annotations

from gpuherd.client.views import HubError
from gpuherd.model.errors import Failed, GpuherdError

__all__ = ["HubOutdated", "HubRefused", "HubSilent"]


class HubSilent(Failed):
    """The hub did not answer, or not as a hub does."""


class HubOutdated(HubSilent):
    """The hub answers, but is older than what is asked of it."""


class HubRefused(GpuherdError):  # noqa: N818 - what the hub did
    """The hub answered with an error. ``retry_after_seconds``: when it is worth another try, if the hub says so."""

    def __init__(self, status: int, detail: HubError, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(detail.message)
        self.status = status
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds
