"""/api/v1/account: one's own account, its password, sessions, and everything that is kept about it."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, patch, post
from litestar.params import JSONBody, PathParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.cookies import cleared_cookie
from gpuherd.api.people_views import AccountExport, ErasureRequest, KeptSession, PasswordChange, Renaming
from gpuherd.api.sender import sender_of
from gpuherd.api.services import Services
from gpuherd.model.people import Account

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    return [*_self(services), *_sessions(services), *_everything(services)]


def _self(services: Services) -> list[Any]:
    @patch("/account", operation_id="changeOwnAccount", opt=needs(Access.SELF), summary="Change your account")
    async def change_own_account(request: AnyRequest, data: JSONBody[Renaming]) -> Account:
        """Change your display name. Only admins can change anything else. 409 ``name_taken``: another account or a
        group has this name.
        """
        return await services.people.rename(viewer_of(request), data.display_name)

    @post(
        "/account/password",
        operation_id="changePassword",
        opt=needs(Access.SELF),
        summary="Change your password",
        status_code=204,
    )
    async def change_password(request: AnyRequest, data: JSONBody[PasswordChange]) -> None:
        """Ends all tokens and all other sessions of the account. 403 ``password_wrong``: the old password is wrong.
        422 ``password_weak``: the new one is too weak. 409 ``password_elsewhere``: another service manages it.
        """
        sender = sender_of(request)
        services.reception.check_secrecy(sender)
        await services.people.change_password(viewer_of(request), data, sender)

    return [change_own_account, change_password]


def _sessions(services: Services) -> list[Any]:
    @get(
        "/account/sessions",
        operation_id="listOwnSessions",
        opt=needs(Access.SELF),
        summary="Your sessions",
    )
    async def list_own_sessions(request: AnyRequest) -> list[KeptSession]:
        """Your sessions, the newest first."""
        return await services.people.sessions(viewer_of(request))

    @delete(
        "/account/sessions",
        operation_id="endOtherSessions",
        opt=needs(Access.SELF),
        summary="Log out everywhere else",
        status_code=204,
    )
    async def end_other_sessions(request: AnyRequest) -> None:
        """End all your sessions except this one."""
        await services.people.end_other_sessions(viewer_of(request))

    @delete(
        "/account/sessions/{session_id:str}",
        operation_id="endOwnSession",
        opt=needs(Access.SELF),
        summary="Log out somewhere else",
        status_code=204,
    )
    async def end_own_session(
        request: AnyRequest, session_id: Annotated[str, PathParameter(description="The session's id.")]
    ) -> None:
        """End one of your sessions. 404: you have none with this id."""
        await services.people.end_session(viewer_of(request), session_id)

    return [list_own_sessions, end_other_sessions, end_own_session]


def _everything(services: Services) -> list[Any]:
    @get(
        "/account/export",
        operation_id="exportOwnAccount",
        opt=needs(Access.SELF),
        summary="Everything that is stored about you",
    )
    async def export_own_account(request: AnyRequest) -> Response[AccountExport]:
        """Your account, sessions, tokens, calendars, bookings and audit entries, as one file. 429
        ``export_running``: only one at a time.
        """
        return Response(
            await services.people.export_own(viewer_of(request)),
            headers={"Content-Disposition": 'attachment; filename="gpuherd-account.json"'},
        )

    @post(
        "/account/erase",
        operation_id="eraseOwnAccount",
        opt=needs(Access.SELF),
        summary="Erase your account",
        status_code=204,
    )
    async def erase_own_account(request: AnyRequest, data: JSONBody[ErasureRequest]) -> Response[None]:
        """Delete your account, tokens and calendars. Past bookings lose the name, future ones are cancelled. 403
        ``password_wrong``. 409 ``last_admin``: the hub needs an admin. 422 ``name_wrong``.
        """
        sender = sender_of(request)
        services.reception.check_secrecy(sender)
        await services.people.erase_own(
            viewer_of(request), name=data.name, password=data.password, sender=sender
        )
        cleared = cleared_cookie(sender, services.mount)
        return Response(None, status_code=204, headers={"Set-Cookie": cleared})

    return [export_own_account, erase_own_account]
