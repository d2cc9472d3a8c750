"""GET /api/v1/health: how the hub itself is doing."""

from __future__ import annotations

from typing import Any

from litestar import Request, get

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.health import Health, HealthSummary
from gpuherd.api.services import Services

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/health", operation_id="getHealth", opt=needs(Access.OPEN), summary="How the hub is doing")
    async def get_health(request: Request[Any, Any, Any]) -> Health | HealthSummary:
        """Status with reasons, every loop, the store, links, viewers, and how each node's frames fare.

        The answer is 200 as long as the hub can answer at all; look at ``status``. Who sees no names sees nothing but
        that, and errors of the hub's own parts are for admins.
        """
        return services.health_view(viewer_of(request))

    return [get_health]
