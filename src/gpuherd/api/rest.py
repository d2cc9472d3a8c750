"""The Litestar application: all resources under /api/v1, errors in one shape."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Router
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from gpuherd import __version__
from gpuherd.api.access import check_routes, guard_route
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

__all__ = ["RESOURCES", "build_rest"]

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

    router = Router(
        "/api/v1",
        route_handlers=[handler for module in RESOURCES for handler in module.handlers(services)],
        guards=[guard_route],
    )
    config: dict[str, Any] = {
        "request_max_body_size": None,  # app.py bounds what is read
        "exception_handlers": EXCEPTION_HANDLERS,
    }
    app = Litestar(
        [router],
        openapi_config=OpenAPIConfig(
            title="gpuherd",
            version=__version__,
            use_handler_docstrings=True,
            # Never reached: app.py serves the completed schema. A path of its own disables Litestar's default
            # pages, which load scripts from elsewhere.
            path="/unused-schema",
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
        logging_config=None,
        **config,
    )
    check_routes(app)
    return app
