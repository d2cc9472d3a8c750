"""/api/v1/session: who am I, logging in and out."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.cookies import cleared_cookie
from gpuherd.api.reception import LoggedIn
from gpuherd.api.sender import Sender, sender_of
from gpuherd.api.services import Services
from gpuherd.model.people import Account, PrivacyClass, TokenScope, Viewer, ViewerVia

__all__ = ["LoginRequest", "PasswordLogin", "RedirectLogin", "SessionView", "handlers", "logged_in"]


class LoginRequest(Struct, frozen=True, kw_only=True):
    """A name and a password."""

    name: Annotated[str, Meta(min_length=1, max_length=200, description="As typed.")]
    password: Annotated[str, Meta(max_length=1024)]


class PasswordLogin(Struct, frozen=True, kw_only=True):
    """Whether a name and password can be used."""

    is_taken_here: Annotated[
        bool,
        Meta(
            description="False: this page was loaded over plain HTTP from another machine, where others could read "
            "a password. POST would return 403 insecure."
        ),
    ]


class RedirectLogin(Struct, frozen=True, kw_only=True):
    """Single sign-on."""

    label: Annotated[str, Meta(description="Text of the button.")]
    url: Annotated[str, Meta(description="Address, relative to the hub's page; accepts ?return=PATH.")]


class SessionView(Struct, frozen=True, kw_only=True):
    """Who you are, what you can see, and how you can log in."""

    account: Annotated[Account | None, Meta(description="Null: nobody is logged in.")]
    via: Annotated[ViewerVia, Meta(description="How the account was recognised.")]
    privacy: Annotated[PrivacyClass | None, Meta(description="Privacy class; null: nothing is visible.")]
    scopes: Annotated[tuple[TokenScope, ...], Meta(description="What this session or token allows, sorted.")]
    is_set_up: Annotated[bool, Meta(description="False: nobody can log in until the set-up link is used.")]
    are_records_missing: Annotated[
        bool,
        Meta(
            description="True: the database is empty although this hub has had nodes or accounts; an admin has to "
            "restore a backup or start afresh."
        ),
    ] = False
    password: PasswordLogin
    redirect: Annotated[RedirectLogin | None, Meta(description="Null: not available.")]
    has_password: Annotated[
        bool, Meta(description="Whether the account has a password on this hub that you can change.")
    ]
    zone: Annotated[str, Meta(description="IANA time zone of times without one.")]
    bookings_enabled: bool


def _view(services: Services, viewer: Viewer, sender: Sender) -> SessionView:
    redirect = services.reception.ways.redirect
    return SessionView(
        account=viewer.account,
        via=viewer.via,
        privacy=viewer.privacy,
        scopes=tuple(sorted(viewer.scopes)),
        is_set_up=services.reception.is_set_up,
        are_records_missing=services.are_records_missing,
        password=PasswordLogin(is_taken_here=services.reception.takes_passwords(sender)),
        redirect=None if redirect is None else RedirectLogin(label=redirect.label, url="api/v1/login/oidc"),
        has_password=viewer.account is not None and viewer.account.source == "local",
        zone=services.zone,
        bookings_enabled=services.bookings_enabled,
    )


def logged_in(services: Services, entered: LoggedIn, sender: Sender) -> Response[SessionView]:
    """Answer a login that has just succeeded."""
    return Response(
        _view(services, entered.viewer(sender), sender),
        status_code=201,
        headers={"Set-Cookie": entered.cookie(sender, services.mount)},
    )


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/session", operation_id="getSession", opt=needs(Access.OPEN), summary="Current session")
    async def get_session(request: Request[Any, Any, Any]) -> SessionView:
        """Who you are, what you can see, and how you can log in."""
        return _view(services, viewer_of(request), sender_of(request))

    @post("/session", operation_id="logIn", opt=needs(Access.OPEN), summary="Log in", status_code=201)
    async def log_in(request: Request[Any, Any, Any], data: JSONBody[LoginRequest]) -> Response[SessionView]:
        """Log in with a name and password; the response sets a cookie. 401 ``login_failed``: wrong name or
        password. 403 ``insecure``: the hub accepts no passwords over plain HTTP. 429: too many attempts, from
        this address or in total.
        """
        sender = sender_of(request)
        services.reception.check_secrecy(sender)
        entered = await services.reception.log_in(
            data.name,
            data.password,
            sender=sender,
            agent=request.headers.get("user-agent", ""),
            before=viewer_of(request),
        )
        return logged_in(services, entered, sender)

    @delete("/session", operation_id="logOut", opt=needs(Access.OPEN), summary="Log out", status_code=204)
    async def log_out(request: Request[Any, Any, Any]) -> Response[None]:
        """End this session and remove the cookie. Without a session, this has no effect."""
        await services.reception.log_out(viewer_of(request))
        cleared = cleared_cookie(sender_of(request), services.mount)
        return Response(None, status_code=204, headers={"Set-Cookie": cleared})

    return [get_session, log_in, log_out]
