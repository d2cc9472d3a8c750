"""The desk in any order: no overlap, no quota passed, no rewriting of the past, and a memory that is the records."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from gpuherd.api.booking_window import BookingWindow
from gpuherd.bookings.desk import Desk
from gpuherd.bookings.requests import (
    AnyDevices,
    BookingChange,
    BookingRequest,
    Cancellation,
    CopyRequest,
    Decision,
    Extension,
    Weekly,
)
from gpuherd.bookings.settings import BookingRule, BookingSettings
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, Actor, Role
from gpuherd.records.audit import AuditRecords
from gpuherd.records.booking_limits import BookedSpan, usage_of
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.database import open_records
from gpuherd.records.people import PeopleRecords
from support.booking_desk import HOUR, NOW, a100, asker, herd_of, ref
from support.soak import SOAK

DEVICES = [ref("n1", 0), ref("n1", 1), ref("n1", 2), ref("n2", 0)]
HERD = herd_of(*(a100(one.node_id, index) for index, one in enumerate(DEVICES[:3])), a100("n2", 0))
MAX_DEVICES = 2

devices = st.lists(st.sampled_from(DEVICES), min_size=1, max_size=2, unique=True).map(tuple)
hours = st.integers(0, 8)
lengths = st.integers(1, 5)
who = st.sampled_from(["ada", "bob", "eve", "root"])
number = st.integers(0, 50)
editor = st.sampled_from(["holder", "holder", "holder", "ada", "eve", "root"])


class DeskMachine(RuleBasedStateMachine):
    """People who book, change their minds, and a clock that goes on."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        file = shutil.copy(self.template, Path(self._folder.name) / "records.sqlite")
        self.engine = open_records(Path(file))
        self.records = BookingRecords(self.engine)
        # Bob's group must ask first; everyone may have two devices at a time.
        rules = (BookingRule(groups=("asking",), approval=True),)
        people = PeopleRecords(self.engine)
        settings = BookingSettings(max_devices=MAX_DEVICES, rules=rules)
        self.desk = Desk(self.records, settings, account_of=people.account)
        self.window = BookingWindow()
        self.now = NOW
        self.begun: dict[int, tuple[int, tuple[DeviceRef, ...]]] = {}
        self.people = {
            "ada": self._person("ada", "member", "vision"),
            "bob": self._person("bob", "member", "vision", "asking"),
            "eve": self._person("eve", "member"),
            "root": self._person("root", "admin"),
        }

    def _person(self, name: str, role: Role, *groups: str) -> Account:
        return PeopleRecords(self.engine).create_account(
            name=name,
            display_name=name.title(),
            role=role,
            groups=groups,
            now=NOW,
            by=Actor(account_id=None, label="test"),
        )

    def teardown(self) -> None:
        self.engine.dispose()
        self._folder.cleanup()

    def _editor(self, name: str, booking: Booking) -> Account:
        people = {"holder": next(a for a in self.people.values() if a.id == booking.owner_id), **self.people}
        return people[name]

    def _edit(
        self, name: str, before: Booking, verb: Callable[[], Booking | tuple[Booking, ...]]
    ) -> tuple[Booking, ...]:
        """Change something: only its holder, someone of its group or an admin can, and nobody what is over."""
        account = self._editor(name, before)
        is_theirs = before.owner_id == account.id or (
            before.group is not None and before.group in account.groups
        )
        done = self._try(verb)
        if done:
            assert is_theirs or account.role == "admin"
            assert all(one.released_from is not None or one.ends_at > self.now for one in done)
        return done

    def _try(self, verb: Callable[[], Booking | tuple[Booking, ...]]) -> tuple[Booking, ...]:
        """Do something; what is refused changes nothing."""
        before, revision = self.records.changed_after(0), self.records.revision()
        try:
            done = verb()
        except Refused:
            assert self.records.changed_after(0) == before
            assert self.records.revision() == revision
            return ()
        made = (done,) if isinstance(done, Booking) else done
        for booking in made:
            self.window.put(booking)
        return made

    def _pick(self, choice: int) -> Booking | None:
        known = self.records.changed_after(0)[-6:]
        return known[choice % len(known)] if known else None

    @initialize()
    def begin(self) -> None:
        """Some bookings that run, wait and are to come: alone it would take long to come to them."""
        for name, device, start, length in (
            ("ada", 0, 0, 6),
            ("eve", 3, 0, 5),
            ("ada", 2, 7, 3),
            ("bob", 1, 3, 4),
        ):
            wish = BookingRequest(devices=(DEVICES[device],), start=NOW + start * HOUR, end=f"{length}h")
            self._try(partial(self.desk.book, wish, asker(self.people[name]), HERD, NOW))
        self.now += HOUR

    @rule(
        name=who,
        chosen=devices,
        start=hours,
        length=lengths,
        weeks=st.sampled_from([None, None, None, 2, 3]),
        group=st.booleans(),
    )
    def book(
        self,
        name: str,
        chosen: tuple[DeviceRef, ...],
        start: int,
        length: int,
        weeks: int | None,
        group: bool,
    ) -> None:
        account = self.people[name]
        request = BookingRequest(
            devices=chosen,
            start=self.now + start * HOUR,
            end=f"{length}h",
            weekly=None if weeks is None else Weekly(times=weeks),
            group="vision" if group else None,
        )
        for made in self._try(lambda: self.desk.book(request, asker(account), HERD, self.now)):
            assert made.devices == tuple(sorted(chosen))
            assert made.ends_at - made.starts_at == length * HOUR
            assert made.state == ("pending" if name == "bob" else "active")

    @rule(name=who, count=st.integers(1, 4), start=hours, length=lengths, same=st.booleans())
    def book_any(self, name: str, count: int, start: int, length: int, same: bool) -> None:
        wish = AnyDevices(count=count, same_node=same)
        request = BookingRequest(any=wish, start=self.now + start * HOUR, end=f"{length}h")
        for made in self._try(lambda: self.desk.book(request, asker(self.people[name]), HERD, self.now)):
            assert len(made.devices) == count
            assert not same or len({one.node_id for one in made.devices}) == 1

    @rule(
        name=editor,
        choice=number,
        start=hours,
        length=lengths,
        chosen=devices,
        parts=st.sampled_from([1, 2, 3, 4, 4, 6, 7]),
    )
    def change(
        self, name: str, choice: int, start: int, length: int, chosen: tuple[DeviceRef, ...], parts: int
    ) -> None:
        before = self._pick(choice)
        if before is None:
            return
        fields: dict[str, Any] = {"revision": before.revision}
        if parts & 1:
            fields["start"] = self.now + start * HOUR
        if parts & 2:
            fields["end"] = f"{length}h"
        if parts & 4:
            fields["devices"] = chosen
        change = BookingChange(**fields)
        self._edit(
            name,
            before,
            lambda: self.desk.change(before.id, change, asker(self._editor(name, before)), HERD, self.now),
        )

    @rule(name=editor, choice=number, length=lengths)
    def extend(self, name: str, choice: int, length: int) -> None:
        before = self._pick(choice)
        if before is None:
            return
        extension = Extension(end=f"{length}h")
        for after in self._edit(
            name,
            before,
            lambda: self.desk.extend(before.id, extension, asker(self._editor(name, before)), HERD, self.now),
        ):
            assert after.ends_at == before.ends_at + length * HOUR

    @rule(name=editor, choice=number, start=hours)
    def copy(self, name: str, choice: int, start: int) -> None:
        before = self._pick(choice)
        if before is not None:
            request = CopyRequest(start=self.now + start * HOUR)
            self._try(
                lambda: self.desk.copy(before.id, request, asker(self._editor(name, before)), HERD, self.now)
            )

    @rule(name=editor, choice=number)
    def release(self, name: str, choice: int) -> None:
        before = self._pick(choice)
        if before is not None:
            self._edit(
                name,
                before,
                lambda: self.desk.release(before.id, asker(self._editor(name, before)), self.now),
            )

    @rule(name=editor, choice=number, series=st.booleans())
    def cancel(self, name: str, choice: int, series: bool) -> None:
        before = self._pick(choice)
        if before is not None:
            request = Cancellation(series=series)
            self._edit(
                name,
                before,
                lambda: self.desk.cancel(before.id, request, asker(self._editor(name, before)), self.now),
            )

    @rule(choice=number, is_approved=st.booleans())
    def decide(self, choice: int, is_approved: bool) -> None:
        before = self._pick(choice)
        if before is not None:
            by = asker(self.people["root"])
            seen = Decision(revision=before.revision)
            self._try(lambda: self.desk.decide(before.id, seen, by, self.now, is_approved=is_approved))

    @rule(passed=st.integers(1, 5))
    def wait(self, passed: int) -> None:
        self.now += passed * HOUR // 2
        by = Actor(account_id=None, label="hub")
        self._try(lambda: self.records.close_pending(now=self.now, by=by))

    @invariant()
    def nothing_overlaps(self) -> None:
        for one, other in itertools.combinations(self._holding(), 2):
            assert (
                not set(one.devices) & set(other.devices)
                or one.ends_at <= other.starts_at
                or other.ends_at <= one.starts_at
            )

    @invariant()
    def members_stay_within_their_limit(self) -> None:
        stretched = self._stretched()
        for name in ("ada", "bob", "eve"):
            own = [
                BookedSpan(one.starts_at, one.ends_at, len(one.devices))
                for one in self._holding()
                if one.owner_id == self.people[name].id and one.id not in stretched
            ]
            assert usage_of(own, now=0).devices_at_once <= MAX_DEVICES

    @invariant()
    def the_past_stays_as_it_was(self) -> None:
        for booking in self.records.changed_after(0):
            if booking.id in self.begun:
                assert (booking.starts_at, booking.devices) == self.begun[booking.id]
                assert booking.state == "active"
            elif booking.state == "active" and booking.starts_at < self.now:
                self.begun[booking.id] = booking.starts_at, booking.devices

    @invariant()
    def the_memory_is_the_records(self) -> None:
        assert {booking.id: booking for booking in self.window} == {one.id: one for one in self._holding()}
        for device in self.window.devices():
            of_device = self.window.of_device(device)
            assert of_device == sorted(of_device, key=lambda one: one.starts_at)
            assert {one.id for one in of_device} == {
                one.id for one in self._holding() if device in one.devices
            }

    def _holding(self) -> list[Booking]:
        return [one for one in self.records.changed_after(0) if one.state in ("active", "pending")]

    def _stretched(self) -> set[int]:
        """Give the bookings that an admin had to do with: they may go beyond any limit."""
        found = AuditRecords(self.engine).search(account_id=self.people["root"].id, limit=1000)
        return {int(entry.subject) for entry in found if entry.action.startswith("booking.")}


@pytest.mark.soak
def test_the_desk_in_any_order(migrated_sqlite: Path) -> None:
    DeskMachine.template = migrated_sqlite
    run_state_machine_as_test(
        DeskMachine,
        settings=settings(
            max_examples=5 * SOAK,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
