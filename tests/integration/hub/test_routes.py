"""Every address × everyone who may come: what is not expressly allowed is refused. Made from the table of routes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import aiohttp
import pytest
from msgspec import Struct

from gpuherd.api.access import Access, access_of
from gpuherd.api.hub import Hub
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.people import Account, Role, TokenScope
from support.booking_drafts import draft
from support.hub import running_hub
from support.people import BY, add_account, add_session, add_token, bearer, cookie, refresh

OPEN, NODE, COUNTS, LOOK = Access.OPEN, Access.NODE, Access.COUNTS, Access.LOOK
ACCOUNT, BOOK, SELF, ADMIN = Access.ACCOUNT, Access.BOOK, Access.SELF, Access.ADMIN
ADMIN_SELF = Access.ADMIN_SELF

EXPECTED: dict[str, Access] = {
    "GET /health": OPEN,
    "GET /session": OPEN,
    "POST /session": OPEN,
    "DELETE /session": OPEN,
    "POST /setup": OPEN,
    "GET /login/oidc": OPEN,
    "GET /login/oidc/callback": OPEN,
    "GET /calendar/{file_name}": OPEN,  # the address itself is the secret
    "POST /enroll": OPEN,
    "GET /agent": NODE,
    "POST /reports": NODE,
    "GET /stream": COUNTS,
    "GET /fleet": LOOK,
    "GET /fleet/glance": LOOK,
    "GET /nodes": LOOK,
    "GET /nodes/{node_id}": LOOK,
    "GET /nodes/{node_id}/recent": LOOK,
    "GET /gpus": LOOK,
    "GET /users": LOOK,
    "GET /history/devices": LOOK,
    "GET /history/nodes/{node_id}": LOOK,
    "GET /history/herd": LOOK,
    "GET /history/users/{user}": LOOK,
    "GET /usage": LOOK,
    "GET /usage/over-time": LOOK,
    "GET /usage/trends": LOOK,
    "GET /usage/hours": LOOK,
    "GET /usage/distribution": LOOK,
    "GET /usage/sessions": LOOK,
    "GET /usage/months/{month}": LOOK,
    "GET /bookings": LOOK,
    "GET /bookings/{booking_id}": LOOK,
    "GET /timeline": LOOK,
    "GET /slots": LOOK,
    "GET /booking-policy": ACCOUNT,
    "POST /nodes/{node_id}/forget-gpu": ADMIN,
    "POST /nodes/{node_id}/acknowledge-gpu": ADMIN,
    "POST /bookings": BOOK,
    "PATCH /bookings/{booking_id}": BOOK,
    "POST /bookings/{booking_id}/extend": BOOK,
    "POST /bookings/{booking_id}/copy": BOOK,
    "POST /bookings/{booking_id}/release": BOOK,
    "POST /bookings/{booking_id}/cancel": BOOK,
    "POST /bookings/{booking_id}/approve": ADMIN,
    "POST /bookings/{booking_id}/refuse": ADMIN,
    "PATCH /account": SELF,
    "POST /account/password": SELF,
    "GET /account/sessions": SELF,
    "DELETE /account/sessions": SELF,
    "DELETE /account/sessions/{session_id}": SELF,
    "GET /account/tokens": SELF,
    "POST /account/tokens": SELF,
    "DELETE /account/tokens/{token_id}": SELF,
    "GET /account/feeds": SELF,
    "POST /account/feeds": SELF,
    "DELETE /account/feeds/{feed_id}": SELF,
    "GET /account/export": SELF,
    "POST /account/erase": SELF,
    "GET /accounts": ADMIN,
    "POST /accounts": ADMIN_SELF,
    "GET /accounts/{account_id}": ADMIN,
    "PATCH /accounts/{account_id}": ADMIN,
    "DELETE /accounts/{account_id}": ADMIN_SELF,
    "POST /accounts/{account_id}/password": ADMIN_SELF,
    "DELETE /accounts/{account_id}/sessions": ADMIN_SELF,
    "GET /accounts/{account_id}/export": ADMIN,
    "GET /audit": ADMIN,
}
"""Decided here a second time, on purpose: a route that nobody has thought about fails the test below."""

ROUND = sorted(EXPECTED, key=lambda name: name == "DELETE /session")
"""All of them, and the one that ends the session last."""

PREFIX = "/api/v1"
APP = build_rest(cast("Services", None))
ROUTES = {
    f"{method} {route.path_format.removeprefix(PREFIX)}": handler
    for route in APP.routes
    if route.path_format.startswith("/api/")
    for handler in cast("Any", route).route_handlers
    for method in handler.http_methods - {"OPTIONS", "HEAD"}
}


def test_every_route_has_been_thought_about() -> None:
    assert {name: access_of(handler) for name, handler in ROUTES.items()} == EXPECTED


# -- who comes -----------------------------------------------------------------------------------------------------


class Guest(NamedTuple):
    """Someone who comes, with what they may use."""

    name: str
    headers: Callable[[Hub, dict[str, Account]], dict[str, str]]
    may: frozenset[Access]
    is_known: bool
    """Whether the hub knows who it is: then it says 403 where it would tell others to log in."""


EVERYONE = frozenset({OPEN, NODE})
LOOKING = EVERYONE | {COUNTS, LOOK}
BY_ROLE: dict[Role, frozenset[Access]] = {
    "viewer": LOOKING | {ACCOUNT, SELF},
    "member": LOOKING | {ACCOUNT, SELF, BOOK},
    "admin": LOOKING | {ACCOUNT, SELF, BOOK, ADMIN, ADMIN_SELF},
}


def _session(name: str) -> Callable[[Hub, dict[str, Account]], dict[str, str]]:
    return lambda hub, people: cookie(add_session(hub, people[name]).secret)


def _token(name: str, *scopes: TokenScope) -> Callable[[Hub, dict[str, Account]], dict[str, str]]:
    return lambda hub, people: bearer(add_token(hub, people[name], scopes)[1])


def _expired_session(hub: Hub, people: dict[str, Account]) -> dict[str, str]:
    return cookie(add_session(hub, people["admin"], lifetime_seconds=-1.0).secret)


def _expired_token(hub: Hub, people: dict[str, Account]) -> dict[str, str]:
    return bearer(add_token(hub, people["admin"], ("read", "admin"), lifetime_seconds=-1.0)[1])


def _ended_session(hub: Hub, people: dict[str, Account]) -> dict[str, str]:
    session = add_session(hub, people["admin"])
    hub.records.people.end_session(session.id, account_id=None, now=hub.clock.wall(), by=BY)
    return cookie(session.secret)


def _ended_token(hub: Hub, people: dict[str, Account]) -> dict[str, str]:
    token_id, secret = add_token(hub, people["admin"], ("read", "admin"))
    hub.records.people.end_token(token_id, account_id=None, now=hub.clock.wall(), by=BY)
    return bearer(secret)


def _disabled(hub: Hub, people: dict[str, Account]) -> dict[str, str]:
    return DISABLED.headers


class _Disabled(Struct):
    headers: dict[str, str]


DISABLED = _Disabled({})

GUESTS = [
    Guest("nobody", lambda *_: {}, EVERYONE, is_known=False),
    Guest(
        "a program with the machine's own key",
        lambda hub, _: bearer((hub.settings.state_dir / "local.key").read_text().strip()),
        LOOKING,
        is_known=False,
    ),
    Guest("a made-up key of the machine", lambda *_: bearer("ghk_" + "A" * 43), EVERYONE, is_known=False),
    *(Guest(role, _session(role), may, is_known=True) for role, may in BY_ROLE.items()),
    Guest("token to read", _token("admin", "read"), LOOKING | {ACCOUNT}, is_known=True),
    Guest("token to book only", _token("admin", "book"), EVERYONE | {BOOK}, is_known=True),
    Guest(
        "token to read and book", _token("member", "read", "book"), LOOKING | {ACCOUNT, BOOK}, is_known=True
    ),
    Guest(
        "token for everything",
        _token("admin", "read", "book", "admin"),
        LOOKING | {ACCOUNT, BOOK, ADMIN},
        is_known=True,
    ),
    Guest(
        "token of a member that says admin",
        _token("member", "read", "admin"),
        LOOKING | {ACCOUNT},
        is_known=True,
    ),
    Guest("token of a viewer that says book", _token("viewer", "book"), EVERYONE, is_known=True),
    Guest("disabled", _disabled, EVERYONE, is_known=False),
    Guest("expired session", _expired_session, EVERYONE, is_known=False),
    Guest("expired token", _expired_token, EVERYONE, is_known=False),
    Guest("ended session", _ended_session, EVERYONE, is_known=False),
    Guest("ended token", _ended_token, EVERYONE, is_known=False),
    Guest("made-up session", lambda *_: cookie("ghs_" + "A" * 43), EVERYONE, is_known=False),
    Guest("made-up token", lambda *_: bearer("ghu_" + "A" * 43), EVERYONE, is_known=False),
    Guest(
        "session shown as a token",
        lambda hub, people: bearer(add_session(hub, people["admin"]).secret),
        EVERYONE,
        is_known=False,
    ),
    Guest(
        "token shown as a session",
        lambda hub, people: cookie(add_token(hub, people["admin"], ("read", "admin"))[1]),
        EVERYONE,
        is_known=False,
    ),
    Guest(
        "bad token beside a good session",
        lambda hub, people: {
            **cookie(add_session(hub, people["admin"]).secret),
            **bearer("ghu_" + "B" * 43),
        },
        EVERYONE,
        is_known=False,
    ),
]


@asynccontextmanager
async def peopled_hub(state_dir: Path, **settings: Any) -> AsyncIterator[tuple[Hub, dict[str, Account]]]:
    async with running_hub(state_dir, **settings) as hub:
        people: dict[str, Account] = {role: add_account(hub, role, role) for role in BY_ROLE}
        gone = add_account(hub, "gone", "admin")
        DISABLED.headers = {
            **cookie(add_session(hub, gone).secret),
            **bearer(add_token(hub, gone, ("read", "book", "admin"))[1]),
        }
        hub.records.people.change_account(gone.id, is_disabled=True, now=hub.clock.wall(), by=BY)
        await refresh(hub)
        yield hub, people


async def answer(http: aiohttp.ClientSession, name: str, headers: dict[str, str]) -> tuple[int, str | None]:
    """Use an address with ids that do not exist and without a body; gives status and error code."""
    method, _, path = name.partition(" ")
    path = path.replace("{booking_id}", "4711").replace("{", "").replace("}", "")
    async with http.request(
        method, PREFIX.lstrip("/") + path, headers=headers, allow_redirects=False
    ) as response:
        if response.ok:
            return response.status, None
        return response.status, (await response.json())["error"]["code"]


def check(name: str, guest: Guest, status: int, code: str | None) -> None:
    access = EXPECTED[name]
    told = f"{guest.name}: {name} → {status} {code}"
    if access is NODE:
        assert (status, code) in ((401, "unauthorized"), (426, "upgrade_required")), told
    elif access not in guest.may:
        denial = (403, "forbidden") if guest.is_known else (401, "login_needed")
        assert (status, code) == denial, told
    else:
        assert code not in ("forbidden", "login_needed"), told
        assert status < 500 or code == "history_off", told


@pytest.mark.promise("rights-by-role")
def test_everyone_may_use_what_is_meant_for_them_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            peopled_hub(tmp_path, public="off") as (hub, people),
            aiohttp.ClientSession(hub.url) as http,
        ):
            for guest in GUESTS:
                headers = guest.headers(hub, people)
                for name in ROUND:
                    check(name, guest, *await answer(http, name, headers))

    asyncio.run(story())


@pytest.mark.parametrize(
    ("public", "may"), [("off", EVERYONE), ("counts", EVERYONE | {COUNTS}), ("read", LOOKING)]
)
@pytest.mark.promise("nothing-without-login")
def test_nobody_sees_what_is_public(tmp_path: Path, public: str, may: frozenset[Access]) -> None:
    async def story() -> None:
        async with peopled_hub(tmp_path, public=public) as (hub, _), aiohttp.ClientSession(hub.url) as http:
            for headers in ({}, DISABLED.headers):
                guest = Guest(f"nobody, public {public}", lambda *_: {}, may, is_known=False)
                for name in EXPECTED:
                    check(name, guest, *await answer(http, name, headers))

    asyncio.run(story())


def test_a_hub_that_is_not_set_up_shows_the_herd_to_its_own_machine_only(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            here = Guest("at the machine", lambda *_: {}, LOOKING, is_known=False)
            elsewhere = Guest("behind a proxy", lambda *_: {}, EVERYONE, is_known=False)
            for name in EXPECTED:
                check(name, here, *await answer(http, name, {}))
                for told in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-IP"):
                    check(name, elsewhere, *await answer(http, name, {told: "127.0.0.1"}))
            add_account(hub, "someone")
            await refresh(hub)
            nobody = Guest("after the first account", lambda *_: {}, EVERYONE, is_known=False)
            for name in EXPECTED:
                check(name, nobody, *await answer(http, name, {}))

    asyncio.run(story())


@pytest.mark.promise("own-origin-only")
def test_no_write_is_taken_from_a_foreign_page(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            peopled_hub(tmp_path, public="off") as (hub, people),
            aiohttp.ClientSession(hub.url) as http,
        ):
            own = cookie(add_session(hub, people["admin"]).secret)
            for name in ROUND:
                is_read = name.startswith("GET ") and name != "GET /stream"
                for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                    _, code = await answer(http, name, {**own, **foreign})
                    assert (code == "foreign_origin") is not is_read, (name, code)

    asyncio.run(story())


# -- whose it is ---------------------------------------------------------------------------------------------------

Story = Callable[[Hub, dict[str, Account], aiohttp.ClientSession], Awaitable[None]]


def play(state_dir: Path, story: Story) -> None:
    async def run() -> None:
        async with peopled_hub(state_dir) as (hub, people), aiohttp.ClientSession(hub.url) as http:
            await story(hub, people, http)

    asyncio.run(run())


@pytest.mark.parametrize("stranger", ["viewer", "admin"])
def test_keys_of_others_cannot_be_ended_nor_told_from_none(tmp_path: Path, stranger: str) -> None:
    async def story(hub: Hub, people: dict[str, Account], http: aiohttp.ClientSession) -> None:
        session = add_session(hub, people["member"])
        token_id, secret = add_token(hub, people["member"])
        hub.records.people.add_feed(
            id="theirs",
            digest="0" * 64,
            account_id=people["member"].id,
            kind="account",
            created_at=hub.clock.wall(),
            by=BY,
        )
        headers = cookie(add_session(hub, people[stranger]).secret)
        for theirs, none in (
            (f"account/sessions/{session.id}", "account/sessions/0123456789abcdef"),
            (f"account/tokens/{token_id}", "account/tokens/0123456789abcdef"),
            ("account/feeds/theirs", "account/feeds/none"),
        ):
            answers = []
            for path in (theirs, none):
                async with http.delete(f"api/v1/{path}", headers=headers) as response:
                    answers.append((response.status, await response.text()))
            assert answers[0] == answers[1]
            assert answers[0][0] == 404
        assert [feed.id for feed in hub.records.people.feeds(people["member"].id)] == ["theirs"]
        for shown in (cookie(session.secret), bearer(secret)):
            async with http.get("api/v1/session", headers=shown) as response:
                assert (await response.json())["account"]["name"] == "member"

    play(tmp_path, story)


def test_lists_and_exports_hold_only_what_is_ones_own(tmp_path: Path) -> None:
    async def story(hub: Hub, people: dict[str, Account], http: aiohttp.ClientSession) -> None:
        add_token(hub, people["admin"])
        add_session(hub, people["admin"])
        headers = cookie(add_session(hub, people["member"]).secret)
        for path, count in (("account/sessions", 1), ("account/tokens", 0)):
            async with http.get(f"api/v1/{path}", headers=headers) as response:
                assert len(await response.json()) == count
        async with http.get("api/v1/account/export", headers=headers) as response:
            everything = await response.text()
        assert people["member"].id in everything
        assert people["admin"].id not in everything

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "", {"title": "mine now"}),
        ("POST", "/extend", {"end": "3d"}),
        ("POST", "/release", None),
        ("POST", "/cancel", {}),
    ],
)
@pytest.mark.promise("bookings-of-others")
def test_bookings_of_others_cannot_be_touched_but_by_their_group_and_admins(
    tmp_path: Path, method: str, path: str, body: dict[str, Any] | None
) -> None:
    async def story(hub: Hub, people: dict[str, Account], http: aiohttp.ClientSession) -> None:
        stranger = add_account(hub, "stranger", groups=("other",))
        colleague = add_account(hub, "colleague", groups=("vision",))
        await refresh(hub)
        owner, now = people["member"], hub.clock.wall()
        (kept,) = hub.records.bookings.create(
            [
                draft(
                    DeviceRef("n1", "GPU-a"),
                    at=int(now) + 3600,
                    hours=5,
                    owner_id=owner.id,
                    owner_name=owner.name,
                    group="vision",
                )
            ],
            now=now,
            by=BY,
        )
        for person, is_allowed in (
            (stranger, False),
            (people["viewer"], False),
            (colleague, True),
            (owner, True),
            (people["admin"], True),
        ):
            before = hub.records.bookings.get(kept.id)
            headers = cookie(add_session(hub, person).secret)
            address = f"api/v1/bookings/{kept.id}{path}"
            async with http.request(method, address, json=body, headers=headers) as response:
                # What the owner may do can still be impossible, as for a device that is not there.
                assert (response.status == 403) is not is_allowed, (person.name, await response.text())
            if not is_allowed:
                assert hub.records.bookings.get(kept.id) == before

    play(tmp_path, story)
