"""Who may use which address: every route names what it asks for, and one that names nothing cannot be built.

Routes give ``opt=needs(Access.…)``. Whether someone may touch *this* booking or account is the handler's own matter:
an owner cannot be told from an address.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol, cast

from litestar import Litestar, Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute

from gpuherd.api.asgi import Scope
from gpuherd.api.errors import HttpError
from gpuherd.model.people import Viewer

__all__ = ["Access", "Identification", "access_of", "check_access", "check_routes", "needs", "viewer_of"]

VIEWER_KEY = "gpuherd.viewer"


class Access(Enum):
    """What a route asks of who uses it."""

    OPEN = "open"
    """Nothing: logging in, setting up."""
    NODE = "node"
    """A node's credential, which the handler checks."""
    COUNTS = "counts"
    """To see how many devices are free."""
    LOOK = "look"
    """To see the herd, at least under pseudonyms."""
    ACCOUNT = "account"
    """To be logged in, to read what is one's own."""
    BOOK = "book"
    """A member, who may write bookings."""
    SELF = "self"
    """To be logged in by a session, not by a token: passwords, tokens, sessions."""
    ADMIN = "admin"
    """An admin."""
    ADMIN_SELF = "admin_self"
    """An admin who is logged in by a session, not by a token: what would outlive the token that did it."""


class Identification(Protocol):
    """Tells who makes a request."""

    async def viewer(self, scope: Scope) -> Viewer:
        """Find out; a bad or expired credential is nobody, never an error."""


def needs(access: Access) -> dict[str, Any]:
    """Give the ``opt`` of a route."""
    return {"access": access}


def access_of(handler: BaseRouteHandler) -> Access | None:
    """Give what a route asks for; none if it forgot to say."""
    return cast("Access | None", handler.opt.get("access"))


def viewer_of(connection: Request[Any, Any, Any] | ASGIConnection[Any, Any, Any, Any]) -> Viewer:
    """Give who makes this request."""
    return cast("Viewer", cast("dict[str, Any]", connection.scope)[VIEWER_KEY])


def check_access(viewer: Viewer, access: Access) -> None:
    """Raise ``HttpError`` 401 for someone who should log in first, 403 for someone for whom that would not help."""
    if _suffices(viewer, access):
        return
    if viewer.account is None:
        raise HttpError(
            401, "login_needed", "log in first, or send an API token as Authorization: Bearer ghu_…"
        )
    needed = _NEEDED.get(access, "more rights")
    raise HttpError(403, "forbidden", f"this needs {needed}; ask an admin of this hub")


_NEEDED = {
    Access.BOOK: "the role member, and for a token the scope book",
    Access.SELF: "a login in the browser; an API token is not enough",
    Access.ADMIN: "the role admin, and for a token the scope admin",
    Access.ADMIN_SELF: "the role admin and a login in the browser; an API token is not enough",
    Access.LOOK: "the scope read",
    Access.COUNTS: "the scope read",
    Access.ACCOUNT: "the scope read",
}


def _suffices(viewer: Viewer, access: Access) -> bool:
    match access:
        case Access.OPEN | Access.NODE:
            return True
        case Access.COUNTS:
            return viewer.privacy is not None
        case Access.LOOK:
            return viewer.privacy not in (None, "counts")
        case Access.ACCOUNT:
            return viewer.may("viewer", "read")
        case Access.SELF:
            return viewer.account is not None and viewer.via in ("session", "proxy")
        case Access.ADMIN_SELF:
            return _suffices(viewer, Access.ADMIN) and _suffices(viewer, Access.SELF)
        case Access.BOOK:
            return viewer.may("member", "book")
        case Access.ADMIN:
            return viewer.may("admin", "admin")


async def guard_route(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Litestar's guard for every route: a route that names nothing is closed.

    Asynchronous though it waits for nothing: one that is not would be called in another thread.
    """
    access = access_of(handler)
    if access is None:
        raise HttpError(403, "forbidden", "this address is not available")
    check_access(viewer_of(connection), access)


def check_routes(app: Litestar) -> None:
    """Raise ``RuntimeError`` for a route of the API that does not say who may use it; nothing else is reachable."""
    silent = [
        f"{'/'.join(sorted(handler.http_methods))} {route.path}"
        for route in app.routes
        if isinstance(route, HTTPRoute) and route.path.startswith("/api/")
        for handler in route.route_handlers
        if access_of(handler) is None and handler.http_methods != {"OPTIONS"}
    ]
    if silent:
        raise RuntimeError(f"routes that do not say who may use them: {', '.join(silent)}")
