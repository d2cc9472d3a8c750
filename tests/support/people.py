"""Accounts, browsers and tokens for tests against a running hub."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from typing import Any

import aiohttp

from gpuherd.api.hub import Hub
from gpuherd.auth.passwords import Passwords
from gpuherd.auth.secrets import API_TOKEN_PREFIX, digest, new_id, new_secret
from gpuherd.auth.sessions import NewSession, begin_session
from gpuherd.model.people import Account, Actor, Role, TokenScope
from support.running import PATIENCE_SECONDS

BY = Actor(account_id=None, label="test")
PASSWORD = "correct horse battery"
QUICK = Passwords(rounds=1, memory_kib=8)
"""Hashes like a hub's own, only with less work."""


def add_account(
    hub: Hub, name: str, role: Role = "member", *, password: str | None = None, **options: Any
) -> Account:
    """Make an account in the records of a hub, which sees it within a second; ``refresh`` has it look at once."""
    return hub.records.people.create_account(
        name=name,
        display_name=options.pop("display_name", name),
        role=role,
        password_hash=None if password is None else QUICK.hash(password),
        now=hub.clock.wall(),
        by=BY,
        **options,
    )


async def refresh(hub: Hub) -> None:
    """Have the hub look at the records now."""
    await hub._entered.identity.refresh()


def add_session(hub: Hub, account: Account, *, lifetime_seconds: float = 3600.0) -> NewSession:
    """Log someone in without a password."""
    return begin_session(
        hub.records.people,
        account,
        now=hub.clock.wall(),
        lifetime_seconds=lifetime_seconds,
        by=Actor(account_id=account.id, label=account.name, peer="192.0.2.7"),
        agent="a browser",
    )


def add_token(
    hub: Hub,
    account: Account,
    scopes: Collection[TokenScope] = frozenset[TokenScope]({"read"}),
    *,
    lifetime_seconds: float = 3600.0,
) -> tuple[str, str]:
    """Make a token, whatever the role; gives its id and its secret."""
    now, token_id, secret = hub.clock.wall(), new_id(), new_secret(API_TOKEN_PREFIX)
    hub.records.people.add_token(
        id=token_id,
        digest=digest(secret),
        account_id=account.id,
        title="for a test",
        scopes=scopes,
        created_at=now,
        expires_at=now + lifetime_seconds,
        by=BY,
    )
    return token_id, secret


async def until_known(hub: Hub, http: aiohttp.ClientSession, headers: dict[str, str], secret: str) -> None:
    """Use a key until the hub knows it by heart: one that was used while accounts changed is looked up again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while hub._entered.identity._authority.key(digest(secret)) is None:
            async with http.get("api/v1/health", headers=headers) as response:
                assert response.status == 200


def cookie(secret: str) -> dict[str, str]:
    """Give the header with which a browser shows its session over plain HTTP."""
    return {"Cookie": f"gpuherd={secret}"}


def bearer(secret: str) -> dict[str, str]:
    """Give the header with which a program shows its token."""
    return {"Authorization": f"Bearer {secret}"}


@contextlib.asynccontextmanager
async def browser(
    hub: Hub, account: Account | None = None, **options: Any
) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser: it keeps cookies, and is logged in if an account is given."""
    jar = aiohttp.CookieJar(unsafe=True)
    if account is not None:
        jar.update_cookies({"gpuherd": add_session(hub, account).secret})
    async with aiohttp.ClientSession(hub.url, cookie_jar=jar, **options) as http:
        yield http


async def error_code(response: aiohttp.ClientResponse) -> str:
    """Give the code of an answer that is no success."""
    return str((await response.json())["error"]["code"])
