"""Logging in to a hub with passwords that PAM and a directory check, both real."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.auth.ldap import LdapWay
from gpuherd.auth.pam import PamWay
from gpuherd.auth.settings import LoginSettings
from gpuherd.auth.way_settings import LdapSettings, PamSettings
from gpuherd.auth.ways import LoginWays, PasswordWay
from support.hub import running_hub
from support.pam_service import local_user, need_pam, pam_service
from support.people import PASSWORD, add_account
from support.slapd import BASE, SEARCHER, SEARCHER_PASSWORD, Slapd, need_slapd, running_slapd


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    need_slapd()
    with running_slapd(tmp_path_factory.mktemp("ldap") / "directory") as directory:
        yield directory


def directory_way(slapd: Slapd, folder: Path, deadline_seconds: float = 10.0) -> LdapWay:
    file = folder / "bind-password"
    file.write_text(SEARCHER_PASSWORD)
    file.chmod(0o600)
    return LdapWay(
        LdapSettings(
            url=slapd.tls_url,
            tls_ca_file=slapd.ca_file,
            search_base=f"ou=people,{BASE}",
            bind_dn=SEARCHER,
            bind_password_file=file,
            deadline_seconds=deadline_seconds,
        )
    )


class Door:
    """The hub's login, tried with names and passwords."""

    def __init__(self, hub: Hub, session: aiohttp.ClientSession) -> None:
        self.hub = hub
        self._session = session

    async def log_in(self, name: str, password: str) -> tuple[int, Any]:
        """Give the status, and the account or the error's code."""
        url = f"{self.hub.url}api/v1/session"
        async with self._session.post(url, json={"name": name, "password": password}) as response:
            content = await response.json()
            told = content["account"] if response.status == 201 else content["error"]["code"]
            return response.status, told


def played(folder: Path, story: Callable[[Door], Awaitable[None]], *ways: PasswordWay, **login: Any) -> None:
    async def run() -> None:
        options = {"ways": LoginWays(passwords=ways), "login": LoginSettings(**login)}
        async with (
            running_hub(folder / "hub", hub_options=options) as hub,
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            await story(Door(hub, session))

    asyncio.run(run())


def test_role_follows_the_groups_of_the_directory(slapd: Slapd, tmp_path: Path) -> None:
    group = f"dn: cn=gpu-admins,ou=groups,{BASE}\nchangetype: modify\n"
    bob = f"member: uid=bob,ou=people,{BASE}\n"

    async def story(door: Door) -> None:
        add_account(door.hub, "root-of-all", "admin", password=PASSWORD)
        status, alice = await door.log_in("alice", "alice's password")
        assert (status, alice["role"], alice["source"]) == (201, "admin", "ldap")
        assert alice["groups"] == ["gpu-admins", "gpu-users"]
        assert (await door.log_in("bob", "bob's password"))[1]["role"] == "viewer"
        slapd.modify(f"{group}add: member\n{bob}")
        assert (await door.log_in("bob", "bob's password"))[1]["role"] == "admin"
        slapd.modify(f"{group}delete: member\n{bob}")
        assert (await door.log_in("bob", "bob's password"))[1]["role"] == "viewer"
        assert await door.log_in("bob", "wrong") == (401, "login_failed")
        assert await door.log_in("bob", "") == (401, "login_failed")
        assert await door.log_in("*", "bob's password") == (401, "login_failed")
        assert (await door.log_in("root-of-all", PASSWORD))[1]["source"] == "local"

    played(
        tmp_path, story, directory_way(slapd, tmp_path), default_role="viewer", admin_groups=("gpu-admins",)
    )


def test_local_account_is_asked_nowhere_else(slapd: Slapd, tmp_path: Path) -> None:
    async def story(door: Door) -> None:
        add_account(door.hub, "alice", "admin", password=PASSWORD)
        before = slapd.log().count("BIND")
        assert (await door.log_in("alice", PASSWORD))[0] == 201
        assert await door.log_in("alice", "alice's password") == (401, "login_failed")
        assert slapd.log().count("BIND") == before

    played(tmp_path, story, directory_way(slapd, tmp_path))


def test_frozen_directory_leaves_local_accounts_and_the_other_way(slapd: Slapd, tmp_path: Path) -> None:
    need_pam()

    async def story(door: Door) -> None:
        add_account(door.hub, "carol", "admin", password=PASSWORD)
        with slapd.frozen():
            waiting = [asyncio.create_task(door.log_in("alice", "alice's password")) for _ in range(3)]
            assert (await door.log_in("carol", PASSWORD))[0] == 201
            status, account = await door.log_in(user.name, user.password)
            assert (status, account["source"], account["linux_names"]) == (201, "pam", [user.name])
            assert await asyncio.gather(*waiting) == [(503, "unavailable")] * 3
        assert (await door.log_in("alice", "alice's password"))[0] == 201

    with pam_service() as service, local_user() as user:
        pam = PamWay(PamSettings(service=service))
        played(tmp_path, story, pam, directory_way(slapd, tmp_path, 3.0))


def test_hung_pam_does_not_use_up_the_threads(tmp_path: Path) -> None:
    need_pam()
    script = tmp_path / "hang"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)

    async def story(door: Door) -> None:
        add_account(door.hub, "carol", "admin", password=PASSWORD)
        for _ in range(2):  # more than there are threads, twice
            names = ("someone", "another") * 3
            tries = await asyncio.gather(*(door.log_in(name, "word") for name in names))
            # Two at a time wait for each name; the others are asked to come back.
            assert set(tries) <= {(503, "unavailable"), (429, "too_many_attempts")}
            assert (503, "unavailable") in tries
        assert (await door.log_in("carol", PASSWORD))[0] == 201

    with pam_service(f"auth required pam_exec.so {script}\naccount required pam_permit.so\n") as service:
        played(tmp_path, story, PamWay(PamSettings(service=service, deadline_seconds=1)))


def test_nobody_locks_others_out_of_the_directory(slapd: Slapd, tmp_path: Path) -> None:
    def binds() -> int:
        return slapd.log().count('BIND dn="uid=alice')

    async def story(door: Door) -> None:
        add_account(door.hub, "carol", "admin", password=PASSWORD)
        before = binds()
        # All at a time: those that are under way count as well.
        tries = await asyncio.gather(*(door.log_in(name, "wrong") for name in ("alice", "ALICE") * 6))
        assert sorted(set(tries)) == [(401, "login_failed"), (429, "too_many_attempts")]
        assert 1 <= tries.count((401, "login_failed")) <= 5
        while await door.log_in("alice", "wrong") != (429, "too_many_attempts"):
            pass
        assert 1 <= binds() - before <= 5 * 2  # what is tried and what comes of it
        tried = binds()
        assert await door.log_in("alice", "alice's password") == (429, "too_many_attempts")
        assert binds() == tried
        assert (await door.log_in("bob", "bob's password"))[0] == 201
        assert (await door.log_in("carol", PASSWORD))[0] == 201

    played(tmp_path, story, directory_way(slapd, tmp_path))


def test_expired_account_is_told_why(tmp_path: Path) -> None:
    need_pam()

    async def story(door: Door) -> None:
        assert (await door.log_in(user.name, user.password))[0] == 201
        user.change("--expiredate", "1")
        assert await door.log_in(user.name, user.password) == (403, "account_expired")
        assert await door.log_in(user.name, "wrong") == (401, "login_failed")

    with pam_service() as service, local_user() as user:
        played(tmp_path, story, PamWay(PamSettings(service=service)))
