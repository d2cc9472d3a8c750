"""Reading anew who may come in: once for all who wait, and shut where it fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuherd.api.asgi import Scope
from gpuherd.api.identity import Identity
from gpuherd.api.record_calls import RecordCalls
from gpuherd.api.sender import Sender
from gpuherd.api.settings import HubSettings
from gpuherd.auth.authority import Authority
from gpuherd.auth.secrets import digest
from gpuherd.fleet.clock import SystemClock
from gpuherd.model.errors import Failed
from gpuherd.model.people import Account, Actor
from gpuherd.records.database import open_records
from gpuherd.records.people import People, PeopleRecords
from support.running import PATIENCE_SECONDS

BY = Actor(account_id=None, label="test")


class SlowRecords(PeopleRecords):
    """Records that count how often they are read, wait until they may answer, and can be out of order."""

    is_broken = False

    def watch(self) -> None:
        self.reads = 0
        self.begun, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def load(self) -> People:
        self.reads += 1
        found = super().load()
        self.begun.set()
        assert self.may_answer.wait(PATIENCE_SECONDS)
        if self.is_broken:
            raise Failed("the records do not answer")
        return found


@pytest.fixture
def records(tmp_path: Path) -> Iterator[SlowRecords]:
    records = SlowRecords(open_records(tmp_path / "records.sqlite"))
    records.watch()
    yield records
    records.close()


def add(records: PeopleRecords, name: str) -> str:
    return records.create_account(name=name, display_name=name, role="member", now=1.0, by=BY).id


class Lab:
    """An identity with nothing around it."""

    def __init__(self, records: SlowRecords, folder: Path, **settings: Any) -> None:
        self.calls = RecordCalls()
        self.authority = Authority()
        self.identity = Identity(
            HubSettings(state_dir=folder, **settings),
            authority=self.authority,
            records=records,
            calls=self.calls,
            clock=SystemClock(),
        )


def test_those_who_wait_share_one_reading_that_began_after_their_change(
    records: SlowRecords, tmp_path: Path
) -> None:
    async def story() -> None:
        lab = Lab(records, tmp_path)
        records.may_answer.clear()
        first = asyncio.create_task(lab.identity.refresh())
        assert await asyncio.to_thread(records.begun.wait, 10)
        await asyncio.to_thread(add, records, "ada")  # too late for the reading under way
        others = [asyncio.create_task(lab.identity.refresh()) for _ in range(20)]
        await asyncio.sleep(0)
        records.may_answer.set()
        await first
        assert lab.authority.accounts() == ()
        await asyncio.gather(*others)
        assert [account.name for account in lab.authority.accounts()] == ["ada"]
        assert records.reads == 2
        lab.calls.close()

    asyncio.run(story())


def test_who_was_changed_stays_out_until_it_is_known_how(records: SlowRecords, tmp_path: Path) -> None:
    async def story() -> None:
        lab = Lab(records, tmp_path)
        ada, _ = [await asyncio.to_thread(add, records, name) for name in ("ada", "bob")]
        await lab.identity.refresh()
        records.is_broken = True
        for changed in (None, ada):
            with pytest.raises(Failed):
                await lab.identity.refresh(changed)
            assert {account.name for account in lab.authority.accounts() if account.is_disabled} == (
                set() if changed is None else {"ada"}
            )
        records.is_broken = False
        await lab.identity.watch()  # although the records' revision is the one that was known
        assert not any(account.is_disabled for account in lab.authority.accounts())
        lab.calls.close()

    asyncio.run(story())


class Watch(SystemClock):
    """A clock that can be put forward."""

    ahead_seconds = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead_seconds


class Word:
    """A proxy that names the same person with every request."""

    def __init__(self, account: Account) -> None:
        self._account = account

    async def account(self, scope: Scope, sender: Sender) -> Account:
        return self._account


def test_whom_a_proxy_named_has_to_come_again_after_a_while(records: SlowRecords, tmp_path: Path) -> None:
    async def story() -> None:
        lab, clock = Lab(records, tmp_path), Watch()
        lab.identity._clock = clock
        await asyncio.to_thread(add, records, "ada")
        await lab.identity.refresh()
        lab.identity.proxy_word = Word(lab.authority.accounts()[0])
        viewer = await lab.identity.viewer({"headers": [], "client": ("192.0.2.1", 5), "scheme": "http"})
        assert viewer.via == "proxy"
        assert lab.identity.is_current(viewer)
        clock.ahead_seconds = 15 * 60
        assert not lab.identity.is_current(viewer)
        lab.calls.close()

    asyncio.run(story())


@pytest.mark.promise("local-key-is-local")
@pytest.mark.parametrize(
    ("peer", "headers", "proxies", "is_known"),
    [
        ("127.0.0.1", {}, (), True),
        ("::1", {}, (), True),
        ("192.0.2.1", {}, (), True),  # the hub listens there, and doctor asks there
        ("192.0.2.1", {}, ("192.0.2.1",), True),
        ("192.0.2.2", {}, (), False),
        ("127.0.0.1", {"x-forwarded-for": "192.0.2.1"}, (), False),
        ("192.0.2.1", {"x-forwarded-for": "192.0.2.1"}, (), False),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1, 192.0.2.7"}, ("127.0.0.1",), False),
        ("192.0.2.1", {"x-forwarded-for": "192.0.2.7"}, ("192.0.2.1",), False),
        ("127.0.0.1", {"via": "1.1 x"}, (), False),
    ],
)
def test_the_key_of_the_hubs_machine_opens_nothing_elsewhere(
    records: SlowRecords,
    tmp_path: Path,
    peer: str,
    headers: dict[str, str],
    proxies: tuple[str, ...],
    is_known: bool,
) -> None:
    async def story() -> None:
        lab = Lab(records, tmp_path, listen="192.0.2.1:8470", trusted_proxies=proxies, public="off")
        lab.identity.local_key_digest = digest("ghl_key")
        sent = {"authorization": "Bearer ghl_key", **headers}
        viewer = await lab.identity.viewer(
            {
                "headers": [(name.encode(), text.encode()) for name, text in sent.items()],
                "client": (peer, 5),
                "scheme": "http",
            }
        )
        assert viewer.privacy == ("admin" if is_known else None)
        lab.calls.close()

    asyncio.run(story())
