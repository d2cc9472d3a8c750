"""Keys and open streams end when an account, a password, a role or a key does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from gpuherd.api.open_records import open_hub_records
from gpuherd.model.people import Account
from gpuherd.records.people import PeopleRecords
from support.hub import running_hub
from support.hub_process import ShiftedClock
from support.people import BY, add_account, add_session, add_token, bearer, browser, cookie, refresh
from support.running import PATIENCE_SECONDS


@contextlib.asynccontextmanager
async def stream(
    http: aiohttp.ClientSession, headers: dict[str, str]
) -> AsyncIterator[aiohttp.ClientResponse]:
    async with http.get("api/v1/stream", headers=headers) as response:
        assert response.status == 200
        assert await response.content.readuntil(b"\n\n")
        yield response


async def ends(response: aiohttp.ClientResponse) -> None:
    """Read until the end, which has to come soon."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with contextlib.suppress(aiohttp.ClientPayloadError):
            while await response.content.readany():
                pass


Change = Callable[[PeopleRecords, Account, str, str], object]

CHANGES: dict[str, Change] = {
    "role": lambda people, account, *_: people.change_account(
        account.id, role="viewer", now=time.time(), by=BY
    ),
    "disabled": lambda people, account, *_: people.change_account(
        account.id, is_disabled=True, now=time.time(), by=BY
    ),
    "groups": lambda people, account, *_: people.change_account(
        account.id, groups=("new",), now=time.time(), by=BY
    ),
    "password": lambda people, account, *_: people.set_password(account.id, "x", now=time.time(), by=BY),
    "erased": lambda people, account, *_: people.erase_account(account.id, now=time.time(), by=BY),
    "keys ended": lambda people, account, session_id, token_id: (
        people.end_session(session_id, account_id=None, now=time.time(), by=BY),
        people.end_token(token_id, account_id=None, now=time.time(), by=BY),
    ),
}
STAYS = {"role", "groups"}
"""After these the person is still someone, only with other rights: the browser connects again."""


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.promise("keys-and-streams-end")
def test_a_change_by_another_program_ends_streams_and_keys(tmp_path: Path, name: str) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            account, bystander = add_account(hub, "ada"), add_account(hub, "bob")
            add_account(hub, "root", "admin")
            await refresh(hub)
            session = add_session(hub, account)
            token_id, secret = add_token(hub, account, ("read", "book"))
            other = cookie(add_session(hub, bystander).secret)
            async with (
                stream(http, cookie(session.secret)) as by_session,
                stream(http, bearer(secret)) as by_token,
                stream(http, other) as untouched,
            ):
                with contextlib.closing(open_hub_records(hub.settings)) as beside:
                    await asyncio.to_thread(CHANGES[name], beside.people, account, session.id, token_id)
                await ends(by_session)
                await ends(by_token)
                assert await untouched.content.readuntil(b"\n\n")
            for headers, may_stay in ((cookie(session.secret), True), (bearer(secret), name == "groups")):
                async with http.get("api/v1/stream", headers=headers) as response:
                    assert response.status == (200 if name in STAYS and may_stay else 401)

    asyncio.run(story())


def test_a_key_that_expires_ends_its_stream(tmp_path: Path) -> None:
    clock = ShiftedClock()

    async def story() -> None:
        async with (
            running_hub(tmp_path, hub_options={"clock": clock}) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            account = add_account(hub, "ada")
            await refresh(hub)
            session = add_session(hub, account, lifetime_seconds=3600.0)
            _, secret = add_token(hub, account, lifetime_seconds=3600.0)
            longer = add_session(hub, account, lifetime_seconds=86_400.0)
            async with (
                stream(http, cookie(session.secret)) as by_session,
                stream(http, bearer(secret)) as by_token,
                stream(http, cookie(longer.secret)) as by_another,
            ):
                clock.shift_seconds = 3600.0
                await ends(by_session)
                await ends(by_token)
                assert await by_another.content.readuntil(b"\n\n")

    asyncio.run(story())


def test_logging_out_ends_the_stream_of_that_browser_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            account = add_account(hub, "ada")
            await refresh(hub)
            async with (
                browser(hub, account) as here,
                browser(hub, account) as there,
                stream(here, {}) as shown_here,
                stream(there, {}) as shown_there,
            ):
                async with here.delete("api/v1/session") as response:
                    assert response.status == 204
                await ends(shown_here)
                assert await shown_there.content.readuntil(b"\n\n")

    asyncio.run(story())


def test_the_first_account_ends_what_was_shown_to_everyone_at_the_machine(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path) as hub,
            aiohttp.ClientSession(hub.url) as http,
            stream(http, {}) as shown,
        ):
            with contextlib.closing(open_hub_records(hub.settings)) as beside:
                beside.people.create_account(
                    name="ada", display_name="Ada", role="admin", now=time.time(), by=BY
                )
            await ends(shown)
            async with http.get("api/v1/stream") as response:
                assert response.status == 401

    asyncio.run(story())


def test_what_is_public_stays_open_when_accounts_change(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            running_hub(tmp_path, public="read") as hub,
            aiohttp.ClientSession(hub.url) as http,
            stream(http, {}) as shown,
        ):
            add_account(hub, "ada")
            await refresh(hub)
            for _ in range(3):
                assert await shown.content.readuntil(b"\n\n")

    asyncio.run(story())


async def _post(http: aiohttp.ClientSession, path: str, body: object) -> int:
    async with http.post(f"api/v1/{path}", json=body) as response:
        return response.status


@pytest.mark.promise("keys-and-streams-end")
def test_changing_ones_password_ends_everything_but_this_session(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            account = add_account(hub, "ada", password="the old one")
            await refresh(hub)
            other = add_session(hub, account)
            _, secret = add_token(hub, account)
            async with browser(hub, account) as own:
                wrong = {"old_password": "not it at all", "new_password": "the new one"}
                assert await _post(own, "account/password", wrong) == 403
                weak = {"old_password": "the old one", "new_password": "ada"}
                assert await _post(own, "account/password", weak) == 422
                right = {"old_password": "the old one", "new_password": "the new one"}
                assert await _post(own, "account/password", right) == 204
                async with own.get("api/v1/fleet") as response:
                    assert response.status == 200
            for headers in (cookie(other.secret), bearer(secret)):
                async with http.get("api/v1/fleet", headers=headers) as response:
                    assert response.status == 401
            assert await _post(http, "session", {"name": "ada", "password": "the old one"}) == 401
            assert await _post(http, "session", {"name": "ada", "password": "the new one"}) == 201

    asyncio.run(story())


def test_a_hub_learns_of_keys_made_elsewhere_and_of_their_end(tmp_path: Path) -> None:
    """As with two hubs on one database."""

    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            account = add_account(hub, "ada")
            await refresh(hub)
            session = add_session(hub, account)
            async with http.get("api/v1/fleet", headers=cookie(session.secret)) as response:
                assert response.status == 200
            hub.records.people.end_session(session.id, account_id=None, now=time.time(), by=BY)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    async with http.get("api/v1/fleet", headers=cookie(session.secret)) as response:
                        if response.status == 401:
                            break
                    await asyncio.sleep(0.05)

    asyncio.run(story())
