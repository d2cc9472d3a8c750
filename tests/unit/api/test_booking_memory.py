"""What the hub knows of bookings without asking: it follows the records and tells the live state."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from gpuherd.api.booking_memory import BookingMemory
from gpuherd.api.booking_window import KEPT_SECONDS, BookingWindow
from gpuherd.api.record_calls import RecordCalls
from gpuherd.model.bookings import Booking, DeviceBookingFacts, DeviceRef
from gpuherd.model.people import Account, Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords
from gpuherd.records.database import open_records
from gpuherd.records.people import PeopleRecords
from support.booking_desk import HOUR, person
from support.herd import ManualClock
from support.records import migrated_sqlite

__all__ = ["migrated_sqlite"]

BY = Actor(account_id=None, label="test")
A, B = DeviceRef("n1", "GPU-0"), DeviceRef("n1", "GPU-1")
DAY = 24 * HOUR


class People:
    """Accounts that a test can change."""

    def __init__(self, *accounts: Account) -> None:
        self.generation = 0
        self._accounts = accounts

    def set(self, *accounts: Account) -> None:
        self._accounts = accounts
        self.generation += 1

    def account(self, account_id: str) -> Account | None:
        return next((one for one in self._accounts if one.id == account_id), None)

    def accounts(self) -> tuple[Account, ...]:
        return self._accounts


class Told:
    """The live state: what it was told last, and how often."""

    def __init__(self) -> None:
        self.facts: list[DeviceBookingFacts] = []
        self.times = 0

    def set_bookings(self, bookings: Iterable[DeviceBookingFacts]) -> None:
        self.facts = sorted(bookings, key=lambda fact: (fact.device, fact.starts_at))
        self.times += 1


class Hub:
    """A memory over real records."""

    def __init__(self, engine: Engine) -> None:
        self.clock, self.told = ManualClock(), Told()
        self.records = BookingRecords(engine)
        made = PeopleRecords(engine).create_account(
            name="ada", display_name="Ada", role="member", now=self.now, by=BY
        )
        self.ada = person("ada", "member", "vision", id=made.id)
        self.people = People(self.ada, person("bob", "member", "vision"), person("eve"))
        self.memory = BookingMemory(
            records=self.records, calls=RecordCalls(), herd=self.told, people=self.people, clock=self.clock
        )

    @property
    def now(self) -> int:
        return int(self.clock.wall())

    def book(self, *devices: DeviceRef, start: int = 0, hours: float = 2, **fields: Any) -> Booking:
        draft = BookingDraft(
            **{
                "owner_id": self.ada.id,
                "owner_name": "Ada",
                "devices": devices,
                "starts_at": self.now + start * HOUR,
                "ends_at": self.now + round((start + hours) * HOUR),
                **fields,
            }
        )
        return self.records.create([draft], now=self.now, by=BY)[0]

    def refresh(self) -> None:
        asyncio.run(self.memory.refresh())

    def shown(self) -> list[tuple[DeviceRef, int]]:
        return [(fact.device, fact.booking_id) for fact in self.told.facts]


@pytest.fixture
def hub(tmp_path: Path, migrated_sqlite: Path) -> Iterator[Hub]:
    engine = open_records(Path(shutil.copy(migrated_sqlite, tmp_path / "records.sqlite")))
    yield Hub(engine)
    engine.dispose()


def test_what_others_write_is_followed(hub: Hub) -> None:
    assert not hub.memory.is_current
    one = hub.book(A, B)
    hub.refresh()
    assert hub.memory.is_current
    assert hub.shown() == [(A, one.id), (B, one.id)]
    two = hub.book(A, start=3, hours=1)
    hub.records.change(one.id, revision=None, now=hub.now, by=BY, state="cancelled")
    hub.refresh()
    assert [booking.id for booking in hub.memory.window] == [two.id]
    assert hub.shown() == [(A, two.id)]


def test_nothing_is_told_when_nothing_has_changed(hub: Hub) -> None:
    hub.book(A)
    hub.refresh()
    times = hub.told.times
    for _ in range(5):
        hub.clock.advance(1)
        hub.refresh()
    assert hub.told.times == times
    hub.clock.advance(60)
    hub.refresh()
    assert hub.told.times == times + 1  # now and then, as time passes


def test_pending_ones_are_told_as_such_and_closed_when_they_are_due(hub: Hub) -> None:
    pending = hub.book(A, start=1, state="pending")
    firm = hub.book(A, start=4)
    hub.refresh()
    assert hub.memory.window.get(pending.id) is not None
    assert [(fact.booking_id, fact.is_pending) for fact in hub.told.facts] == [
        (pending.id, True),
        (firm.id, False),
    ]
    hub.clock.advance(HOUR)
    hub.refresh()
    assert hub.memory.window.get(pending.id) is None
    closed = hub.records.get(pending.id)
    assert closed is not None
    assert closed.state == "refused"
    assert hub.shown() == [(A, firm.id)]


def test_past_ones_fade(hub: Hub) -> None:
    one = hub.book(A, hours=1)
    hub.refresh()
    hub.clock.advance(3 * DAY + HOUR - 61)
    hub.refresh()
    assert hub.shown() == [(A, one.id)]
    hub.clock.advance(61)
    hub.refresh()
    assert hub.shown() == []
    assert len(hub.memory.window) == 1  # the timeline still shows it
    hub.clock.advance(KEPT_SECONDS)
    hub.refresh()
    assert len(hub.memory.window) == 0


def test_the_live_state_is_told_of_the_last_the_running_and_the_next_few(hub: Hub) -> None:
    made = [hub.book(A, start=n, hours=1).id for n in range(30)]
    hub.refresh()
    assert [number for _, number in hub.shown()] == made[:4]
    hub.clock.advance(10 * HOUR)
    hub.refresh()
    assert [number for _, number in hub.shown()] == made[9:14]
    hub.clock.advance(25 * HOUR)
    hub.refresh()
    assert [number for _, number in hub.shown()] == made[29:]


def test_whose_processes_are_the_holders(hub: Hub) -> None:
    own, ours = hub.book(A), hub.book(B, group="vision", owner_name="vision")
    hub.refresh()
    names = {fact.booking_id: set(fact.linux_names) for fact in hub.told.facts}
    assert names == {own.id: {"ada"}, ours.id: {"ada", "bob"}}
    hub.people.set(person("ada", "member", id=hub.ada.id, linux_names=("ada", "ada2")))
    hub.refresh()
    names = {fact.booking_id: set(fact.linux_names) for fact in hub.told.facts}
    assert names == {own.id: {"ada", "ada2"}, ours.id: {"ada", "ada2"}}


def test_people_without_accounts(hub: Hub) -> None:
    noted = hub.book(A, owner_id=None, owner_name="carl", origin="comments")
    gone = hub.book(B, owner_id=None, owner_name="erased user")
    assert hub.memory.users_of(noted) == {"carl"}
    assert hub.memory.users_of(gone) == frozenset()


def test_records_that_were_put_back_to_an_older_state(
    hub: Hub, tmp_path: Path, migrated_sqlite: Path
) -> None:
    hub.book(A)
    hub.book(B)
    hub.refresh()
    older = open_records(Path(shutil.copy(migrated_sqlite, tmp_path / "older.sqlite")))
    hub.memory._records = BookingRecords(older)
    hub.refresh()
    older.dispose()
    assert len(hub.memory.window) == 0
    assert hub.shown() == []


def test_older_news_of_a_booking_is_dropped(hub: Hub) -> None:
    before = hub.book(A)
    after = hub.records.change(before.id, revision=None, now=hub.now, by=BY, devices=(B,))
    window = BookingWindow()
    window.put(after)
    window.put(before)
    assert window.get(before.id) == after
    assert list(window.devices()) == [B]
    assert window.take_touched() == {B}
    assert window.between(after.ends_at, after.ends_at + 1) == []
    assert window.between(after.ends_at - 1, after.ends_at) == [after]
