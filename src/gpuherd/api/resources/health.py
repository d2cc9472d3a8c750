"""GET /api/v1/health: how the hub itself is doing."""

from __future__ import annotations

from typing import Any

from litestar import get

from gpuherd.api.access import Access, needs
from gpuherd.api.health import Health
from gpuherd.api.services import Services

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/health", operation_id="getHealth", opt=needs(Access.LOOK), summary="How the hub is doing")
    async def get_health() -> Health:
        """Status with reasons, every loop, the store, links, viewers, and how each node's frames fare.

        The answer is 200 as long as the hub can answer at all; look at ``status``.
        """
        return services.health()

    return [get_health]
