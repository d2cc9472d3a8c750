"""Accounts by their admins and owners, against a real hub."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.model.people import Account, AuditEntry
from support.hub import running_hub
from support.people import PASSWORD, add_account, add_session, add_token, bearer, browser, cookie, refresh
from support.running import PATIENCE_SECONDS
from support.tally import Tally


class Desk:
    """An admin's browser."""

    def __init__(self, hub: Hub, http: aiohttp.ClientSession, admin: Account) -> None:
        self.hub = hub
        self.http = http
        self.admin = admin

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Give status and body, of an error its code."""
        if body is not None:
            options["json"] = body
        async with self.http.request(method, f"api/v1/{path}", **options) as response:
            if response.status == 204:
                return 204, None
            answer = await response.json()
            return response.status, answer["error"]["code"] if "error" in answer else answer


def play(state_dir: Path, story: Callable[[Desk], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running_hub(state_dir) as hub:
            admin = add_account(hub, "root", "admin")
            await refresh(hub)
            async with browser(hub, admin) as http:
                await story(Desk(hub, http, admin))

    asyncio.run(run())


def test_an_account_that_is_made_can_be_used(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        status, made = await desk.ask(
            "POST", "accounts", {"name": "ada", "display_name": " Ada  ", "groups": ["vision"]}
        )
        assert status == 201
        account, password = made["account"], made["password"]
        assert (account["role"], account["display_name"], account["groups"]) == ("member", "Ada", ["vision"])
        body = {"name": "ada", "password": password}
        async with browser(desk.hub) as http, http.post("api/v1/session", json=body) as response:
            assert response.status == 201
        status, given = await desk.ask("POST", "accounts", {"name": "bob", "password": PASSWORD})
        assert (status, given["password"]) == (201, None)
        assert [found["name"] for found in (await desk.ask("GET", "accounts"))[1]] == ["ada", "bob", "root"]
        assert (await desk.ask("GET", f"accounts/{account['id']}"))[1]["name"] == "ada"

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"name": "ROOT"}, (409, "name_taken")),
        ({"name": "ada", "linux_names": ["root-user"]}, (409, "linux_name_taken")),
        ({"name": "a b"}, (400, "name_invalid")),
        ({"name": "ada", "password": "short"}, (422, "password_weak")),
        ({"name": "ada", "password": ""}, (201, None)),
        ({"name": "ada", "role": "king"}, (400, "invalid_request")),
        ({"name": "ada", "groups": ["\u202eevil"]}, (422, "bad_text")),
        ({"name": "ada", "groups": [f"g{number}" for number in range(101)]}, (400, "invalid_request")),
        ({"name": "ada", "is_admin": True}, (400, "invalid_request")),
        ({}, (400, "invalid_request")),
    ],
)
def test_what_will_not_do_is_told(
    tmp_path: Path, body: dict[str, Any], answer: tuple[int, str | None]
) -> None:
    async def story(desk: Desk) -> None:
        add_account(desk.hub, "other", linux_names=("root-user",))
        status, told = await desk.ask("POST", "accounts", body)
        assert (status, told if isinstance(told, str) else None) == answer

    play(tmp_path, story)


def test_a_change_replaces_what_is_given_and_leaves_the_rest(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        ada = add_account(desk.hub, "ada", groups=("vision",), linux_names=("alovelace",))
        path = f"accounts/{ada.id}"
        assert (await desk.ask("PATCH", path, {}))[1]["groups"] == ["vision"]
        _, changed = await desk.ask("PATCH", path, {"role": "admin", "groups": []})
        assert (changed["role"], changed["groups"]) == ("admin", [])
        assert changed["linux_names"] == ["ada", "alovelace"]
        assert (await desk.ask("PATCH", path, {"linux_names": []}))[1]["linux_names"] == ["ada"]
        assert (await desk.ask("PATCH", path, {"display_name": ""}))[1]["display_name"] == "ada"
        assert (await desk.ask("PATCH", path, {"is_disabled": True}))[1]["is_disabled"]
        own = f"accounts/{desk.admin.id}"
        for less in ({"role": "member"}, {"is_disabled": True}):
            assert await desk.ask("PATCH", own, less) == (409, "last_admin")
        assert await desk.ask("DELETE", own) == (409, "last_admin")
        assert await desk.ask("PATCH", "accounts/nobody", {"role": "admin"}) == (404, "unknown_account")
        assert await desk.ask("PATCH", path, {"role": None}) == (400, "invalid_request")

    play(tmp_path, story)


@pytest.mark.attack
@pytest.mark.promise("token-gives-no-rights")
def test_a_token_makes_no_door_that_outlives_it(tmp_path: Path, tally: Tally) -> None:
    async def story(desk: Desk) -> None:
        ada = add_account(desk.hub, "ada", groups=("vision",))
        await refresh(desk.hub)
        token = bearer(add_token(desk.hub, desk.admin, ("read", "book", "admin"))[1])
        path = f"accounts/{ada.id}"
        async with aiohttp.ClientSession(desk.hub.url) as http:
            program = Desk(desk.hub, http, desk.admin)
            answers = [
                await program.ask(method, address, body, headers=token)
                for method, address, body in (
                    ("POST", "accounts", {"name": "eve", "role": "admin"}),
                    ("POST", f"{path}/password", None),
                    ("POST", f"accounts/{desk.admin.id}/password", None),
                    ("PATCH", path, {"role": "admin"}),
                    ("PATCH", path, {"is_disabled": False, "groups": []}),
                    ("PATCH", path, {"is_disabled": False}),
                    ("PATCH", path, {"groups": ["speech"]}),
                    ("PATCH", path, {"linux_names": ["root-user"]}),
                    ("DELETE", path, None),
                    ("DELETE", f"accounts/{desk.admin.id}", None),
                    ("DELETE", f"{path}/sessions", None),
                    ("POST", "account/tokens", {"title": "mine", "scopes": ["admin"]}),
                    ("POST", "account/feeds", {}),
                )
            ]
            held = answers.count((403, "forbidden"))
            tally.add("admin token gives lasting rights", tries=len(answers), held=held)
            assert held == len(answers), answers
            assert (await program.ask("GET", path, headers=token))[1]["groups"] == ["vision"]
            _, changed = await program.ask("PATCH", path, {"is_disabled": True}, headers=token)
            assert changed["is_disabled"]
        assert [one.name for one in desk.hub.records.people.load().accounts] == ["ada", "root"]

    play(tmp_path, story)


def test_a_password_that_is_reset_opens_and_the_old_keys_do_not(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        ada = add_account(desk.hub, "ada", password=PASSWORD)
        add_account(desk.hub, "elsewhere", source="ldap", subject="1")
        await refresh(desk.hub)
        session, (_, token) = add_session(desk.hub, ada), add_token(desk.hub, ada)
        status, made = await desk.ask("POST", f"accounts/{ada.id}/password")
        assert status == 200
        async with aiohttp.ClientSession(desk.hub.url) as http:
            for headers in (cookie(session.secret), bearer(token)):
                async with http.get("api/v1/fleet", headers=headers) as response:
                    assert response.status == 401
            for password, expected in ((PASSWORD, 401), (made["password"], 201)):
                body = {"name": "ada", "password": password}
                async with http.post("api/v1/session", json=body) as response:
                    assert response.status == expected
        elsewhere = desk.hub.records.people.account_by_name("elsewhere")
        assert elsewhere is not None
        assert await desk.ask("POST", f"accounts/{elsewhere.id}/password") == (409, "password_elsewhere")
        assert await desk.ask("POST", "accounts/nobody/password") == (404, "unknown_account")

    play(tmp_path, story)


def test_exports_are_made_one_at_a_time(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        ada, audit = add_account(desk.hub, "ada"), desk.hub.records.audit
        await refresh(desk.hub)
        search, begun, may_go_on = audit.search, threading.Event(), threading.Event()

        def slow(**wanted: Any) -> tuple[AuditEntry, ...]:
            begun.set()
            assert may_go_on.wait(PATIENCE_SECONDS)
            return search(**wanted)

        audit.search = slow  # type: ignore[method-assign]
        first = asyncio.create_task(desk.ask("GET", "account/export"))
        assert await asyncio.to_thread(begun.wait, 10)
        for path in ("account/export", f"accounts/{ada.id}/export"):
            assert await desk.ask("GET", path) == (429, "export_running")
        may_go_on.set()
        assert (await first)[0] == 200
        assert (await desk.ask("GET", f"accounts/{ada.id}/export"))[0] == 200

    play(tmp_path, story)


@pytest.mark.promise("admin-reads-are-logged")
def test_an_admin_who_exports_someone_else_is_in_the_log(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        ada = add_account(desk.hub, "ada")
        await refresh(desk.hub)
        _, token = add_token(desk.hub, desk.admin, {"read", "admin"})
        search = desk.hub.records.audit.search
        for path in ("account/export", f"accounts/{desk.admin.id}/export"):
            assert (await desk.ask("GET", path))[0] == 200
        assert search(action="command_lines.read") == (), "nobody else's command lines were read"
        for options in ({}, {"headers": bearer(token)}):
            assert (await desk.ask("GET", f"accounts/{ada.id}/export", **options))[0] == 200
        read = search(action="command_lines.read")
        assert [(entry.who, entry.subject) for entry in read] == [("root", ada.id)] * 2

    play(tmp_path, story)


def test_everything_about_oneself_can_be_taken_along_and_forgotten(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        ada = add_account(desk.hub, "ada", password=PASSWORD, groups=("vision",))
        await refresh(desk.hub)
        async with browser(desk.hub, ada) as http:
            own = Desk(desk.hub, http, ada)
            assert (await own.ask("POST", "account/tokens", {"title": "t", "scopes": ["read"]}))[0] == 201
            status, kept = await own.ask("GET", "account/export")
            assert status == 200
            assert kept["account"]["name"] == "ada"
            assert (len(kept["sessions"]), len(kept["tokens"])) == (1, 1)
            assert {entry["action"] for entry in kept["audit"]} == {
                "account.create",
                "login.ok",
                "token.create",
            }
            assert "argon2" not in str(kept)
            await desk.ask("PATCH", f"accounts/{ada.id}", {"groups": []})
            _, kept = await own.ask("GET", "account/export")
            # From where an admin acted is the admin's matter.
            assert {entry["action"]: entry["peer"] for entry in kept["audit"]} == {
                "account.create": None,
                "login.ok": "192.0.2.7",
                "token.create": "127.0.0.1",
                "account.change": None,
            }
            assert await own.ask("POST", "account/erase", {"name": "ADA", "password": PASSWORD}) == (
                422,
                "name_wrong",
            )
            assert await own.ask("POST", "account/erase", {"name": "ada", "password": "wrong"}) == (
                403,
                "password_wrong",
            )
            assert await own.ask("POST", "account/erase", {"name": "ada", "password": PASSWORD}) == (
                204,
                None,
            )
            assert (await own.ask("GET", "session"))[1]["account"] is None
        assert desk.hub.records.people.account_by_name("ada") is None
        _, entries = await desk.ask("GET", "audit", params={"account": ada.id})
        assert "account.erase" in [entry["action"] for entry in entries]
        assert "ada" not in {entry["who"] for entry in entries}

    play(tmp_path, story)


def test_the_audit_log_is_searched_and_paged(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(5):
            add_account(desk.hub, f"user-{number}")
        _, entries = await desk.ask("GET", "audit", params={"action": "account", "limit": 2})
        assert len(entries) == 2
        _, older = await desk.ask(
            "GET", "audit", params={"action": "account.create", "before": entries[-1]["id"]}
        )
        assert len(older) == 6 - 2
        assert (await desk.ask("GET", "audit", params={"text": "user-3"}))[1][0]["subject"] != ""
        assert (await desk.ask("GET", "audit", params={"since": desk.hub.clock.wall() + 60}))[1] == []
        for bad in ({"limit": 0}, {"limit": 1001}, {"since": "yesterday"}, {"before": -1}, {"since": "nan"}):
            assert (await desk.ask("GET", "audit", params=bad))[0] == 400, bad
        assert (await desk.ask("GET", "audit", params={"text": "%_'\"\\"}))[1] == []

    play(tmp_path, story)


def test_ones_own_name_and_sessions(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        _, renamed = await desk.ask("PATCH", "account", {"display_name": "The Admin"})
        assert renamed["display_name"] == "The Admin"
        assert await desk.ask("PATCH", "account", {"role": "viewer"}) == (400, "invalid_request")
        other = add_session(desk.hub, desk.admin)
        _, sessions = await desk.ask("GET", "account/sessions")
        assert [kept["is_current"] for kept in sessions if kept["id"] != other.id] == [True]
        assert await desk.ask("DELETE", f"account/sessions/{other.id}") == (204, None)
        another = add_session(desk.hub, desk.admin)
        assert await desk.ask("DELETE", "account/sessions") == (204, None)
        _, sessions = await desk.ask("GET", "account/sessions")
        assert another.id not in {kept["id"] for kept in sessions}
        assert len(sessions) == 1

    play(tmp_path, story)
