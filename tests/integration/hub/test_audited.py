"""Every change is in the audit log: each route and command that writes, out of the tables of routes and commands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from click.testing import CliRunner
from msgspec import structs

from gpuherd.api.hub import Hub
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services
from gpuherd.auth.enrolment import Enrolment
from gpuherd.cli.hub import command
from gpuherd.model.bookings import DeviceRef
from gpuherd.records.audit import AuditRecords
from gpuherd.records.database import open_records, records_file
from gpuherd.records.nodes import NodeRecords
from support.audited import Audited
from support.booking_drafts import draft
from support.booking_hub import report_of
from support.command_tree import leaves
from support.herd import IDLE, gpu
from support.hub import eventually, running_hub
from support.people import BY, PASSWORD, add_account, add_session, browser, refresh

PREFIX = "/api/v1"
WRITING_ROUTES = {
    f"{method} {route.path_format.removeprefix(PREFIX)}"
    for route in build_rest(cast("Services", None)).routes
    if route.path_format.startswith("/api/")
    for handler in cast("Any", route).route_handlers
    for method in handler.http_methods - {"GET", "OPTIONS", "HEAD"}
}


class Office:
    """A hub, the browser of its first admin, and how both are used."""

    def __init__(self, hub: Hub, http: aiohttp.ClientSession) -> None:
        self.hub, self.http = hub, http
        self._days = 0

    def another_day(self) -> int:
        """Give a time at which nothing is booked yet."""
        self._days += 1
        return int(self.hub.clock.wall()) + 86_400 * self._days

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask, and give what was answered; only a success will do."""
        async with self.http.request(method, f"api/v1{path}", json=body) as response:
            assert response.ok, (method, path, response.status, await response.text())
            return None if response.status == 204 else await response.json()

    def actions(self) -> list[str]:
        """Give what the log says, the oldest first."""
        return [entry.action for entry in reversed(self.hub.records.audit.search(limit=1000))]

    async def spare(self, name: str) -> str:
        """Make an account to be changed."""
        account = add_account(self.hub, name, "member", password=PASSWORD)
        await refresh(self.hub)
        return account.id

    async def book(self, start: int | str | None = None) -> dict[str, Any]:
        """Book a GPU, on another day if no time is given."""
        device = {"node_id": "n1", "uuid": "GPU-0"}
        body = {"devices": [device], "start": start or self.another_day(), "end": "2h"}
        made: list[dict[str, Any]] = await self.ask("POST", "/bookings", body)
        return made[0]

    async def wait_for_approval(self, index: int) -> dict[str, int]:
        """Make a booking that waits for an admin."""
        at = int(self.hub.clock.wall()) + 86_400
        wanted = draft(DeviceRef("n1", f"GPU-{index}"), at=at, state="pending")
        (made,) = self.hub.records.bookings.create([wanted], now=self.hub.clock.wall(), by=BY)
        await self.hub.bookings.memory.refresh()
        return {"id": made.id, "revision": made.revision}


Step = Callable[[Office], Awaitable[object]]


async def _set_up(office: Office) -> None:
    link = await office.hub.setup_link()
    assert link is not None
    body = {"code": link.partition("#")[2], "name": "root", "password": PASSWORD}
    await office.ask("POST", "/setup", body)


async def _log_in(office: Office) -> None:
    async with browser(office.hub) as http:
        body = {"name": "root", "password": PASSWORD}
        assert (await http.post("api/v1/session", json=body)).status == 201


async def _log_out(office: Office) -> None:
    async with browser(office.hub) as http:
        body = {"name": "root", "password": PASSWORD}
        assert (await http.post("api/v1/session", json=body)).status == 201
        assert (await http.delete("api/v1/session")).ok


async def _enrol(office: Office) -> None:
    token = Enrolment(office.hub.records.nodes).create_token(now=office.hub.clock.wall(), uses=1)
    await office.ask("POST", "/enroll", {"token": token, "hostname": "n9"})


async def _report(office: Office) -> None:
    token = Enrolment(office.hub.records.nodes).create_token(now=office.hub.clock.wall(), uses=1)
    node = await office.ask("POST", "/enroll", {"token": token, "hostname": "n8"})
    headers = {"Authorization": f"Bearer {node['credential']}"}
    async with office.http.post("api/v1/reports", json={}, headers=headers) as response:
        assert response.status == 400, "it is taken for a report, and there is nothing in it"


async def _end_session(office: Office) -> None:
    (root,) = (one for one in office.hub.records.people.load().accounts if one.name == "root")
    await office.ask("DELETE", f"/account/sessions/{add_session(office.hub, root).id}")


async def _end_token(office: Office) -> None:
    made = await office.ask("POST", "/account/tokens", {"title": "t", "scopes": ["read"]})
    await office.ask("DELETE", f"/account/tokens/{made['id']}")


async def _end_feed(office: Office) -> None:
    made = await office.ask("POST", "/account/feeds", {"kind": "account"})
    await office.ask("DELETE", f"/account/feeds/{made['id']}")


async def _erase_oneself(office: Office) -> None:
    await office.spare("leaver")
    async with browser(office.hub) as http:
        body = {"name": "leaver", "password": PASSWORD}
        assert (await http.post("api/v1/session", json=body)).status == 201
        assert (await http.post("api/v1/account/erase", json=body)).ok


async def _on_booking(office: Office, verb: str, body: Any, start: int | str | None = None) -> None:
    made = await office.book(start)
    await office.ask("POST", f"/bookings/{made['id']}/{verb}", body)


async def _change_booking(office: Office) -> None:
    made = await office.book()
    await office.ask("PATCH", f"/bookings/{made['id']}", {"title": "another"})


async def _decide(office: Office, verb: str, index: int) -> None:
    waiting = await office.wait_for_approval(index)
    await office.ask("POST", f"/bookings/{waiting['id']}/{verb}", {"revision": waiting["revision"]})


async def _with_account(office: Office, method: str, path: str, body: Any = None) -> None:
    account_id = await office.spare(f"spare{len(office.actions())}")
    await office.ask(method, path.replace("ID", account_id), body)


async def _forget_gpu(office: Office) -> None:
    office.hub.fleet.accept_report("n1", report_of(*(gpu(index) for index in range(5))))
    office.hub.fleet.accept_report("n1", report_of(*(gpu(index) for index in range(4))))
    await office.ask("POST", "/nodes/n1/forget-gpu", {"uuid": "GPU-4"})


async def _acknowledge_gpu(office: Office) -> None:
    broken = structs.replace(IDLE, ecc_uncorrected=3)
    report = report_of(*(gpu(index) for index in range(4)))
    devices = (broken, *report.sample.devices[1:])
    office.hub.fleet.accept_report(
        "n1", structs.replace(report, sample=structs.replace(report.sample, devices=devices))
    )
    told = await office.ask("POST", "/nodes/n1/acknowledge-gpu", {"uuid": "GPU-0"})
    assert told == {"faults": ["3 uncorrected ECC errors"]}


ROUTES: dict[str, tuple[str | None, Step]] = {
    "POST /setup": ("account.setup", _set_up),
    "POST /session": ("login.ok", _log_in),
    "DELETE /session": ("logout", _log_out),
    "POST /enroll": ("node.enrol", _enrol),
    "POST /reports": (None, _report),  # samples are no change of the records
    "POST /nodes/{node_id}/forget-gpu": ("gpu.forget", _forget_gpu),
    "POST /nodes/{node_id}/acknowledge-gpu": ("gpu.acknowledge", _acknowledge_gpu),
    "PATCH /account": ("account.change", lambda o: o.ask("PATCH", "/account", {"display_name": "Root"})),
    "POST /account/password": (
        "account.password",
        lambda o: o.ask("POST", "/account/password", {"old_password": PASSWORD, "new_password": PASSWORD}),
    ),
    "DELETE /account/sessions": ("session.end_all", lambda o: o.ask("DELETE", "/account/sessions")),
    "DELETE /account/sessions/{session_id}": ("session.end", _end_session),
    "POST /account/tokens": (
        "token.create",
        lambda o: o.ask("POST", "/account/tokens", {"title": "t", "scopes": ["read"]}),
    ),
    "DELETE /account/tokens/{token_id}": ("token.end", _end_token),
    "POST /account/feeds": ("feed.create", lambda o: o.ask("POST", "/account/feeds", {"kind": "account"})),
    "DELETE /account/feeds/{feed_id}": ("feed.end", _end_feed),
    "POST /account/erase": ("account.erase", _erase_oneself),
    "POST /accounts": ("account.create", lambda o: o.ask("POST", "/accounts", {"name": "ada"})),
    "PATCH /accounts/{account_id}": (
        "account.role",
        lambda o: _with_account(o, "PATCH", "/accounts/ID", {"role": "viewer"}),
    ),
    "DELETE /accounts/{account_id}": ("account.erase", lambda o: _with_account(o, "DELETE", "/accounts/ID")),
    "POST /accounts/{account_id}/password": (
        "account.password",
        lambda o: _with_account(o, "POST", "/accounts/ID/password", {}),
    ),
    "DELETE /accounts/{account_id}/sessions": (
        "session.end_all",
        lambda o: _with_account(o, "DELETE", "/accounts/ID/sessions"),
    ),
    "POST /bookings": ("booking.create", lambda o: o.book()),
    "PATCH /bookings/{booking_id}": ("booking.change", _change_booking),
    "POST /bookings/{booking_id}/extend": (
        "booking.extend",
        lambda o: _on_booking(o, "extend", {"end": "1h"}),
    ),
    "POST /bookings/{booking_id}/copy": (
        "booking.create",
        lambda o: _on_booking(o, "copy", {"start": o.another_day()}),
    ),
    "POST /bookings/{booking_id}/release": (
        "booking.release",
        lambda o: _on_booking(o, "release", {}, "now"),
    ),
    "POST /bookings/{booking_id}/cancel": ("booking.cancel", lambda o: _on_booking(o, "cancel", {})),
    "POST /bookings/{booking_id}/approve": ("booking.approve", lambda o: _decide(o, "approve", 2)),
    "POST /bookings/{booking_id}/refuse": ("booking.refuse", lambda o: _decide(o, "refuse", 3)),
}
"""What each route that writes is called in the log, and how to use it. A route that is not here fails the test."""


@pytest.mark.promise("every-change-is-audited")
def test_every_route_that_writes_says_so_in_the_log(tmp_path: Path) -> None:
    assert set(ROUTES) == WRITING_ROUTES

    async def story() -> None:
        async with running_hub(tmp_path) as hub, browser(hub) as http:
            await hub.admit("n1")
            hub.fleet.accept_report("n1", report_of(*(gpu(index) for index in range(4))))
            await eventually(lambda: hub.fleet.tick_number > 2)
            office = Office(hub, http)
            for name, (action, step) in ROUTES.items():
                before = len(office.actions())
                with Audited() as audited:
                    await step(office)
                assert audited.unlogged == [], name
                assert action is None or action in office.actions()[before:], name

    asyncio.run(story())


def test_every_action_is_told_in_words_on_the_page_and_in_the_docs() -> None:
    root = Path(__file__).parents[3]
    written = {
        action
        for file in (root / "src/gpuherd").rglob("*.py")
        for action in re.findall(
            r'(?:Deed\(\s*|_log\([\w.]+, |action: str = |action=|action = )"([a-z_.]+)"', file.read_text()
        )
    }
    used = {action for action, _ in (*ROUTES.values(), *COMMANDS.values()) if action is not None}
    words = (root / "web/src/people/words.ts").read_text()
    docs = (root / "docs/records.md").read_text()
    assert used | written > used, "some are written where no route or command is used here"
    assert [
        action
        for action in sorted(used | written)
        if f'{action}": "' not in words and f'{action}: "' not in words
    ] == []
    assert [action for action in sorted(used | written) if f"`{action}`" not in docs] == []


# -- commands --------------------------------------------------------------------------------------------------------

COMMANDS: dict[tuple[str, ...], tuple[str, list[str]]] = {
    ("account", "create"): ("account.create", ["ada", "--generate"]),
    ("account", "password"): ("account.password", ["ada", "--generate"]),
    ("account", "role"): ("account.role", ["ada", "viewer"]),
    ("account", "disable"): ("account.change", ["ada"]),
    ("account", "enable"): ("account.change", ["ada"]),
    ("account", "remove"): ("account.erase", ["ada", "--yes"]),
    ("setup-link",): ("setup.link", []),
    ("token", "create"): ("join_token.create", []),
    ("token", "revoke"): ("join_token.end", ["TOKEN"]),
    ("node", "secret"): ("node.secret", ["gpu01"]),
    ("node", "remove"): ("node.remove", ["gpu02"]),
    ("import-comments",): ("booking.create", ["COMMENTS"]),
    ("backup",): ("records.backup", ["FILE"]),
    ("restore",): ("records.restore", ["FILE", "--replace"]),
}
"""What each command of `gpuherd hub` that writes is called in the log, and how to use it; in this order."""
OTHER_COMMANDS = {
    ("run",): "the hub itself",
    ("init",): "there is nothing yet that could be changed",
    ("account", "list"): "looks",
    ("token", "list"): "looks",
    ("node", "list"): "looks",
    ("node-script",): "prints what is the same everywhere",
    ("export-comments",): "looks",
    ("accept-key",): "node.host_key; tests/integration/ssh/test_host_keys.py has a host with a key",
    ("start-afresh",): "records.start_afresh",
}
SAME = {
    "user": ("account",),
    "token": ("token",),
    "node": ("node",),
    "backup": ("backup",),
    "restore": ("restore",),
}
"""Commands that stand alone, and those of `gpuherd hub` that they are."""
BY_ROUTES_OR_ELSEWHERE = {
    *(
        "status",
        "top",
        "free",
        "users",
        "gpu",
        "pick",
        "wait",
        "run",
        "usage",
        "book",
        "bookings",
        "release",
        "login",
    ),
    *("up", "agent", "demo", "import", "export", "install", "config", "doctor", "completion"),
}
"""Commands that ask a hub by its routes, or have nothing to do with its records."""


def _hub_words(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Give the command of `gpuherd hub` that this is; none if it is none."""
    if words[0] == "hub":
        return words[1:]
    if words[0] in SAME and words != ("node", "show"):
        return (*SAME[words[0]], *words[1:])
    return None


def test_every_command_has_been_thought_about() -> None:
    unknown = {
        words
        for words, _ in leaves()
        if words != ("node", "show")
        and words[0] not in BY_ROUTES_OR_ELSEWHERE
        and _hub_words(words) not in {*COMMANDS, *OTHER_COMMANDS}
    }
    assert unknown == set(), "say here what they write to the audit log, or why they do not"


@pytest.mark.promise("every-change-is-audited")
def test_every_command_that_writes_says_so_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    state = tmp_path / "state"
    (tmp_path / "comments.json").write_text(
        '{"gpu01:0": {"date": "2999-01-01", "name": "ada", "comment": ""}}'
    )
    place = ["--state-dir", str(state)]
    assert CliRunner().invoke(command, [*place, "init"]).exit_code == 0
    engine = open_records(records_file(state))
    enrolment, log = Enrolment(NodeRecords(engine)), AuditRecords(engine)
    for name in ("gpu01", "gpu02"):
        enrolment.admit(name, now=1.0)
    for words, (action, given) in COMMANDS.items():
        if words == ("import-comments",):
            continue  # needs nodes that have reported; bookings are written by the same verbs as those of routes
        tokens = enrolment.tokens(now=0.0)
        paths = {"FILE": str(tmp_path / "file"), "TOKEN": tokens[0].id if tokens else ""}
        newest = log.search(limit=1)[0].id
        with Audited() as audited:
            done = CliRunner().invoke(command, [*place, *words, *(paths.get(one, one) for one in given)])
        assert done.exit_code == 0, (words, done.output, done.exception)
        if words != ("restore",):  # which puts everything in, and its own line with it
            assert audited.unlogged == [], words
        entries = log.search(action=action, limit=1)
        assert entries, words
        assert words == ("restore",) or entries[0].id > newest, words
        assert entries[0].who == "command line", words
    engine.dispose()
