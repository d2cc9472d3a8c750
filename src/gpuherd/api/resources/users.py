"""GET /api/v1/users: who holds what."""

from __future__ import annotations

from typing import Any

from litestar import Request, get

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.services import Services
from gpuherd.fleet.views import UserView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/users", operation_id="listUsers", opt=needs(Access.LOOK), summary="Who holds what")
    async def list_users(request: Request[Any, Any, Any]) -> tuple[UserView, ...]:
        """Everyone with a process on a device now."""
        return services.user_views(viewer_of(request))

    return [list_users]
