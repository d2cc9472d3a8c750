"""The Litestar application: all resources under /api/v1, errors in one shape."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Response, Router, get
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from gpuherd import __version__
from gpuherd.api.access import Access, check_routes, guard_route, needs
from gpuherd.api.errors import EXCEPTION_HANDLERS
from gpuherd.api.resources import (
    account,
    accounts,
    audit,
    booking_policy,
    bookings,
    calendar,
    enroll,
    feeds,
    fleet,
    gpus,
    health,
    history,
    live,
    nodes,
    oidc,
    recent,
    reports,
    session,
    setup,
    slots,
    timeline,
    tokens,
    usage,
    users,
)
from gpuherd.api.services import Services

__all__ = ["MAX_BODY_BYTES", "RESOURCES", "build_rest"]

MAX_BODY_BYTES = 1_048_576
RESOURCES = (
    fleet,
    nodes,
    recent,
    gpus,
    users,
    history,
    usage,
    bookings,
    timeline,
    slots,
    booking_policy,
    session,
    oidc,
    setup,
    account,
    tokens,
    feeds,
    calendar,
    accounts,
    audit,
    health,
    live,
    enroll,
    reports,
)


def build_rest(services: Services) -> Litestar:
    """Make the application. Nothing starts and no service is called before the first request."""

    @get("/openapi.json", include_in_schema=False, opt=needs(Access.OPEN))
    async def get_openapi() -> Response[bytes]:
        """Describe this API."""
        from gpuherd.api.openapi import schema_of  # noqa: PLC0415 - it imports this module

        return Response(schema_of(app), media_type="application/json")

    router = Router(
        "/api/v1",
        route_handlers=[
            *(handler for module in RESOURCES for handler in module.handlers(services)),
            get_openapi,
        ],
        guards=[guard_route],
    )
    config: dict[str, Any] = {
        "request_max_body_size": MAX_BODY_BYTES,
        "exception_handlers": EXCEPTION_HANDLERS,
    }
    app = Litestar(
        [router],
        openapi_config=OpenAPIConfig(
            title="gpuherd",
            version=__version__,
            use_handler_docstrings=True,
            # Never reached: the schema is served above, after it was completed. An own path keeps
            # Litestar's default pages, which load scripts from elsewhere, away.
            path="/unused-schema",
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
        logging_config=None,
        **config,
    )
    check_routes(app)
    return app
