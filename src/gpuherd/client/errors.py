"""What can go wrong between the client and the hub."""

from __future__ import annotations

from msgspec import structs

from gpuherd.client.views import HubError
from gpuherd.model.errors import Failed, GpuherdError
from gpuherd.model.text import clean

__all__ = ["LOGIN_NEEDED", "NOT_A_HUB", "OUTCOME_UNKNOWN", "HubOutdated", "HubRefused", "HubSilent"]

LOGIN_NEEDED = "login_needed"
OUTCOME_UNKNOWN = "outcome_unknown"
"""The error code of a hub that does not know whether it has made the change."""
NOT_A_HUB = "not_a_hub"
"""The code of an answer that is no hub's, but of something on the way."""
MESSAGE_LENGTH = 500
_NOT_ALLOWED = frozenset({401, 403})
_TOO_LATE = 408
_TOO_MANY = 429


class HubSilent(Failed):
    """The hub did not answer, or not as a hub does."""


class HubOutdated(HubSilent):
    """The hub answers, but is older than what is asked of it."""


class HubRefused(GpuherdError):  # noqa: N818 - what the hub did
    """The hub answered with an error. ``retry_after_seconds``: when it is worth another try, if the hub says so.

    ``hub``: which one, as it is called in commands; none if that is not known.
    """

    def __init__(
        self, status: int, detail: HubError, *, retry_after_seconds: int | None = None, hub: str | None = None
    ) -> None:
        message = clean(detail.message, MESSAGE_LENGTH)  # here, as it finds its way into many other sentences
        super().__init__(message)
        self.status = status
        self.detail = structs.replace(detail, message=message)
        self.retry_after_seconds = retry_after_seconds
        self.hub = hub

    @property
    def is_unheard(self) -> bool:
        """Whether it was turned away before anyone looked at it: nothing was done."""
        return self.status == _TOO_MANY

    @property
    def is_final(self) -> bool:
        """Whether the same would be refused again, and nothing was done.

        What took the hub too long it may still do. A proxy may say anything while the hub behind it is away.
        """
        if self.status >= 500 or self.status == _TOO_LATE or self.is_unheard:
            return False
        return self.status in _NOT_ALLOWED or not self.is_of_no_hub

    @property
    def is_of_no_hub(self) -> bool:
        """Whether something else than a hub has answered."""
        return self.detail.code == NOT_A_HUB
