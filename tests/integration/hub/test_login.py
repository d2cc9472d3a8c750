"""Logging in and out, and setting up, against a real hub."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api import reception
from gpuherd.api.hub import Hub
from gpuherd.auth.settings import LoginSettings
from support.authority import Authority, needs_openssl
from support.hub import impatient, running_hub
from support.people import (
    BY,
    PASSWORD,
    QUICK,
    add_account,
    add_session,
    bearer,
    browser,
    cookie,
    error_code,
    refresh,
    until_known,
)

Story = Callable[[Hub, aiohttp.ClientSession], Awaitable[None]]


def play(state_dir: Path, story: Story, *, login: LoginSettings | None = None, **options: Any) -> None:
    """Run a hub and tell a story with a browser against it."""

    async def run() -> None:
        async with (
            running_hub(state_dir, hub_options={"login": login}, **options) as hub,
            browser(hub) as http,
        ):
            await story(hub, http)

    asyncio.run(run())


async def whoami(http: aiohttp.ClientSession, **options: Any) -> str | None:
    async with http.get("api/v1/session", **options) as response:
        assert response.status == 200
        account = (await response.json())["account"]
        return None if account is None else str(account["name"])


def actions(hub: Hub) -> list[str]:
    return [entry.action for entry in reversed(hub.records.audit.search())]


# -- setting up ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("set-up-link-works-once")
def test_the_set_up_link_makes_the_first_admin_once(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        link = await hub.setup_link()
        assert link is not None
        assert link.startswith(f"{hub.url}?setup#ghc_")
        body = {"code": link.partition("#")[2], "name": "ada", "password": PASSWORD}
        body["display_name"] = "  Ada\u202e L. "
        async with http.post("api/v1/setup", json={**body, "password": "short"}) as response:
            assert (response.status, await error_code(response)) == (422, "password_weak")
        async with http.post("api/v1/setup", json=body) as response:
            assert response.status == 201
            view = await response.json()
        assert view["is_set_up"]
        assert (view["account"]["role"], view["account"]["display_name"]) == (
            "admin",
            "Ada\N{REPLACEMENT CHARACTER} L.",
        )
        assert await whoami(http) == "ada"
        async with http.post("api/v1/setup", json={**body, "name": "eve"}) as response:
            assert (response.status, await error_code(response)) == (409, "setup_done")
        assert await hub.setup_link() is None
        assert actions(hub) == ["setup.link", "account.setup", "login.ok"]

    play(tmp_path, story)


@pytest.mark.promise("passwords-are-judged-quickly")
@pytest.mark.parametrize("has_admin", [True, False])
def test_without_the_right_to_set_up_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_admin: bool
) -> None:
    judged: list[str] = []
    monkeypatch.setattr(reception, "check_new_password", lambda password, name: judged.append(password))

    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        code = "no code"
        if has_admin:
            code = str(await hub.setup_link()).partition("#")[2]
            add_account(hub, "ada", "admin", password=PASSWORD)
            await refresh(hub)
        for _ in range(20):
            body = {"code": code, "name": "eve", "password": "qwertyuiop" * 100}
            async with http.post("api/v1/setup", json=body) as response:
                refused = (409, "setup_done") if has_admin else (403, "code_invalid")
                assert (response.status, await error_code(response)) == refused
        async with http.post("api/v1/setup", json=body) as response:
            assert (response.status, await error_code(response)) == (429, "too_many_attempts")

    play(tmp_path, story)
    assert judged == []


@pytest.mark.parametrize("code", ["", "ghc_" + "A" * 43, "x" * 200])
def test_a_wrong_code_sets_nothing_up(tmp_path: Path, code: str) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        first, second = await hub.setup_link(), await hub.setup_link()
        assert first is not None
        assert first != second
        for wrong in (code, first.partition("#")[2]):  # a newer link voids the older
            body = {"code": wrong, "name": "eve", "password": PASSWORD}
            async with http.post("api/v1/setup", json=body) as response:
                assert (response.status, await error_code(response)) == (403, "code_invalid")
        assert hub.records.people.load().accounts == ()

    play(tmp_path, story)


@pytest.mark.promise("set-up-link-works-once")
def test_of_rivals_with_one_code_exactly_one_becomes_admin(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        link = await hub.setup_link()
        assert link is not None

        async def try_it(name: str) -> int:
            body = {"code": link.partition("#")[2], "name": name, "password": PASSWORD}
            async with http.post("api/v1/setup", json=body) as response:
                return response.status

        answers = await asyncio.gather(*(try_it(f"rival-{number}") for number in range(6)))
        assert answers.count(201) == 1
        assert set(answers) <= {201, 403, 409, 429}  # 429: too many at a time from one address
        assert len(hub.records.people.load().accounts) == 1

    play(tmp_path, story)


# -- logging in and out --------------------------------------------------------------------------------------------


def test_logging_in_and_out(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        add_account(hub, "Ada", password=PASSWORD)
        async with http.post("api/v1/session", json={"name": "ada", "password": PASSWORD}) as response:
            assert response.status == 201
            set_cookie = response.headers["Set-Cookie"]
        assert set_cookie.startswith("gpuherd=ghs_")
        assert set_cookie.endswith("; Max-Age=604800; Path=/; HttpOnly; SameSite=Lax")
        assert await whoami(http) == "Ada"
        async with http.get("api/v1/fleet") as response:
            assert response.status == 200
        (kept,) = hub.records.people.sessions(hub.records.people.load().accounts[0].id, hub.clock.wall())
        secret = set_cookie.partition("=")[2].partition(";")[0]
        async with http.delete("api/v1/session") as response:
            assert response.status == 204
            assert response.headers["Set-Cookie"].startswith("gpuherd=; Max-Age=0;")
        assert await whoami(http) is None
        # What the browser has forgotten is also void for whoever kept a copy.
        assert await whoami(http, headers=cookie(secret)) is None
        assert [entry.subject for entry in hub.records.audit.search(action="logout")] == [kept.id]
        assert actions(hub) == ["account.create", "login.ok", "logout"]

    play(tmp_path, story)


def test_an_old_hash_is_renewed_at_login(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        account = add_account(hub, "ada", password=PASSWORD)
        before = hub.records.people.password_hash(account.id)
        for _ in range(2):
            async with http.post("api/v1/session", json={"name": "ada", "password": PASSWORD}) as response:
                assert response.status == 201
        after = hub.records.people.password_hash(account.id)
        assert before != after
        assert "m=65536,t=3,p=1" in str(after)

    play(tmp_path, story)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_hash_renewed_too_late_brings_no_old_password_back(tmp_path: Path, is_same: bool) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        account, people = add_account(hub, "ada", password=PASSWORD), hub.records.people
        rehash, latest = people.rehash_password, QUICK.hash(PASSWORD if is_same else "another one")

        def overtaken(*given: str) -> None:
            people.set_password(account.id, latest, now=hub.clock.wall(), by=BY)
            rehash(*given)

        people.rehash_password = overtaken  # type: ignore[method-assign, assignment]
        async with http.post("api/v1/session", json={"name": "ada", "password": PASSWORD}) as response:
            assert response.status == (201 if is_same else 401)
        assert people.password_hash(account.id) == latest

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", PASSWORD + "x"), ("ada", ""), ("eve", PASSWORD), ("gone", PASSWORD), ("ldap-user", PASSWORD)],
)
def test_what_is_wrong_is_not_told(
    tmp_path: Path, name: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        ada = add_account(hub, "ada", password=PASSWORD)
        gone = add_account(hub, "gone", password=PASSWORD)
        elsewhere = add_account(hub, "ldap-user", source="ldap", subject="1")
        known = {account.name: account.id for account in (ada, gone, elsewhere)}
        hub.records.people.change_account(gone.id, is_disabled=True, now=hub.clock.wall(), by=BY)
        async with http.post("api/v1/session", json={"name": name, "password": password}) as response:
            assert (response.status, await response.json()) == (
                401,
                {"error": {"code": "login_failed", "message": "wrong name or password"}},
            )
            assert "Set-Cookie" not in response.headers
        (entry,) = hub.records.audit.search(action="login.failed")
        assert (entry.subject, entry.peer) == (known.get(name, "unknown name"), "127.0.0.1")
        shown = name if name in known else "unknown name"
        assert caplog.messages.count(f"login failed for {shown} from 127.0.0.1") == 1

    play(tmp_path, story)


@pytest.mark.parametrize("typed", [PASSWORD, "\u202e\x00" + "a" * 190])
def test_what_was_typed_as_a_name_is_not_kept(
    tmp_path: Path, typed: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        async with http.post("api/v1/session", json={"name": typed, "password": "x"}) as response:
            assert response.status == 401
        (entry,) = hub.records.audit.search(action="login.failed")
        assert (entry.subject, entry.detail, entry.who) == ("unknown name", "", "nobody")
        assert "login failed for unknown name" in caplog.text
        assert typed not in caplog.text

    play(tmp_path, story)


@pytest.mark.promise("guessing-waits")
def test_whoever_fails_too_often_has_to_wait(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        statuses = []
        for _ in range(21):
            async with http.post("api/v1/session", json={"name": "ada", "password": "wrong"}) as response:
                statuses.append(response.status)
        assert statuses == [401] * 20 + [429]
        # Also with the right password: or guessing would go on.
        async with http.post("api/v1/session", json={"name": "ada", "password": PASSWORD}) as response:
            assert (response.status, await error_code(response)) == (429, "too_many_attempts")
            assert int(response.headers["Retry-After"]) > 0
        assert len(hub.records.audit.search(action="login.failed")) == 20

    play(tmp_path, story)


def test_a_crowd_is_turned_away_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        async def try_it(number: int) -> int:
            body = {"name": f"someone-{number}", "password": "wrong"}
            async with http.post("api/v1/session", json=body) as response:
                return response.status

        statuses = await asyncio.gather(*(try_it(number) for number in range(60)))
        assert set(statuses) == {401, 429}
        assert statuses.count(401) <= 20 + 32 + 1  # the queue and those at work when the address is shut out

    play(tmp_path, story, login=LoginSettings(parallel=1))


def test_a_planted_session_is_not_taken_over(tmp_path: Path) -> None:
    """Session fixation: whatever cookie the browser brings along, a login gives it another."""

    async def story(hub: Hub, _: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        planted = add_session(hub, add_account(hub, "eve"))
        await refresh(hub)
        body = {"name": "ada", "password": PASSWORD}
        async with aiohttp.ClientSession(hub.url, cookie_jar=aiohttp.DummyCookieJar()) as http:
            for secret in (planted.secret, "ghs_" + "A" * 43):
                async with http.post("api/v1/session", json=body, headers=cookie(secret)) as response:
                    assert response.status == 201
                    assert secret not in response.headers["Set-Cookie"]
                assert await whoami(http, headers=cookie(secret)) is None

    play(tmp_path, story)


def test_a_token_is_no_way_to_keep_a_browser_logged_in(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        account = add_account(hub, "ada", password=PASSWORD)
        await refresh(hub)
        async with browser(hub, account) as own:
            async with own.post("api/v1/account/tokens", json={"title": "t", "scopes": ["read"]}) as response:
                token = (await response.json())["token"]
            for path, status in (("account/sessions", 403), ("account/tokens", 403), ("fleet", 200)):
                async with http.get(f"api/v1/{path}", headers=bearer(token)) as response:
                    assert response.status == status

    play(tmp_path, story)


@pytest.mark.promise("token-within-role")
def test_a_token_has_no_more_rights_than_its_owner(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        account = add_account(hub, "ada", "viewer")
        await refresh(hub)
        async with browser(hub, account) as own:
            for scope in ("book", "admin"):
                body = {"title": "t", "scopes": ["read", scope]}
                async with own.post("api/v1/account/tokens", json=body) as response:
                    assert (response.status, await error_code(response)) == (422, "scope_needs_role")
            for bad in (
                {"title": "t", "scopes": ["read"], "days": 367},
                {"title": "t", "scopes": []},
                {"title": "", "scopes": ["read"]},
                {"title": "t", "scopes": ["everything"]},
            ):
                async with own.post("api/v1/account/tokens", json=bad) as response:
                    assert response.status == 400

    play(tmp_path, story)


# -- who can read along --------------------------------------------------------------------------------------------

ELSEWHERE = {"X-Forwarded-For": "203.0.113.5", "X-Forwarded-Proto": "http"}


@pytest.mark.promise("no-password-over-plain-http")
def test_passwords_are_not_taken_over_plain_http_from_elsewhere(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        body = {"name": "ada", "password": PASSWORD}
        setup = {"code": "x", **body}
        for path, sent in (("session", body), ("setup", setup)):
            async with http.post(f"api/v1/{path}", json=sent, headers=ELSEWHERE) as response:
                assert (response.status, await error_code(response)) == (403, "insecure")
        async with http.get("api/v1/session", headers=ELSEWHERE) as response:
            assert (await response.json())["password"] == {"is_taken_here": False}
        assert actions(hub) == ["account.create"]

    play(tmp_path / "listed", story, trusted_proxies=("127.0.0.1",))
    # A proxy that nobody has listed: it says it were HTTPS, which anyone could say.
    ELSEWHERE["X-Forwarded-Proto"] = "https"
    play(tmp_path / "unlisted", story)


def test_plain_http_may_be_allowed(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        headers = {"X-Forwarded-For": "203.0.113.5", "X-Forwarded-Proto": "http"}
        body = {"name": "ada", "password": PASSWORD}
        async with http.post("api/v1/session", json=body, headers=headers) as response:
            assert response.status == 201
            assert response.headers["Set-Cookie"].startswith("gpuherd=")
            assert "Secure" not in response.headers["Set-Cookie"]
        (entry,) = hub.records.audit.search(action="login.ok")
        assert entry.peer == "203.0.113.5"

    play(tmp_path, story, login=LoginSettings(plain_http=True), trusted_proxies=("127.0.0.0/8",))


def test_behind_a_listed_proxy_with_https_the_cookie_is_bound_to_https(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        headers = {"X-Forwarded-For": "198.51.100.1, 203.0.113.5", "X-Forwarded-Proto": "https"}
        body = {"name": "ada", "password": PASSWORD}
        async with http.post("api/v1/session", json=body, headers=headers) as response:
            assert response.status == 201
            set_cookie = response.headers["Set-Cookie"]
        assert set_cookie.startswith("__Host-gpuherd=ghs_")
        assert set_cookie.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")
        assert "Domain" not in set_cookie
        secret = set_cookie.partition("=")[2].partition(";")[0]
        for names, found in (("__Host-gpuherd", "ada"), ("gpuherd", None)):
            sent = {**headers, "Cookie": f"{names}={secret}"}
            assert await whoami(http, headers=sent) == found
        # The one before the last could have been written by anyone.
        (entry,) = hub.records.audit.search(action="login.ok")
        assert entry.peer == "203.0.113.5"

    play(tmp_path, story, trusted_proxies=("127.0.0.1",))


# -- the database is away ------------------------------------------------------------------------------------------


def test_while_the_records_do_not_answer_those_who_are_in_stay_in(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        account = add_account(hub, "ada", password=PASSWORD)
        await refresh(hub)
        known = add_session(hub, account)
        await until_known(hub, http, cookie(known.secret), known.secret)
        body = {"name": "ada", "password": PASSWORD}
        blocker = sqlite3.connect(tmp_path / "records.sqlite", isolation_level=None)
        with contextlib.closing(blocker), impatient(hub, 0.5):
            blocker.execute("BEGIN IMMEDIATE")
            async with http.post("api/v1/session", json=body) as response:
                assert (response.status, await error_code(response)) == (503, "unavailable")
                assert "Retry-After" in response.headers
            assert await whoami(http, headers=cookie(known.secret)) == "ada"
            async with http.get("api/v1/fleet", headers=cookie(known.secret)) as response:
                assert response.status == 200
        async with http.post("api/v1/session", json=body) as response:
            assert response.status == 201

    play(tmp_path, story)


@needs_openssl
@pytest.mark.promise("cookies-guarded", "hsts-where-the-hub-serves-tls")
def test_over_its_own_https_the_cookie_is_bound_to_https(tmp_path: Path) -> None:
    issued = Authority(tmp_path / "ca").issue("IP:127.0.0.1")

    async def story(hub: Hub, _: aiohttp.ClientSession) -> None:
        add_account(hub, "ada", password=PASSWORD)
        trust = ssl.create_default_context(cafile=tmp_path / "ca" / "ca.pem")
        connector = aiohttp.TCPConnector(ssl=trust)
        body = {"name": "ada", "password": PASSWORD}
        async with aiohttp.ClientSession(hub.url, connector=connector) as http:
            async with http.post("api/v1/session", json=body) as response:
                assert response.status == 201
                set_cookie = response.headers["Set-Cookie"]
            assert set_cookie.startswith("__Host-gpuherd=ghs_")
            assert set_cookie.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")
            shown = {"Cookie": set_cookie.partition(";")[0]}
            assert await whoami(http, headers=shown) == "ada"
            for path in (
                "",
                "api/v1/health",
                "api/v1/stream",
                "api/v1/openapi.json",
                "nothing",
                "api/v1/nothing",
            ):
                async with http.get(path) as response:
                    assert response.headers["Strict-Transport-Security"] == "max-age=31536000", path

    play(tmp_path / "hub", story, tls_certificate=issued.file, tls_key=issued.key)
