"""A browser that logs in to a hub by way of an OpenID provider."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import aiohttp
import pytest

pytest.importorskip("joserfc", reason="the extra gpuherd[oidc] is not installed")

from joserfc import jwt
from joserfc.jwk import RSAKey

from gpuherd.api.hub import Hub
from gpuherd.api.resources import oidc
from gpuherd.api.resources.oidc import local_target
from gpuherd.api.sparing_log import SparingLog
from gpuherd.auth.oidc import OidcWay
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.way_settings import OidcSettings
from gpuherd.auth.ways import LoginWays
from support.hub import eventually, running_hub
from support.oidc_provider import ScriptedProvider, scripted_provider
from support.people import PASSWORD, add_account

KEY = RSAKey.generate_key(2048, {"kid": "one"})
PROXY = {"X-Forwarded-For": "192.0.2.7"}


class Browser:
    """Keeps cookies, and follows redirects only when told."""

    def __init__(self, hub: Hub, provider: ScriptedProvider, session: aiohttp.ClientSession) -> None:
        self.hub = hub
        self.provider = provider
        self._session = session
        self.headers: dict[str, str] = {}
        self.cookies: list[str] = []
        """``Set-Cookie`` headers of the last answer."""

    async def go(self, url: str) -> tuple[int, str]:
        """Open an address; gives status and where it leads."""
        url = urljoin(self.hub.url, url)
        async with self._session.get(url, headers=self.headers, allow_redirects=False) as response:
            self.cookies = response.headers.getall("Set-Cookie", [])
            return response.status, urljoin(url, response.headers.get("Location", ""))

    async def start(self, target: str | None = None) -> str:
        """Press the button; gives the provider's address."""
        query = "" if target is None else "?" + urlencode({"return": target})
        status, location = await self.go(f"api/v1/login/oidc{query}")
        assert status == 302
        return location

    async def come_back(self, provider_url: str, **changes: str) -> str:
        """Log in at the provider and come back; gives where that leads."""
        answer = {**self.provider.approve(provider_url), **changes}
        return await self.arrive(provider_url, answer)

    async def arrive(self, provider_url: str, answer: dict[str, str]) -> str:
        """Come back with an answer."""
        callback = urlsplit(dict(parse_qsl(urlsplit(provider_url).query))["redirect_uri"]).path
        status, location = await self.go(f"{callback}?{urlencode(answer)}")
        assert status == 302
        return location

    async def name(self) -> str | None:
        """Tell who the hub thinks this is."""
        async with self._session.get(
            urljoin(self.hub.url, "api/v1/session"), headers=self.headers
        ) as response:
            account = (await response.json())["account"]
        return None if account is None else str(account["name"])

    async def log_in(self, name: str, password: str) -> int:
        """Log in with a password instead."""
        url = urljoin(self.hub.url, "api/v1/session")
        async with self._session.post(url, json={"name": name, "password": password}) as response:
            return response.status


def played(
    folder: Path,
    story: Callable[[Browser], Awaitable[None]],
    *,
    oidc: dict[str, Any] | None = None,
    **hub: Any,
) -> None:
    async def run() -> None:
        async with scripted_provider() as provider:
            provider.keys = [KEY.as_dict(private=False)]
            provider.token = lambda nonce: jwt.encode(
                {"alg": "RS256", "kid": "one"},
                {
                    "iss": provider.issuer,
                    "aud": "hub",
                    "sub": "17",
                    "iat": int(time.time()),
                    "exp": int(time.time()) + 60,
                    "nonce": nonce,
                    "preferred_username": "alice",
                    "groups": ["gpu-admins"],
                },
                KEY,
            )
            settings = OidcSettings(issuer=provider.issuer, client_id="hub", label="X", **(oidc or {}))
            options = {
                "ways": LoginWays(redirect=OidcWay(settings)),
                "login": LoginSettings(oidc=settings, admin_groups=("gpu-admins",)),
            }
            async with (
                running_hub(folder, hub_options=options, **hub) as running,
                aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
            ):
                await story(Browser(running, provider, session))

    asyncio.run(run())


@pytest.mark.parametrize("base_path", ["/", "/gpus/"])
def test_browser_comes_back_logged_in_where_it_was(tmp_path: Path, base_path: str) -> None:
    async def story(browser: Browser) -> None:
        there = f"{base_path}?node=a100-1&x=%20"
        url = await browser.start(there)
        assert url.startswith(browser.provider.issuer)
        (cookie,) = browser.cookies
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        assert await browser.come_back(url) == urljoin(browser.hub.url, there)
        assert await browser.name() == "alice"
        assert len(browser.cookies) == 2
        assert any(
            cookie.startswith("gpuherd-login=") and "Max-Age=0" in cookie for cookie in browser.cookies
        )
        account = browser.hub.records.people.account_by_name("alice")
        assert account is not None
        assert (account.source, account.role) == ("oidc", "admin")

    played(tmp_path, story, base_path=base_path)


def test_button_is_told_of(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        url = urljoin(browser.hub.url, "api/v1/session")
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert (await response.json())["redirect"] == {
                "label": "X",
                "url": "api/v1/login/oidc",
            }

    played(tmp_path, story)


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example.org/",
        "//evil.example.org/",
        "/\\evil.example.org/",
        "/\t/evil.example.org",
        "/\n/evil.example.org",
        "\\\\evil.example.org",
        "javascript:alert(1)",
        "evil.example.org",
        "/a\r\nSet-Cookie: x=y",
        "/é",
        "@evil.example.org",
        ".evil.example.org",
        "/" + "x" * 2000,
        "",
    ],
)
def test_nobody_is_led_elsewhere(target: str) -> None:
    assert local_target(target) == "?"


@pytest.mark.parametrize("target", ["/", "/gpus/?node=a", "?timeline", "/a//b", "/#x"])
def test_way_back_to_the_page_is_kept(target: str) -> None:
    assert local_target(target) == target


def test_foreign_target_leads_to_the_page(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        landed = await browser.come_back(await browser.start("//evil.example.org/"))
        assert landed.rstrip("?") == browser.hub.url
        assert await browser.name() == "alice"

    played(tmp_path, story, base_path="/gpus/")


def test_answer_without_the_cookie_of_this_browser_logs_nobody_in(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        url = await browser.start()
        browser._session.cookie_jar.clear()
        assert (await browser.come_back(url)) == f"{browser.hub.url}?login&problem=login_expired"
        assert await browser.name() is None
        assert browser.hub.records.people.load().accounts == ()

    played(tmp_path, story, base_path="/gpus/")


def test_answer_works_once_even_with_the_cookie(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        url = await browser.start()
        answer = browser.provider.approve(url)
        await browser.arrive(url, answer)
        assert "problem=login_expired" in await browser.arrive(url, answer)

    played(tmp_path, story)


def test_trouble_leads_to_the_form_with_a_code(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        for changes, problem in (
            ({"state": "x"}, "login_expired"),
            ({"error": "access_denied"}, "login_denied"),
            ({"error": "<script>"}, "login_failed"),
            ({"code": "unknown"}, "login_failed"),
            ({"iss": "https://evil.example.org"}, "login_failed"),
        ):
            landed = await browser.come_back(await browser.start(), **changes)
            assert landed == f"{browser.hub.url}?login&problem={problem}", changes
            assert await browser.name() is None

    played(tmp_path, story)


def test_answer_that_says_something_twice_is_refused(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        url = await browser.start()
        answer = urlencode(browser.provider.approve(url))
        _, location = await browser.go(f"api/v1/login/oidc/callback?{answer}&state=x")
        assert location.endswith("problem=login_failed")

    played(tmp_path, story)


def test_many_failures_are_answered_without_asking_the_provider(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "_sparing", SparingLog(logging.getLogger("sso"), limit=10))

    async def story(browser: Browser) -> None:
        url = await browser.start()
        for number in range(20):  # one machine has all addresses of a /64
            browser.headers = {"X-Forwarded-For": f"2001:db8::{number:x}", "X-Forwarded-Proto": "https"}
            assert "problem=login_expired" in await browser.arrive(url, {"code": "x", "state": "x"})
        before = len(browser.provider.asked)
        assert "problem=too_many_attempts" in await browser.come_back(await browser.start())
        assert len(browser.provider.asked) == before
        assert sum(record.name == "sso" for record in caplog.records) == 11, "10 of one kind, 1 of another"
        browser.headers = {"X-Forwarded-For": "192.0.2.8", "X-Forwarded-Proto": "https"}
        assert "problem" not in await browser.start()  # others are not held up

    played(tmp_path, story, trusted_proxies=("127.0.0.1",))


def test_name_of_a_local_account_is_not_taken_over(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        add_account(browser.hub, "alice", "admin", password=PASSWORD)
        assert (await browser.come_back(await browser.start())).endswith("problem=name_taken")
        assert await browser.name() is None

    played(tmp_path, story)


def test_provider_that_is_down_leaves_the_other_ways(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        add_account(browser.hub, "carol", "admin", password=PASSWORD)
        browser.provider.is_frozen = True
        _, location = await browser.go("api/v1/login/oidc")
        assert location.endswith("?login&problem=provider_down")
        assert await browser.log_in("carol", PASSWORD) == 201
        assert await browser.name() == "carol"

    played(tmp_path, story, oidc={"deadline_seconds": 1.0})


def test_behind_a_listed_proxy_with_https(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        browser.headers = {**PROXY, "X-Forwarded-Proto": "https", "Host": "gpus.example.org"}
        url = await browser.start()
        asked = dict(parse_qsl(urlsplit(url).query))
        assert asked["redirect_uri"] == "https://gpus.example.org/api/v1/login/oidc/callback"
        (cookie,) = browser.cookies
        assert cookie.startswith("__Host-gpuherd-login=")
        assert "Secure" in cookie

    played(tmp_path, story, trusted_proxies=("127.0.0.1",), allowed_hosts=("gpus.example.org",))


def test_plain_http_from_elsewhere_is_no_place_to_log_in(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        browser.headers = {**PROXY, "X-Forwarded-Proto": "http"}
        _, location = await browser.go("api/v1/login/oidc")
        assert location.endswith("?login&problem=insecure")

    played(tmp_path, story, trusted_proxies=("127.0.0.1",))


def test_configured_address_is_used_whatever_the_host(tmp_path: Path) -> None:
    wanted = "https://gpus.example.org/gpus/api/v1/login/oidc/callback"

    async def story(browser: Browser) -> None:
        assert dict(parse_qsl(urlsplit(await browser.start()).query))["redirect_uri"] == wanted

    played(tmp_path, story, oidc={"redirect_url": wanted}, base_path="/gpus/")


def test_unknown_host_makes_no_address(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        browser.headers = {"Host": "evil.example.org"}
        assert (await browser.go("api/v1/login/oidc"))[0] == 421
        assert browser.provider.asked == []

    played(tmp_path, story)


def test_hub_without_a_provider_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession() as session:
            for path in ("api/v1/login/oidc", "api/v1/login/oidc/callback?code=x&state=y"):
                async with session.get(hub.url + path, allow_redirects=False) as response:
                    assert response.status == 404
                    assert (await response.json())["error"]["code"] == "not_found"

    asyncio.run(run())


@pytest.mark.attack
@pytest.mark.promise("guessing-waits")
def test_an_address_cannot_make_the_hub_ask_a_slow_provider_any_number_of_times(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        provider = browser.provider
        url = await browser.start()
        provider.asked.clear()
        provider.is_frozen = True
        answer = provider.approve(url)
        tries = [asyncio.create_task(browser.arrive(url, answer)) for _ in range(60)]
        await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
        await eventually(lambda: provider.asked.count("/token") >= 20)
        ended = await asyncio.gather(*tries)
        assert provider.asked.count("/token") == 20
        assert sum("problem=too_many_attempts" in location for location in ended) == 40
        assert sum("problem=provider_down" in location for location in ended) == 20
        provider.is_frozen = False
        assert "problem" not in await browser.come_back(await browser.start()), (
            "an outage is not its users' fault"
        )

    played(tmp_path, story, oidc={"deadline_seconds": 2})
