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
    @patch(
        "/account", operation_id="changeOwnAccount", opt=needs(Access.SELF), summary="Change one's account"
    )
    async def change_own_account(request: AnyRequest, data: JSONBody[Renaming]) -> Account:
        """Change what others read as one's name. All else is for admins."""
        return await services.people.rename(viewer_of(request), data.display_name)

    @post(
        "/account/password",
        operation_id="changePassword",
        opt=needs(Access.SELF),
        summary="Change one's password",
        status_code=204,
    )
    async def change_password(request: AnyRequest, data: JSONBody[PasswordChange]) -> None:
        """All tokens and all other sessions of the account end.

        403 ``password_wrong``: the old one is not right. 422 ``password_weak``: the new one will not do. 409
        ``password_elsewhere``: another service keeps it.
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
        summary="Where one is logged in",
    )
    async def list_own_sessions(request: AnyRequest) -> list[KeptSession]:
        """Every browser that is logged in as oneself, the newest first."""
        return await services.people.sessions(viewer_of(request))

    @delete(
        "/account/sessions",
        operation_id="endOtherSessions",
        opt=needs(Access.SELF),
        summary="Log out everywhere else",
        status_code=204,
    )
    async def end_other_sessions(request: AnyRequest) -> None:
        """End all of one's sessions but this one."""
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
        """End one of one's sessions. 404: one has none with this id."""
        await services.people.end_session(viewer_of(request), session_id)

    return [list_own_sessions, end_other_sessions, end_own_session]


def _everything(services: Services) -> list[Any]:
    @get(
        "/account/export",
        operation_id="exportOwnAccount",
        opt=needs(Access.SELF),
        summary="Everything that is kept about oneself",
    )
    async def export_own_account(request: AnyRequest) -> Response[AccountExport]:
        """Account, sessions, tokens, calendars, bookings and the audit log's entries about oneself, as one file.

        429 ``export_running``: one at a time.
        """
        return Response(
            await services.people.export_own(viewer_of(request)),
            headers={"Content-Disposition": 'attachment; filename="gpuherd-account.json"'},
        )

    @post(
        "/account/erase",
        operation_id="eraseOwnAccount",
        opt=needs(Access.SELF),
        summary="Have oneself forgotten",
        status_code=204,
    )
    async def erase_own_account(request: AnyRequest, data: JSONBody[ErasureRequest]) -> Response[None]:
        """Delete one's account, keys and calendars; bookings lose the name, those ahead are cancelled.

        403 ``password_wrong``. 409 ``last_admin``: somebody must be left to administer the hub. 422 ``name_wrong``.
        """
        sender = sender_of(request)
        services.reception.check_secrecy(sender)
        await services.people.erase_own(
            viewer_of(request), name=data.name, password=data.password, sender=sender
        )
        return Response(None, status_code=204, headers={"Set-Cookie": cleared_cookie(sender)})

    return [export_own_account, erase_own_account]
