"""Someone keeps others from logging in, or finds out which names exist."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gpuherd.api import reception
from gpuherd.api.hub import Hub
from gpuherd.auth.ways import LoginWays, VouchedFor
from gpuherd.model.errors import Failed
from gpuherd.model.people import AccountSource
from support.attacked_hub import ADMIN, MEMBER, AttackedHub, attacked_hub, head, status_of
from support.hub import eventually, running_hub
from support.people import PASSWORD, QUICK, add_account, refresh
from support.running import PATIENCE_SECONDS
from support.soak import SOAK
from support.tally import Tally

IS_LONG = SOAK > 1


def _log_in(hub: AttackedHub, name: str, source: str) -> int:
    body = json.dumps({"name": name, "password": PASSWORD}).encode()
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    return status_of(hub.ask(head("POST", "session", *lines) + body, source))


@pytest.mark.attack
@pytest.mark.promise("nobody-is-kept-from-logging-in")
def test_one_account_on_many_connections_keeps_nobody_out(tmp_path: Path, tally: Tally) -> None:
    count, seconds = (25, 20.0) if IS_LONG else (5, 0.0)
    ended = threading.Event()
    with (
        attacked_hub(tmp_path, is_quick=False, is_patient=True) as hub,
        concurrent.futures.ThreadPoolExecutor(40) as threads,
    ):

        def flood() -> list[int]:
            statuses = [_log_in(hub, MEMBER, "127.0.0.1")]
            while not ended.is_set():
                statuses.append(_log_in(hub, MEMBER, "127.0.0.1"))
            return statuses

        begun = time.monotonic()
        flooding = [threads.submit(flood) for _ in range(40)]
        try:
            others, times = [], []
            for _ in range(count):
                began = time.monotonic()
                others.append(_log_in(hub, ADMIN, "127.0.0.9"))
                times.append(time.monotonic() - began)
                ended.wait(seconds / count)
        finally:
            ended.set()
        tried = [status for one in flooding for status in one.result()]
        took = time.monotonic() - begun
    tally.add(
        "one account logs in on 40 connections",
        tries=count,
        held=others.count(201),
        figure=f"{tried.count(201)} of {len(tried)} logins let in; others refused {count - others.count(201)}, "
        f"waited at most {max(times):.1f} s",
    )
    assert others == [201] * count
    assert set(tried) <= {201, 429}
    assert tried.count(201) <= reception.MAX_LOGINS_BY_NAME * (1 + took // 60)
    assert tried.count(429) <= 40 * (1 + took / reception.FAILURE_SECONDS), "a flood is slowed down"


class Elsewhere:
    """A service that knows bob, and takes its time."""

    name: AccountSource = "ldap"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_down = False

    def check(self, name: str, password: str) -> VouchedFor | None:
        self.asked.append(name)
        if self.is_down:
            raise Failed("the service is down")
        time.sleep(0.05)
        return None


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


Try = Callable[[str, str, str], Coroutine[None, None, tuple[int, float]]]


@asynccontextmanager
async def trying(state_dir: Path, *services: Elsewhere) -> AsyncIterator[tuple[Hub, Try]]:
    """Run a hub with the account local and bob of a service; gives how to log in: name, password, address."""
    async with (
        running_hub(
            state_dir,
            hub_options={"ways": LoginWays(passwords=services)},
            trusted_proxies=("127.0.0.1",),
        ) as hub,
        aiohttp.ClientSession() as http,
    ):
        hub.reception._passwords = QUICK
        add_account(hub, "local", "admin", password=PASSWORD)
        add_account(hub, "bob", source="ldap")
        await refresh(hub)

        async def log_in(name: str, password: str, source: str) -> tuple[int, float]:
            began = time.monotonic()
            headers = {"X-Forwarded-For": source, "X-Forwarded-Proto": "https"}
            body = {"name": name, "password": password}
            async with http.post(f"{hub.url}api/v1/session", json=body, headers=headers) as response:
                return response.status, time.monotonic() - began

        yield hub, log_in


class Meeting:
    """Compares passwords like ``QUICK``, but not before two are there to be compared."""

    def __init__(self) -> None:
        self._both = threading.Barrier(2)

    def matches(self, password: str, kept: str | None) -> bool:
        self._both.wait(PATIENCE_SECONDS)
        return QUICK.matches(password, kept)

    def is_outdated(self, kept: str) -> bool:
        return QUICK.is_outdated(kept)


@pytest.mark.attack
@pytest.mark.promise("nobody-is-kept-from-logging-in")
def test_logins_at_the_same_moment_do_not_pass_the_limit(tmp_path: Path) -> None:
    async def story() -> list[int]:
        async with trying(tmp_path) as (hub, log_in):
            hub.reception._passwords = Meeting()  # type: ignore[assignment]
            for _ in range(reception.MAX_LOGINS_BY_NAME - 1):
                hub.reception._logins.failed("local", hub.clock.monotonic())
            sources = ("198.51.100.1", "198.51.100.2")
            tries = await asyncio.gather(*(log_in("local", PASSWORD, source) for source in sources))
            return sorted(status for status, _ in tries)

    assert asyncio.run(story()) == [201, 429]


class Gate:
    """Compares passwords like ``QUICK`` once it is open."""

    def __init__(self) -> None:
        self.is_open = threading.Event()

    def matches(self, password: str, kept: str | None) -> bool:
        assert self.is_open.wait(PATIENCE_SECONDS)
        return QUICK.matches(password, kept)

    def is_outdated(self, kept: str) -> bool:
        return QUICK.is_outdated(kept)


@pytest.mark.attack
@pytest.mark.promise("nobody-is-kept-from-logging-in", "local-accounts-cannot-be-locked")
def test_tries_from_many_addresses_at_one_name_keep_its_owner_not_out(tmp_path: Path, tally: Tally) -> None:
    async def story() -> tuple[list[int], int]:
        async with trying(tmp_path) as (hub, log_in):
            gate, waiting = Gate(), hub.reception._hashing._waiting
            hub.reception._passwords = gate  # type: ignore[assignment]
            guesses = [
                asyncio.create_task(log_in("local", "wrong", f"198.51.100.{number}")) for number in range(4)
            ]
            await eventually(lambda: len(waiting) == 2)  # and two are being compared
            own = asyncio.create_task(log_in("local", PASSWORD, "203.0.113.1"))
            await eventually(lambda: len(waiting) == 3 or own.done())
            gate.is_open.set()
            return [(await one)[0] for one in guesses], (await own)[0]

    guessed, own = asyncio.run(story())
    tally.add("tries at one name from many addresses", tries=1, held=int(own == 201))
    assert (guessed, own) == ([401] * 4, 201)


@pytest.mark.attack
@pytest.mark.promise("login-time-tells-nothing")
def test_wrong_logins_take_as_long_whoever_was_asked(
    tmp_path: Path, elsewhere: Elsewhere, tally: Tally
) -> None:
    async def story() -> None:
        async with trying(tmp_path, elsewhere) as (_, log_in):
            took = {
                name: await log_in(name, "wrong", f"198.51.100.{number}")
                for number, name in enumerate(("local", "bob", "nobody"))
            }
        figure = ", ".join(f"{name} {seconds:.2f} s" for name, (_, seconds) in took.items())
        held = sum(seconds >= reception.FAILURE_SECONDS for _, seconds in took.values())
        tally.add("time of a wrong login", tries=3, held=held, figure=figure)
        assert [status for status, _ in took.values()] == [401] * 3
        assert held == 3, "no answer comes before the time that all have"

    asyncio.run(story())
    assert elsewhere.asked == ["bob", "nobody"]


@pytest.mark.attack
@pytest.mark.promise("outage-tells-nothing")
def test_while_a_service_is_down_wrong_logins_get_the_same_answer(
    tmp_path: Path, elsewhere: Elsewhere, tally: Tally
) -> None:
    async def story() -> None:
        async with trying(tmp_path, elsewhere) as (_, log_in):
            elsewhere.is_down = True
            took = {
                name: await log_in(name, "wrong", f"198.51.100.{number}")
                for number, name in enumerate(("nobody", "local", "bob"))
            }
            right, _ = await log_in("local", PASSWORD, "198.51.100.9")
            elsewhere.is_down = False
            again = [
                (await log_in(name, "wrong", f"198.51.100.{number}"))[0]
                for number, name in enumerate(("nobody", "local", "bob"))
            ]
        held = sum(
            status == 503 and seconds >= reception.FAILURE_SECONDS for status, seconds in took.values()
        )
        tally.add("wrong login while a service is down", tries=3, held=held)
        assert held == 3, took
        assert right == 201
        assert again == [401] * 3

    asyncio.run(story())


@pytest.mark.attack
@pytest.mark.promise("local-accounts-cannot-be-locked")
def test_wrong_tries_by_others_lock_no_local_account(
    tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(reception, "FAILURE_SECONDS", 0.0)

    async def story() -> None:
        async with trying(tmp_path, elsewhere) as (_, log_in):
            tried = {
                name: [(await log_in(name, "wrong", f"198.51.100.{number % 3}"))[0] for number in range(15)]
                for name in ("local", "nobody")
            }
            right, _ = await log_in("local", PASSWORD, "198.51.100.200")
        tally.add("wrong tries of a local name", tries=15, held=15 if right == 201 else 0)
        assert right == 201
        assert tried["local"] == tried["nobody"] == [401] * 10 + [429] * 5, "no name can be told from another"

    asyncio.run(story())
    assert elsewhere.asked == ["nobody"] * 10


@pytest.mark.attack
@pytest.mark.promise("guessing-waits")
@pytest.mark.parametrize("name", ["local", "nobody"])
def test_guessing_waits_also_where_a_service_checks_passwords(
    tmp_path: Path, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, tally: Tally, name: str
) -> None:
    monkeypatch.setattr(reception, "FAILURE_SECONDS", 0.0)

    async def story() -> None:
        async with trying(tmp_path, elsewhere) as (hub, log_in):
            tried = [(await log_in(name, "wrong", "198.51.100.7"))[0] for _ in range(25)]
            right, _ = await log_in("local", PASSWORD, "198.51.100.7")
            told = hub.records.audit.search(action="login.failed")
        tally.add(f"guesses at {name} from one address", tries=25, held=25 if right == 429 else 0)
        assert tried == [401] * 5 + [429] * 20
        assert right == 429, "an address with 20 failures waits, whichever rule has refused them"
        assert len(told) == 20, "each that was looked at is in the audit log"

    asyncio.run(story())
