"""People whom a real nginx in front of the hub has logged in."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.auth.proxy_header import ProxyHeader
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.way_settings import ProxySettings
from gpuherd.auth.ways import LoginWays
from support.hub import running_hub
from support.nginx import NGINX_ADDRESS, need_nginx, running_nginx
from support.people import BY, add_account, refresh

Headers = dict[str, str]


def basic(name: str, password: str) -> Headers:
    """Give what a browser sends after it has asked for a password."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


ALICE = basic("alice", "alice's word")
BOB = basic("bob", "bob's word")
UNDERSCORES = {"X_Remote_User": "bob"}


@pytest.fixture(scope="module", autouse=True)
def nginx_here() -> None:
    need_nginx()


class Scene:
    """A hub behind nginx, and who asks."""

    def __init__(self, hub: Hub, nginx: str, session: aiohttp.ClientSession) -> None:
        self.hub = hub
        self.nginx = nginx
        self._session = session

    async def name(self, base: str, headers: Headers) -> str | None:
        """Tell as whom the hub sees a request."""
        async with self._session.get(f"{base}/api/v1/session", headers=headers) as response:
            assert response.status == 200, await response.text()
            account = (await response.json())["account"]
            return None if account is None else str(account["name"])

    async def status(self, path: str, headers: Headers) -> int:
        """Ask through nginx."""
        async with self._session.get(f"{self.nginx}{path}", headers=headers) as response:
            return response.status


def played(
    folder: Path,
    story: Callable[[Scene], Awaitable[None]],
    *,
    http: str = "",
    location: str = "",
    proxy: dict[str, Any] | None = None,
    **login: Any,
) -> None:
    settings = ProxySettings(**{"networks": (NGINX_ADDRESS,), **(proxy or {})})
    passwords = {"alice": "alice's word", "bob": "bob's word", "not a name": "word"}

    async def run() -> None:
        options = {
            "ways": LoginWays(header=ProxyHeader(settings)),
            "login": LoginSettings(proxy=settings, **login),
        }
        async with (
            running_hub(
                folder / "hub", hub_options=options, public="off", trusted_proxies=(NGINX_ADDRESS,)
            ) as hub,
            aiohttp.ClientSession() as session,
        ):
            with running_nginx(folder / "nginx", hub.url, passwords, http=http, location=location) as address:
                await story(Scene(hub, address, session))

    asyncio.run(run())


def test_nginx_says_who_someone_is(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        assert await scene.status("/api/v1/session", {}) == 401  # nginx itself wants a password
        assert await scene.name(scene.nginx, ALICE) == "alice"
        assert await scene.name(scene.nginx, BOB) == "bob"
        assert await scene.name(scene.nginx, ALICE) == "alice"
        accounts = scene.hub.records.people.load().accounts
        assert {(account.name, account.source, account.role) for account in accounts} == {
            ("alice", "proxy", "member"),
            ("bob", "proxy", "member"),
        }
        assert await scene.status("/api/v1/fleet", ALICE) == 200
        assert await scene.status("/api/v1/accounts", ALICE) == 403

    played(tmp_path, story)


def test_name_that_a_client_makes_up_counts_for_nothing(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        forged = {"X-Remote-User": "bob", "X-Forwarded-For": NGINX_ADDRESS}
        assert await scene.name(scene.nginx, ALICE | forged) == "alice"  # nginx overwrites it
        direct = scene.hub.url.rstrip("/")
        assert await scene.name(direct, forged) is None
        assert await scene.name(direct, forged | UNDERSCORES) is None
        # nginx drops names with underscores unless told otherwise.
        assert await scene.name(scene.nginx, ALICE | UNDERSCORES) == "alice"
        assert not scene.hub.records.people.account_by_name("bob")

    played(tmp_path, story)


def test_second_spelling_that_nginx_lets_through_is_nobody(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        assert await scene.name(scene.nginx, ALICE) == "alice"
        assert await scene.name(scene.nginx, ALICE | UNDERSCORES) is None
        assert await scene.name(scene.nginx, ALICE | {"x_remote-user": "bob"}) is None

    played(tmp_path, story, http="underscores_in_headers on;")


def test_names_that_are_none_do_not_get_an_account(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        assert await scene.name(scene.nginx, basic("not a name", "word")) is None
        assert scene.hub.records.people.load().accounts == ()

    played(tmp_path, story)


def test_groups_and_role_follow_what_nginx_says(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        add_account(scene.hub, "root-of-all", "admin")
        assert await scene.status("/api/v1/accounts", ALICE) == 200
        assert await scene.status("/api/v1/accounts", BOB) == 403
        alice = scene.hub.records.people.account_by_name("alice")
        assert alice is not None
        assert (alice.role, alice.groups) == ("admin", ("gpu-admins", "staff"))

    played(
        tmp_path,
        story,
        http='map $remote_user $groups { alice "staff,gpu-admins"; default ""; }',
        location="proxy_set_header X-Remote-Groups $groups;",
        proxy={"groups_header": "X-Remote-Groups"},
        default_role="viewer",
        admin_groups=("gpu-admins",),
    )


def test_closed_account_and_name_of_another_are_nobody(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        add_account(scene.hub, "bob", "admin")
        await refresh(scene.hub)
        assert await scene.name(scene.nginx, BOB) is None  # a local account has that name
        assert await scene.name(scene.nginx, ALICE) == "alice"
        people = scene.hub.records.people
        alice = people.account_by_name("alice")
        assert alice is not None
        people.change_account(alice.id, is_disabled=True, now=scene.hub.clock.wall(), by=BY)
        await refresh(scene.hub)
        assert await scene.name(scene.nginx, ALICE) is None

    played(tmp_path, story)
