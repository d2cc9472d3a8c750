"""GET /api/v1/users: who holds what."""

from __future__ import annotations

from typing import Any

from litestar import get

from gpuherd.api.access import Access, needs
from gpuherd.api.services import Services
from gpuherd.fleet.views import UserView

__all__ = ["handlers"]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/users", operation_id="listUsers", opt=needs(Access.LOOK), summary="Who holds what")
    async def list_users() -> tuple[UserView, ...]:
        """Everyone with a process on a device right now."""
        return services.user_views()

    return [list_users]
