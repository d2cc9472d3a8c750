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

    @get("/health", operation_id="getHealth", opt=needs(Access.OPEN), summary="Health of the hub")
    async def get_health(request: Request[Any, Any, Any]) -> Health | HealthSummary:
        """Status with reasons, every loop, the store, connections, viewers, and statistics of each node's frames.
        The response is 200 as long as the hub can respond; check ``status``. Viewers who see no names get only
        the status, and only admins see errors of the hub's parts.
        """
        return services.health_view(viewer_of(request))

    return [get_health]
