"""The desk over real records: what may be booked, changed and ended, and by whom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from gpuherd.bookings.desk import Desk
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.refusals import Forbidden, Taken, Untimely
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
from gpuherd.records.bookings import BookingRecords
from gpuherd.records.people import PeopleRecords
from support.booking_desk import HOUR, NOW, a100, asker, herd_of, mig_slice, ref

DAY = 24 * HOUR
HERD = herd_of(*(a100("n1", index) for index in range(4)), a100("n2", 0), quiet=("n1/3",))
A, B, C, QUIET, D = ref("n1", 0), ref("n1", 1), ref("n1", 2), ref("n1", 3), ref("n2", 0)


class Lab:
    """A desk, and people who come to it."""

    def __init__(self, engine: Engine, settings: BookingSettings | None = None) -> None:
        self.engine = engine
        self.records = BookingRecords(engine)
        self.people = PeopleRecords(engine)
        self.desk = Desk(self.records, settings or BookingSettings(), account_of=self.people.account)
        self.herd = HERD
        self.now = NOW
        self.ada = self.person("ada", "member", "vision")
        self.bob = self.person("bob", "member", "vision")
        self.eve = self.person("eve")
        self.root = self.person("root", "admin")

    def person(self, name: str, role: Role = "member", *groups: str) -> Account:
        return self.people.create_account(
            name=name,
            display_name=name.title(),
            role=role,
            groups=groups,
            now=NOW,
            by=Actor(account_id=None, label="test"),
        )

    def book(self, who: Account, *devices: DeviceRef, **fields: Any) -> Booking:
        return self.book_all(who, *devices, **fields)[0]

    def book_all(self, who: Account, *devices: DeviceRef, **fields: Any) -> tuple[Booking, ...]:
        request = BookingRequest(devices=devices, **{"end": "2h", **fields})
        return self.desk.book(request, asker(who), self.herd, self.now)

    def change(self, who: Account, booking: Booking, **fields: Any) -> Booking:
        return self.desk.change(booking.id, BookingChange(**fields), asker(who), self.herd, self.now)

    def extend(self, who: Account, booking: Booking, end: str | int) -> Booking:
        return self.desk.extend(booking.id, Extension(end=end), asker(who), self.herd, self.now)

    def copy(self, who: Account, booking: Booking, **fields: Any) -> Booking:
        return self.desk.copy(booking.id, CopyRequest(**fields), asker(who), self.herd, self.now)

    def release(self, who: Account, booking: Booking) -> Booking:
        return self.desk.release(booking.id, asker(who), self.now)

    def cancel(self, who: Account, booking: Booking, *, series: bool = False) -> tuple[Booking, ...]:
        return self.desk.cancel(booking.id, Cancellation(series=series), asker(who), self.now)

    def holding(self) -> list[tuple[DeviceRef, int, int]]:
        found = self.records.overlapping(starts_at=0, ends_at=NOW * 2)
        return sorted((device, b.starts_at, b.ends_at) for b in found for device in b.devices)


@pytest.fixture
def lab(engine: Engine) -> Lab:
    return Lab(engine)


def refused(code: str, path: str | None, verb: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as caught:
        verb()
    assert (caught.value.code, getattr(caught.value, "path", None)) == (code, path)
    return caught.value


# -- making --------------------------------------------------------------------------------------------------------


def test_a_booking_is_what_was_asked_for(lab: Lab) -> None:
    made = lab.book(
        lab.ada,
        B,
        A,
        A,
        start="18:00",
        end="until tomorrow 9:00",
        zone="Europe/Berlin",
        title=" two  lines\n",
        group="vision",
    )
    assert made.devices == (A, B)
    assert (made.starts_at, made.ends_at) == (NOW + 7 * HOUR + 2400, NOW + 22 * HOUR + 2400)
    assert (made.title, made.owner_name, made.group, made.zone) == (
        "two lines",
        "vision",
        "vision",
        "Europe/Berlin",
    )
    assert (made.owner_id, made.state) == (lab.ada.id, "active")


def test_a_conflict_tells_who_and_when_all_are_free(lab: Lab) -> None:
    first = lab.book(lab.ada, A, end="2h")
    lab.book(lab.ada, B, start="3h", end="1h")
    with pytest.raises(Taken, match=r"n1\.lab/0 is booked at that time by Ada") as caught:
        lab.book(lab.bob, A, B, C, start="1h", end="1h")
    assert caught.value.bookings == (first,)
    assert caught.value.next_free == NOW + 2 * HOUR
    with pytest.raises(Taken) as caught:
        lab.book(lab.bob, A, B, C, start="1h", end="90m")
    assert caught.value.next_free == NOW + 4 * HOUR


def test_one_booking_ends_where_the_next_begins(lab: Lab) -> None:
    lab.book(lab.ada, A, end="2h")
    lab.book(lab.bob, A, start="2h", end="1h")
    assert len(lab.holding()) == 2


def test_any_two_are_chosen_around_what_is_booked(lab: Lab) -> None:
    lab.book(lab.ada, A, start="1h", end="2h")
    assert lab.book(lab.bob, any="2 x A100", start="2h").devices == (B, C)
    assert lab.book(lab.eve, any=AnyDevices(), start="2h").devices == (D,)
    with pytest.raises(Taken, match="fewer than 1 devices") as caught:
        lab.book(lab.eve, any="1", start="2h", end="1h")
    assert caught.value.path == "any"
    assert caught.value.next_free == NOW + 3 * HOUR
    assert len(caught.value.bookings) == 3


def test_a_quicker_rival_only_means_another_choice(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    overlapping = lab.records.overlapping
    rivals = iter([A, B])

    def with_rival(**options: Any) -> tuple[Booking, ...]:
        found = overlapping(**options)
        if (rival := next(rivals, None)) is not None:
            lab.book(lab.ada, rival)
        return found

    monkeypatch.setattr(lab.records, "overlapping", with_rival)
    assert lab.book(lab.bob, any="1").devices == (D,)  # the node with the fewest left


def test_what_one_runs_is_booked(lab: Lab) -> None:
    lab.herd = herd_of(
        a100("n1", 0, users=frozenset({"ada"}), state="busy"),
        a100("n1", 1, users=frozenset({"bob"}), state="busy"),
        a100("n2", 0, users=frozenset({"ada", "bob"}), state="busy"),
    )
    assert lab.book(lab.ada, running=True).devices == (A, D)
    refused("nothing_running", "running", lambda: lab.book(lab.eve, running=True))


def test_a_whole_node_and_more_devices(lab: Lab) -> None:
    assert lab.book(lab.ada, D, nodes=("n1",)).devices == (A, B, C, D)


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({}, "no_devices", "devices"),
        ({"devices": (A,), "any": "1"}, "mixed_devices", "any"),
        ({"devices": (A,), "running": True}, "mixed_devices", "running"),
        ({"nodes": ("n9",)}, "unknown_node", "nodes[0]"),
        ({"devices": (A, DeviceRef("n1", "nope"))}, "unknown_device", "devices[1]"),
        ({"devices": (QUIET,)}, "quiet_device", "devices[0]"),
        ({"any": "7 x A100"}, "too_few_devices", "any.count"),
        ({"any": ""}, "unreadable_wish", "any"),
        ({"devices": (A,), "group": "speech"}, "not_in_group", "group"),
        ({"devices": (A,), "zone": "Mars"}, "unknown_zone", "zone"),
        ({"devices": (A,), "start": "yesterday"}, "unreadable_time", "start"),
        ({"devices": (A,), "start": NOW - HOUR}, "in_the_past", "start"),
        ({"devices": (A,), "start": "70d"}, "beyond_horizon", "start"),
        ({"devices": (A,), "end": "15d"}, "too_long", "end"),
        ({"devices": (A,), "end": NOW}, "reversed", "end"),
        ({"devices": (A,), "start": "3h", "end": NOW + HOUR}, "reversed", "end"),
        ({"devices": (A,), "end": "30s"}, "too_short", "end"),
        ({"devices": (A,), "end": "9999-12-31 23:59"}, "time_out_of_range", "end"),
        ({"devices": (A,), "weekly": Weekly(times=20)}, "beyond_horizon", "weekly.times"),
        ({"devices": (A,), "end": "8d", "weekly": Weekly(times=2)}, "too_long", "end"),
    ],
)
def test_what_cannot_be_booked_is_refused_by_its_field(
    lab: Lab, fields: dict[str, Any], code: str, path: str
) -> None:
    request = BookingRequest(**{"end": "2h", **fields})
    refused(code, path, lambda: lab.desk.book(request, asker(lab.ada), lab.herd, NOW))
    assert lab.holding() == []
    assert lab.records.revision() == 0


def test_a_weekly_series_is_all_or_nothing(lab: Lab) -> None:
    made = lab.book_all(lab.ada, A, start="tuesday 9:00", end="8h", weekly=Weekly(times=4))
    assert {booking.series_id for booking in made} == {made[0].id}
    assert [b.starts_at - made[0].starts_at for b in made] == [0, 7 * DAY, 14 * DAY, 21 * DAY]
    lab.book(lab.bob, B, start=made[2].starts_at + HOUR, end="1h")
    with pytest.raises(Taken):
        lab.book_all(lab.ada, B, start="tuesday 9:00", end="8h", weekly=Weekly(times=4))
    assert len([one for one in lab.holding() if one[0] == B]) == 1


def test_any_for_a_weekly_series_is_free_in_every_week(lab: Lab) -> None:
    lab.book(lab.bob, D, start=NOW + 7 * DAY, end="1h")
    made = lab.book_all(lab.ada, any="1", start=NOW, end="1h", weekly=Weekly(times=3))
    assert {booking.devices for booking in made} == {(A,)}


def test_a_dry_run_tells_the_same_and_books_nothing(lab: Lab) -> None:
    would = lab.book_all(lab.ada, any="2", dry_run=True, weekly=Weekly(times=2))
    assert [booking.id for booking in would] == [0, 0]
    assert lab.records.revision() == 0
    assert lab.book_all(lab.ada, any="2", weekly=Weekly(times=2))[1].devices == would[1].devices
    with pytest.raises(Taken):
        lab.book(lab.bob, *would[0].devices, dry_run=True)


def test_slices_of_a_gpu_that_was_booked_whole(lab: Lab) -> None:
    lab.book(lab.ada, D)
    lab.herd = herd_of(
        a100("n2", 0, is_partitioned=True), mig_slice("n2", 0, 0), mig_slice("n2", 0, 1), a100("n1", 0)
    )
    part = ref("n2", "0-1")
    for devices in ((part,), (D,)):
        with pytest.raises(Taken, match="by Ada"):
            lab.book(lab.bob, *devices)
    with pytest.raises(Taken):
        lab.book(lab.bob, any="1g.10gb")
    assert lab.book(lab.bob, part, start="2h").devices == (part,)


def split(*slices: int) -> Herd:
    """The herd after the GPU ``D`` was cut."""
    return herd_of(
        a100("n1", 0), a100("n2", 0, is_partitioned=True), *(mig_slice("n2", 0, index) for index in slices)
    )


def test_a_gpu_that_was_booked_whole_does_not_grow_over_its_slices(lab: Lab) -> None:
    whole = lab.book(lab.ada, D, end="2h")
    lab.herd = split(0, 1)
    part = lab.book(lab.bob, ref("n2", "0-0"), start="2h", end="2h")
    end = whole.ends_at + HOUR
    verbs = (partial(lab.extend, lab.ada, whole, end), partial(lab.change, lab.ada, whole, end=end))
    for verb in verbs:
        with pytest.raises(Taken, match=r"n2\.lab/0\.0 is booked at that time by Bob") as caught:
            verb()
        assert caught.value.bookings == (part,)
    lab.cancel(lab.bob, part)
    assert lab.extend(lab.ada, whole, "1h").ends_at == NOW + 3 * HOUR
    assert lab.change(lab.ada, whole, title="as it is").title == "as it is"


def test_when_slices_are_free_is_told_by_their_gpu_too(lab: Lab) -> None:
    lab.book(lab.ada, D, end="5h")
    lab.herd = split(0)
    with pytest.raises(Taken) as caught:
        lab.book(lab.bob, ref("n2", "0-0"))
    assert caught.value.next_free == NOW + 5 * HOUR


def test_a_hub_without_bookings(engine: Engine) -> None:
    lab = Lab(engine, BookingSettings(enabled=False))
    refused("bookings_off", None, lambda: lab.book(lab.root, A))


# -- limits --------------------------------------------------------------------------------------------------------


def test_limits_bind_members_and_not_admins(engine: Engine) -> None:
    lab = Lab(engine, BookingSettings(max_devices=2, gpu_hours_ahead=10, quiet=()))
    lab.book(lab.ada, A, B, end="4h")
    told = refused("too_many_devices", None, lambda: lab.book(lab.ada, C, start="3h"))
    assert "3 devices at a time; 2 are allowed" in str(told)
    refused("too_many_devices", None, lambda: lab.book(lab.ada, C, start="3h", dry_run=True))
    told = refused("too_many_gpu_hours", None, lambda: lab.book(lab.ada, C, start="4h", end="3h"))
    assert "11 GPU-hours from now on; 10 are allowed" in str(told)
    refused("too_many_gpu_hours", None, lambda: lab.book(lab.ada, C, start="4h", end="3h", dry_run=True))
    assert lab.book(lab.ada, C, start="4h", end="2h").id
    assert lab.book(lab.root, C, D, end="4h").id
    with pytest.raises(Taken):
        lab.book(lab.root, A)


def test_limits_bind_changes_too(engine: Engine) -> None:
    lab = Lab(engine, BookingSettings(max_devices=2, gpu_hours_ahead=10))
    lab.book(lab.ada, A, B, end="2h")
    later = lab.book(lab.ada, C, start="3h", end="1h")
    refused("too_many_devices", None, lambda: lab.change(lab.ada, later, start="1h", end="1h"))
    refused("too_many_devices", None, lambda: lab.change(lab.ada, later, devices=(A, B, C)))
    refused("too_many_gpu_hours", None, lambda: lab.extend(lab.ada, later, "6h"))
    assert lab.extend(lab.ada, later, "5h").ends_at == NOW + 9 * HOUR
    assert lab.extend(lab.root, later, "6h").ends_at == NOW + 15 * HOUR
    assert lab.change(lab.ada, later, title="beyond the limit, but no further").title


def test_rules_of_groups(engine: Engine) -> None:
    lab = Lab(engine, BookingSettings(max_days=1, rules=(BookingRule(groups=("vision",), max_days=3),)))
    assert lab.book(lab.ada, A, end="3d").id
    refused("too_long", "end", lambda: lab.book(lab.eve, B, end="3d"))
    assert lab.book(lab.root, B, end="300d").id


def test_a_colleague_with_larger_limits_does_not_lift_the_owners(engine: Engine) -> None:
    rules = (BookingRule(groups=("big",), max_days=9, max_devices=9, gpu_hours_ahead=1000),)
    settings = BookingSettings(max_days=1, max_devices=1, gpu_hours_ahead=20, horizon_days=9, rules=rules)
    lab = Lab(engine, settings)
    big = lab.person("big", "member", "vision", "big")
    for owner, editor in ((lab.ada, big), (big, lab.ada)):
        own = lab.book(owner, A, start="1h", end="2h", group="vision")
        change, extend = partial(lab.change, editor, own), partial(lab.extend, editor, own)
        refused("too_long", "end", partial(change, start="1h", end="3d"))
        refused("too_many_devices", None, partial(change, devices=(A, B)))
        refused("too_many_gpu_hours", None, partial(extend, "21h"))
        assert lab.extend(editor, own, "1h").ends_at == NOW + 4 * HOUR
        lab.cancel(owner, own)


def test_what_has_no_owner_counts_as_of_whoever_takes_more_of_it(engine: Engine) -> None:
    lab = Lab(engine, BookingSettings(max_devices=1, gpu_hours_ahead=6))
    left = lab.book(lab.ada, A, start="1h", end="2h", group="vision")
    lab.people.erase_account(lab.ada.id, now=NOW, by=asker(lab.root).by)
    lab.book(lab.bob, B, start="3h", end="3h")
    refused("too_many_devices", None, lambda: lab.extend(lab.bob, left, "1h"))
    refused("too_many_gpu_hours", None, lambda: lab.change(lab.bob, left, start="6h", end="4h"))
    assert lab.extend(lab.root, left, "1h").ends_at == NOW + 4 * HOUR


@pytest.mark.parametrize("asking", ["ada", "bob"])
def test_approval_is_needed_if_the_owner_or_the_editor_needs_it(engine: Engine, asking: str) -> None:
    rules = (BookingRule(groups=("asking",), approval=True),)
    lab = Lab(engine, BookingSettings(rules=rules))
    by = asker(lab.root).by
    booking = lab.book(lab.ada, A, start="1h", group="vision")
    people = {"ada": lab.ada, "bob": lab.bob}
    people[asking] = lab.people.change_account(people[asking].id, groups=("vision", "asking"), now=NOW, by=by)
    refused("needs_approval", "end", lambda: lab.extend(people["bob"], booking, "1h"))
    assert lab.extend(lab.root, booking, "1h").state == "active"


def test_of_an_owner_who_is_not_known_the_general_limits_hold(engine: Engine) -> None:
    settings = BookingSettings(max_days=1, rules=(BookingRule(groups=("vision",), max_days=9),))
    lab = Lab(engine, settings)
    booking = lab.book(lab.ada, A, end="2d", group="vision")
    assert lab.extend(lab.bob, booking, "1d").id
    desk = Desk(lab.records, settings, account_of=lambda _: None)
    refused(
        "too_long",
        "end",
        lambda: desk.extend(booking.id, Extension(end="1d"), asker(lab.bob), HERD, NOW),
    )


# -- changing ------------------------------------------------------------------------------------------------------


def test_who_may_change_a_booking(lab: Lab) -> None:
    own = lab.book(lab.ada, A)
    groups = lab.book(lab.ada, B, group="vision")
    for who in (lab.bob, lab.eve):
        for verb in (
            lambda who=who: lab.change(who, own, title="mine"),
            lambda who=who: lab.extend(who, own, "1h"),
            lambda who=who: lab.release(who, own),
            lambda who=who: lab.cancel(who, own),
            lambda who=who: lab.cancel(who, own, series=True),
        ):
            with pytest.raises(Forbidden, match="this booking belongs to Ada"):
                verb()
    assert lab.change(lab.bob, groups, title="ours").title == "ours"
    with pytest.raises(Forbidden):
        lab.change(lab.eve, groups, title="mine")
    assert lab.change(lab.root, own, title="fixed").title == "fixed"


def test_a_viewer_who_was_a_member_once_changes_nothing(lab: Lab) -> None:
    booking = lab.book(lab.ada, A)
    lab.people.change_account(lab.ada.id, role="viewer", now=NOW, by=asker(lab.root).by)
    demoted = lab.people.account(lab.ada.id)
    assert demoted is not None
    with pytest.raises(Forbidden):
        lab.release(demoted, booking)


def test_everything_of_one_that_has_not_begun_can_be_changed(lab: Lab) -> None:
    before = lab.book(lab.ada, A, start="1h")
    after = lab.change(
        lab.ada,
        before,
        revision=before.revision,
        start="3h",
        end="2h",
        devices=(B, D),
        comment="a\nb",
        group="vision",
    )
    assert (after.starts_at, after.ends_at, after.devices) == (NOW + 3 * HOUR, NOW + 5 * HOUR, (B, D))
    assert (after.comment, after.group, after.owner_name) == ("a\nb", "vision", "vision")
    assert lab.change(lab.ada, after, group=None).owner_name == "Ada"
    assert lab.holding() == [(B, NOW + 3 * HOUR, NOW + 5 * HOUR), (D, NOW + 3 * HOUR, NOW + 5 * HOUR)]


def test_who_has_read_an_older_state_is_told(lab: Lab) -> None:
    before = lab.book(lab.ada, A, group="vision")
    lab.change(lab.ada, before, title="one")
    refused(
        "changed_meanwhile", None, lambda: lab.change(lab.bob, before, revision=before.revision, title="two")
    )
    refused(
        "changed_meanwhile",
        None,
        lambda: lab.desk.extend(
            before.id, Extension(end="1h", revision=before.revision), asker(lab.bob), lab.herd, NOW
        ),
    )


def test_what_has_begun_keeps_its_start_and_devices(lab: Lab) -> None:
    running = lab.book(lab.ada, A, end="4h")
    lab.now += HOUR
    refused("begun", "start", lambda: lab.change(lab.ada, running, start="2h"))
    refused("begun", "devices", lambda: lab.change(lab.ada, running, devices=(A, B)))
    refused("in_the_past", "end", lambda: lab.change(lab.ada, running, end=lab.now - 5))
    refused("begun", None, lambda: lab.cancel(lab.ada, running))
    same = lab.change(lab.ada, running, start=running.starts_at, devices=(A,), end=lab.now + HOUR)
    assert (same.starts_at, same.ends_at) == (NOW, NOW + 2 * HOUR)


def test_the_past_cannot_be_changed_by_anyone(lab: Lab) -> None:
    over = lab.book(lab.ada, A)
    lab.now += 2 * HOUR
    for who in (lab.ada, lab.root):
        for verb in (
            lambda who=who: lab.change(who, over, title="x"),
            lambda who=who: lab.extend(who, over, "1h"),
            lambda who=who: lab.release(who, over),
            lambda who=who: lab.cancel(who, over),
        ):
            with pytest.raises(Untimely, match="the past cannot be changed"):
                verb()
    cancelled = lab.book(lab.ada, A, start="1h")
    lab.cancel(lab.ada, cancelled)
    refused("cancelled", None, lambda: lab.change(lab.ada, cancelled, title="x"))


def test_extending_counts_from_the_end_and_meets_rules_and_others(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, end="2h")
    assert lab.extend(lab.ada, booking, "1h").ends_at == NOW + 3 * HOUR
    lab.book(lab.bob, A, start="5h", end="1h")
    with pytest.raises(Taken) as caught:
        lab.extend(lab.ada, booking, "3h")
    assert [one.owner_name for one in caught.value.bookings] == ["Bob"]
    refused("not_later", "end", lambda: lab.extend(lab.ada, booking, NOW + HOUR))
    refused("too_long", "end", lambda: lab.extend(lab.ada, booking, "14d"))
    assert lab.extend(lab.ada, booking, "until 14:00").ends_at == NOW + 4 * HOUR + 2400


def test_a_conflict_with_itself_is_none(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, B, start="1h", end="2h")
    assert lab.change(lab.ada, booking, start="2h", end="2h", devices=(A, C)).starts_at == NOW + 2 * HOUR


def test_a_device_that_is_gone_stays_in_its_booking(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, B, start="1h")
    lab.herd = herd_of(a100("n1", 1), a100("n1", 2))
    assert lab.change(lab.ada, booking, devices=(A, B, C)).devices == (A, B, C)
    assert lab.change(lab.ada, booking, devices=(B,)).devices == (B,)
    refused("unknown_device", "devices[1]", lambda: lab.change(lab.ada, booking, devices=(B, A)))


def test_a_running_booking_is_released_and_the_rest_is_free(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, end="4h")
    lab.now += HOUR
    released = lab.release(lab.ada, booking)
    assert (released.ends_at, released.released_from, released.state) == (lab.now, NOW + 4 * HOUR, "active")
    assert lab.book(lab.bob, A, end="1h").starts_at == lab.now


def test_what_has_not_begun_is_cancelled_by_releasing(lab: Lab) -> None:
    assert lab.release(lab.ada, lab.book(lab.ada, A, start="1h")).state == "cancelled"
    assert lab.holding() == []


def test_what_began_this_very_second_ends_with_it(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, end="4h")
    released = lab.release(lab.ada, booking)
    assert (released.ends_at, released.released_from, released.state) == (NOW + 1, NOW + 4 * HOUR, "active")
    assert lab.release(lab.ada, booking) == released, "and once more changes nothing"
    lab.now += 1
    assert lab.book(lab.bob, A, end="1h").starts_at == lab.now


def test_one_or_the_rest_of_a_series_is_cancelled(lab: Lab) -> None:
    made = lab.book_all(lab.ada, A, start="1h", end="1h", weekly=Weekly(times=5))
    assert [b.id for b in lab.cancel(lab.ada, made[1])] == [made[1].id]
    assert [b.id for b in lab.cancel(lab.ada, made[3], series=True)] == [made[3].id, made[4].id]
    assert [start for _, start, _ in lab.holding()] == [made[0].starts_at, made[2].starts_at]
    lab.now = made[0].starts_at + 60
    assert [b.id for b in lab.cancel(lab.ada, made[0], series=True)] == [made[2].id]
    refused("past", None, lambda: lab.cancel(lab.ada, made[0], series=True))
    single = lab.book(lab.ada, B, start="1h")
    assert [b.id for b in lab.cancel(lab.ada, single, series=True)] == [single.id]


def test_only_those_weeks_are_cancelled_that_one_may_change(lab: Lab) -> None:
    made = lab.book_all(lab.ada, A, start="1h", end="1h", weekly=Weekly(times=4))
    for week in (made[1], made[3]):
        lab.change(lab.ada, week, group="vision")
    assert [b.id for b in lab.cancel(lab.bob, made[1], series=True)] == [made[1].id, made[3].id]
    assert [start for _, start, _ in lab.holding()] == [made[0].starts_at, made[2].starts_at]
    refused("past", None, lambda: lab.cancel(lab.bob, made[1], series=True))
    assert len(lab.cancel(lab.root, made[0], series=True)) == 2


def test_what_is_kept_out_of_booking_by_now_is_not_taken_for_longer(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, B, start="3h", end="2h")
    lab.herd = herd_of(*(a100("n1", index) for index in range(3)), quiet=("n1/0",))
    refused("quiet_device", "end", lambda: lab.extend(lab.ada, booking, "1h"))
    refused("quiet_device", "end", lambda: lab.change(lab.ada, booking, start="4h", end="2h"))
    refused("quiet_device", "start", lambda: lab.change(lab.ada, booking, start="2h"))
    assert lab.change(lab.ada, booking, devices=(A, C)).devices == (A, C)
    assert lab.change(lab.ada, booking, end=NOW + 4 * HOUR).ends_at == NOW + 4 * HOUR
    assert lab.extend(lab.root, booking, "2h").ends_at == NOW + 6 * HOUR
    assert lab.change(lab.ada, booking, devices=(C,), end=NOW + 7 * HOUR).devices == (C,)


def test_copying_gives_the_same_to_whoever_copies(lab: Lab) -> None:
    first = lab.book(lab.ada, A, B, end="4h", title="run", group="vision")
    lab.now += HOUR
    lab.release(lab.ada, first)
    again = lab.copy(lab.eve, first, start="tomorrow 8:00")
    assert (again.devices, again.ends_at - again.starts_at) == (first.devices, 4 * HOUR)
    assert (again.title, again.owner_id, again.group, again.owner_name) == ("run", lab.eve.id, None, "Eve")
    assert lab.copy(lab.bob, first, start="2d", end="30m").group == "vision"
    with pytest.raises(Taken):
        lab.copy(lab.bob, first, start="tomorrow 9:00")
    lab.herd = herd_of(a100("n1", 0))
    refused("unknown_device", "devices[1]", lambda: lab.copy(lab.bob, first, start="3d"))


@pytest.mark.parametrize("number", [0, -1, 99, 2**31, 2**63, 2**200])
def test_numbers_that_no_booking_has(lab: Lab, number: int) -> None:
    refused("unknown_booking", None, lambda: lab.desk.get(number))
    refused("unknown_booking", None, lambda: lab.desk.release(number, asker(lab.ada), NOW))


# -- approval ------------------------------------------------------------------------------------------------------


@pytest.fixture
def strict(engine: Engine) -> Lab:
    return Lab(engine, BookingSettings(approval=True))


def decide(lab: Lab, booking: Booking, *, is_approved: bool) -> Booking:
    seen = Decision(revision=booking.revision)
    return lab.desk.decide(booking.id, seen, asker(lab.root), lab.now, is_approved=is_approved)


def test_pending_ones_hold_their_devices_until_they_are_refused(strict: Lab) -> None:
    pending = strict.book(strict.ada, A, start="1h")
    assert pending.state == "pending"
    with pytest.raises(Taken):
        strict.book(strict.bob, A, start="1h")
    assert decide(strict, pending, is_approved=False).state == "refused"
    other = strict.book(strict.bob, A, start="1h")
    assert decide(strict, other, is_approved=True).state == "active"
    refused("not_pending", None, lambda: decide(strict, other, is_approved=True))
    assert strict.book(strict.root, B, start="1h").state == "active"


def test_what_was_approved_is_never_put_at_risk_by_asking_for_more(strict: Lab) -> None:
    asked = strict.book(strict.ada, A, start="1h")
    more = strict.change(strict.ada, asked, devices=(A, B))
    assert more.state == "pending"
    booking = decide(strict, more, is_approved=True)
    assert strict.change(strict.ada, booking, title="x").state == "active"
    assert strict.change(strict.ada, booking, devices=(A,)).state == "active"
    refused("needs_approval", "end", lambda: strict.change(strict.ada, booking, devices=(A, C)))
    refused("needs_approval", "end", lambda: strict.extend(strict.ada, booking, "1h"))
    assert strict.desk.get(booking.id).state == "active"
    strict.now = booking.starts_at + 60
    refused("needs_approval", "end", lambda: strict.extend(strict.ada, booking, "1h"))
    assert strict.extend(strict.root, booking, "1h").state == "active"


@pytest.mark.parametrize("is_approved", [True, False])
def test_an_answer_is_to_what_was_shown(strict: Lab, is_approved: bool) -> None:
    shown = strict.book(strict.ada, A, start="1h")
    now = strict.change(strict.ada, shown, devices=(A, B, C), end="9d")
    refused("changed_meanwhile", None, lambda: decide(strict, shown, is_approved=is_approved))
    assert strict.desk.get(shown.id) == now
    assert decide(strict, now, is_approved=is_approved).state == ("active" if is_approved else "refused")


# -- who did what --------------------------------------------------------------------------------------------------


def test_every_change_is_in_the_audit_log(lab: Lab) -> None:
    booking = lab.book(lab.ada, A, end="4h")
    lab.extend(lab.ada, booking, "1h")
    lab.now += HOUR
    lab.release(lab.root, booking)
    found = AuditRecords(lab.engine).search(action="booking")
    told = [
        (entry.action, entry.subject, entry.who, entry.peer)
        for entry in found
        if entry.action.startswith("booking")
    ]
    assert told == [
        ("booking.release", str(booking.id), "root", "192.0.2.7"),
        ("booking.extend", str(booking.id), "ada", "192.0.2.7"),
        ("booking.create", str(booking.id), "ada", "192.0.2.7"),
    ]


def test_pictures_of_the_herd_are_looked_up_by_node_and_uuid() -> None:
    herd = Herd([a100("n1", 0)])
    assert herd.label(DeviceRef("n1", "gone")).node_name == "n1.lab"
    assert herd.label(DeviceRef("n9", "gone")).node_name == "n9"
    assert herd.label(DeviceRef("n9", "gone")).is_gone
    assert herd.word(DeviceRef("n9", "gone")) == "n9/gone"
    assert herd.word(ref("n1", 0)) == "n1.lab/0"
    assert (
        herd_of(a100("n1", 2, is_partitioned=True), mig_slice("n1", 2, 1)).word(ref("n1", "2-1"))
        == "n1.lab/2.1"
    )
