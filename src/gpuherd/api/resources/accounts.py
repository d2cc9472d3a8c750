"""/api/v1/accounts: everyone's accounts, for admins.

A token cannot give rights that outlive it, nor delete an account: no thief of a token keeps a way in, or the command
lines of others, once the token has ended.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, delete, get, patch, post
from litestar.params import JSONBody, PathParameter
from msgspec import UNSET

from gpuherd.api.access import Access, check_access, needs, viewer_of
from gpuherd.api.people_views import (
    AccountChange,
    AccountExport,
    AccountRequest,
    CreatedAccount,
    TemporaryPassword,
)
from gpuherd.api.services import Services
from gpuherd.model.people import Account

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]
AccountId = Annotated[str, PathParameter(description="The account's id.")]


def _gives_rights(change: AccountChange) -> bool:
    """Tell whether a change can grant lasting rights: to log in, to act, to read, to book."""
    return change.is_disabled is False or any(
        part is not UNSET for part in (change.role, change.groups, change.linux_names)
    )


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    return [*_accounts(services), *_keys(services)]


def _accounts(services: Services) -> list[Any]:
    @get("/accounts", operation_id="listAccounts", opt=needs(Access.ADMIN), summary="All accounts")
    async def list_accounts() -> tuple[Account, ...]:
        """All accounts, including disabled ones."""
        return await services.people.accounts()

    @post(
        "/accounts",
        operation_id="createAccount",
        opt=needs(Access.ADMIN_SELF),
        summary="Create an account",
        status_code=201,
    )
    async def create_account(request: AnyRequest, data: JSONBody[AccountRequest]) -> CreatedAccount:
        """Create a local account. Without a password, one is generated and shown only in this response. 400
        ``name_invalid``. 409 ``name_taken``, ``linux_name_taken``. 422 ``password_weak``.
        """
        return await services.people.create_account(viewer_of(request), data)

    @get(
        "/accounts/{account_id:str}",
        operation_id="getAccount",
        opt=needs(Access.ADMIN),
        summary="One account",
    )
    async def get_account(account_id: AccountId) -> Account:
        """One account. 404: there is none with this id."""
        return await services.people.account(account_id)

    @patch(
        "/accounts/{account_id:str}",
        operation_id="changeAccount",
        opt=needs(Access.ADMIN),
        summary="Change an account",
    )
    async def change_account(
        request: AnyRequest, account_id: AccountId, data: JSONBody[AccountChange]
    ) -> Account:
        """Change role, groups or names, or disable an account. Its open streams end at once. A token can change the
        display name and disable an account. Role, groups, ``linux_names`` and enabling need a login in the
        browser: 403 ``forbidden``. 409 ``last_admin``: the hub needs an admin; ``linux_name_taken``;
        ``name_taken``: another account or a group has this display name.
        """
        viewer = viewer_of(request)
        if _gives_rights(data):
            check_access(viewer, Access.ADMIN_SELF)
        return await services.people.change_account(viewer, account_id, data)

    @delete(
        "/accounts/{account_id:str}",
        operation_id="eraseAccount",
        opt=needs(Access.ADMIN_SELF),
        summary="Erase an account",
        status_code=204,
    )
    async def erase_account(request: AnyRequest, account_id: AccountId) -> None:
        """Delete an account, its tokens and calendars. Past bookings lose the name, future ones are cancelled. To
        lock someone out without losing anything, set ``is_disabled`` instead. 409 ``last_admin``.
        """
        await services.people.erase(viewer_of(request), account_id)

    return [list_accounts, create_account, get_account, change_account, erase_account]


def _keys(services: Services) -> list[Any]:
    @post(
        "/accounts/{account_id:str}/password",
        operation_id="resetPassword",
        opt=needs(Access.ADMIN_SELF),
        summary="Reset a password",
        status_code=200,
    )
    async def reset_password(request: AnyRequest, account_id: AccountId) -> TemporaryPassword:
        """Generate a new password, shown only in this response. Ends sessions, tokens and calendars of the person.
        409 ``password_elsewhere``: another service manages it.
        """
        return await services.people.reset_password(viewer_of(request), account_id)

    @delete(
        "/accounts/{account_id:str}/sessions",
        operation_id="endSessions",
        opt=needs(Access.ADMIN_SELF),
        summary="Log someone out everywhere",
        status_code=204,
    )
    async def end_sessions(request: AnyRequest, account_id: AccountId) -> None:
        """End all sessions of a person, and the addresses of their calendars."""
        await services.people.log_out_everywhere(viewer_of(request), account_id)

    @get(
        "/accounts/{account_id:str}/export",
        operation_id="exportAccount",
        opt=needs(Access.ADMIN),
        summary="Everything that is stored about a person",
    )
    async def export_account(request: AnyRequest, account_id: AccountId) -> Response[AccountExport]:
        """Account, sessions, tokens, calendars, bookings and audit entries of a person, as one file. 429
        ``export_running``: only one at a time.
        """
        return Response(
            await services.people.export(viewer_of(request), account_id),
            headers={"Content-Disposition": 'attachment; filename="gpuherd-account.json"'},
        )

    return [reset_password, end_sessions, export_account]
