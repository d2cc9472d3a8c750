"""/api/v1/accounts: everyone's accounts, for admins.

What makes someone able to log in is not done with a token: whoever stole one could make a door that stays open when
the token has ended.
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


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""
    return [*_accounts(services), *_keys(services)]


def _accounts(services: Services) -> list[Any]:
    @get("/accounts", operation_id="listAccounts", opt=needs(Access.ADMIN), summary="All accounts")
    async def list_accounts() -> tuple[Account, ...]:
        """Everyone who can log in, and those who are disabled."""
        return await services.people.accounts()

    @post(
        "/accounts",
        operation_id="createAccount",
        opt=needs(Access.ADMIN_SELF),
        summary="Make an account",
        status_code=201,
    )
    async def create_account(request: AnyRequest, data: JSONBody[AccountRequest]) -> CreatedAccount:
        """Make a local account. Unless a password is given, one is made up and told in the answer, this once.

        400 ``name_invalid``. 409 ``name_taken``, ``linux_name_taken``. 422 ``password_weak``.
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
        """Change role, groups, names, or keep someone out. Open streams of the person end at once.

        A token may neither change a role nor let someone in again: 403 ``forbidden``.
        409 ``last_admin``: somebody must be left to administer the hub; ``linux_name_taken``.
        """
        viewer = viewer_of(request)
        if data.role is not UNSET or data.is_disabled is False:
            check_access(viewer, Access.ADMIN_SELF)
        return await services.people.change_account(viewer, account_id, data)

    @delete(
        "/accounts/{account_id:str}",
        operation_id="eraseAccount",
        opt=needs(Access.ADMIN),
        summary="Forget a person",
        status_code=204,
    )
    async def erase_account(request: AnyRequest, account_id: AccountId) -> None:
        """Delete an account, its keys and calendars; bookings lose the name, those ahead are cancelled.

        To keep someone out without losing anything, change ``is_disabled`` instead. 409 ``last_admin``.
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
        """Make up a new password, told in the answer this once. Sessions, tokens and calendars of the person end.

        409 ``password_elsewhere``: another service keeps it.
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
        summary="Everything that is kept about a person",
    )
    async def export_account(request: AnyRequest, account_id: AccountId) -> Response[AccountExport]:
        """Account, sessions, tokens, calendars, bookings and the audit log's entries about a person, as one file.

        429 ``export_running``: one at a time.
        """
        return Response(
            await services.people.export(viewer_of(request), account_id),
            headers={"Content-Disposition": 'attachment; filename="gpuherd-account.json"'},
        )

    return [reset_password, end_sessions, export_account]
