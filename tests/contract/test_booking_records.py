"""What every backend of the booking records must do."""

from __future__ import annotations

import pytest
from msgspec import structs
from sqlalchemy import Engine

from gpuherd.model.bookings import Booking, BookingState, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor
from gpuherd.records.audit import AuditRecords
from gpuherd.records.bookings import BookingDraft, BookingRecords, Conflict, Holders, Limits, Usage
from gpuherd.records.people import PeopleRecords
from support.booking_drafts import BY, HOUR, NOW, START, A, B, C, draft

END_OF_TIME = 253_402_300_799


@pytest.fixture
def records(engine: Engine) -> BookingRecords:
    return BookingRecords(engine)


@pytest.fixture
def ada(engine: Engine) -> str:
    people = PeopleRecords(engine)
    return people.create_account(name="ada", display_name="Ada", role="member", now=NOW, by=BY).id


def book(records: BookingRecords, *drafts: BookingDraft, limits: Limits | None = None) -> Booking:
    return records.create(drafts, now=NOW, by=BY, limits=limits)[0]


def everything(records: BookingRecords) -> tuple[Booking, ...]:
    return records.changed_after(0)


def test_what_is_booked_is_read_back(records: BookingRecords) -> None:
    made = book(
        records,
        draft(C, A, title="Läufe", comment="🐑", group="vision", zone="Europe/Berlin", state="pending"),
    )
    assert made.devices == (A, C)
    assert records.get(made.id) == made
    assert records.changed_after(0) == (made,)
    assert records.changed_after(made.revision) == ()
    assert records.revision() == made.revision == 1


@pytest.mark.promise("no-device-twice")
def test_a_held_device_cannot_be_booked_and_nothing_else_of_it_is(records: BookingRecords) -> None:
    first = book(records, draft(A))
    with pytest.raises(Conflict, match="a device is already booked") as caught:
        book(records, draft(B, A, hours=0.5))
    assert caught.value.bookings == (first,)
    assert caught.value.devices == (A,)
    assert everything(records) == (first,)
    assert records.revision() == 1


@pytest.mark.parametrize("state", ["active", "pending"])
def test_what_waits_for_approval_holds_its_devices(records: BookingRecords, state: BookingState) -> None:
    first = book(records, draft(A, state="pending"))
    with pytest.raises(Conflict) as caught:
        book(records, draft(A, state=state))
    assert caught.value.bookings == (first,)


@pytest.mark.parametrize("state", ["cancelled", "refused"])
def test_what_is_over_holds_nothing(records: BookingRecords, state: BookingState) -> None:
    first = book(records, draft(A, B))
    records.change(first.id, revision=None, now=NOW, by=BY, state=state)
    second = book(records, draft(A))
    assert records.overlapping(starts_at=START, ends_at=START + 1) == (second,)
    assert len(records.overlapping(starts_at=START, ends_at=START + 1, states=["active", state])) == 2


def test_bookings_may_touch(records: BookingRecords) -> None:
    middle = book(records, draft(A))
    book(records, draft(A, at=START + HOUR))
    book(records, draft(A, at=START - HOUR))
    assert records.overlapping(devices=[A], starts_at=START, ends_at=START + HOUR) == (middle,)


def test_equal_uuids_on_two_nodes_are_two_devices(records: BookingRecords) -> None:
    book(records, draft(A))
    other = book(records, draft(C))
    assert records.overlapping(devices=[C], starts_at=0, ends_at=END_OF_TIME) == (other,)


def test_a_series_is_booked_whole_or_not_at_all(records: BookingRecords) -> None:
    taken = book(records, draft(B, at=START + 2 * HOUR))
    weeks = [draft(A, B, at=START + week * 604_800) for week in range(3)]
    series = records.create(weeks, now=NOW, by=BY)
    assert {one.series_id for one in series} == {series[0].id}
    assert [one.starts_at for one in series] == [week.starts_at for week in weeks]
    assert everything(records) == (taken, *series)
    with pytest.raises(Conflict) as caught:
        records.create([draft(C), draft(C, B, at=START + 2 * HOUR)], now=NOW, by=BY)
    assert caught.value.bookings == (taken,)
    assert everything(records) == (taken, *series)


def test_a_series_in_its_own_way_is_refused(records: BookingRecords) -> None:
    with pytest.raises(Conflict) as caught:
        records.create([draft(A, B, hours=2), draft(C, B, at=START + HOUR)], now=NOW, by=BY)
    assert caught.value.devices == (B,)
    assert everything(records) == ()


def test_what_has_not_begun_of_a_series_is_cancelled_together(records: BookingRecords) -> None:
    series = records.create([draft(A, at=START + day * 86_400) for day in range(4)], now=NOW, by=BY)
    cancelled = records.cancel_series(series[0].id, now=START + 86_400 + 5.5, by=BY, held_by=None)
    assert [one.id for one in cancelled] == [series[2].id, series[3].id]
    assert [one.state for one in everything(records)] == ["active", "active", "cancelled", "cancelled"]
    assert records.cancel_series(series[0].id, now=START + 86_400 + 6, by=BY, held_by=None) == ()
    assert records.search(series_id=series[0].id) == everything(records)[::-1]


def test_of_a_series_only_what_someone_holds_is_cancelled(records: BookingRecords, ada: str) -> None:
    series = records.create([draft(A, at=START + day * 86_400) for day in range(4)], now=NOW, by=BY)
    records.change(series[1].id, revision=None, now=NOW, by=BY, group="vision")
    records.change(series[2].id, revision=None, now=NOW, by=BY, group="speech")
    for holders, weeks in (
        (Holders(ada, ()), []),
        (Holders(ada, ("nlp",)), []),
        (Holders(ada, ("vision", "nlp")), [series[1].id]),
        (None, [series[0].id, series[2].id, series[3].id]),
    ):
        cancelled = records.cancel_series(series[0].id, now=NOW, by=BY, held_by=holders)
        assert [one.id for one in cancelled] == weeks
    own = records.create([draft(B, owner_id=ada, at=START + day * 86_400) for day in (0, 1)], now=NOW, by=BY)
    assert len(records.cancel_series(own[0].id, now=NOW, by=BY, held_by=Holders(ada, ()))) == 2


def test_devices_that_must_be_free_too(records: BookingRecords) -> None:
    first = book(records, draft(A))
    with pytest.raises(Conflict) as caught:
        records.create([draft(B)], now=NOW, by=BY, also_free=[A])
    assert (caught.value.bookings, caught.value.devices) == ((first,), (A,))
    other = records.create([draft(B, at=START + HOUR)], now=NOW, by=BY, also_free=[A])[0]
    with pytest.raises(Conflict):
        records.change(other.id, revision=None, now=NOW, by=BY, starts_at=START + 1, also_free=[A])
    assert everything(records) == (first, other)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (draft(), "no_devices"),
        (draft(A, hours=0), "reversed"),
        (draft(A, hours=-1), "reversed"),
        (draft(A, owner_id="nobody"), "unknown_account"),
        (draft(A, title="a\0b"), "bad_text"),
        (draft(A, comment="\ud800"), "bad_text"),
        (draft(A, owner_name="x" * 129), "bad_text"),
        (draft(DeviceRef("n\0", "u")), "bad_text"),
        (draft(A, at=2**70), "bad_text"),
    ],
)
def test_nonsense_is_refused_and_leaves_no_trace(
    records: BookingRecords, engine: Engine, wanted: BookingDraft, code: str
) -> None:
    with pytest.raises(Refused) as caught:
        book(records, wanted)
    assert caught.value.code == code
    assert everything(records) == ()
    assert AuditRecords(engine).search() == ()


def test_a_thousand_devices_until_the_year_9999(records: BookingRecords) -> None:
    devices = tuple(DeviceRef(f"n{number // 8}", f"GPU-{number}") for number in range(1000))
    made = book(records, draft(*devices, ends_at=END_OF_TIME))
    assert records.get(made.id) == made
    assert len(made.devices) == 1000
    with pytest.raises(Conflict) as caught:
        book(records, draft(*devices, at=END_OF_TIME - 5, ends_at=END_OF_TIME))
    assert len(caught.value.devices) == 1000


def test_a_device_named_twice_is_booked_once(records: BookingRecords) -> None:
    assert book(records, draft(A, B, A)).devices == (A, B)


def test_a_booking_is_edited_as_one(records: BookingRecords, engine: Engine) -> None:
    made = book(records, draft(A, B, title="old"))
    other = book(records, draft(C))
    changed = records.change(
        made.id,
        revision=made.revision,
        now=NOW + 1,
        by=BY,
        title="new",
        devices=[C, B],
        starts_at=START + HOUR,
        ends_at=START + 3 * HOUR,
    )
    assert changed == structs.replace(
        made,
        title="new",
        devices=(B, C),
        starts_at=START + HOUR,
        ends_at=START + 3 * HOUR,
        changed_at=NOW + 1,
        revision=3,
    )
    assert records.get(made.id) == changed
    assert records.changed_after(2) == (changed,)
    with pytest.raises(Conflict) as caught:
        records.change(made.id, revision=changed.revision, now=NOW, by=BY, title="x", starts_at=START)
    assert caught.value.bookings == (other,)
    assert records.get(made.id) == changed
    (entry, *_) = AuditRecords(engine).search(action="booking.change")
    assert entry.subject == str(made.id)
    assert "devices +1 −1" in entry.detail
    assert "new" not in entry.detail


def test_a_booking_is_not_in_its_own_way(records: BookingRecords) -> None:
    made = book(records, draft(A, B, hours=2))
    longer = records.change(made.id, revision=None, now=NOW, by=BY, ends_at=START + 5 * HOUR)
    moved = records.change(made.id, revision=longer.revision, now=NOW, by=BY, starts_at=START + HOUR)
    assert records.get(made.id) == moved


def test_a_change_needs_the_revision_it_was_thought_out_for(records: BookingRecords) -> None:
    made = book(records, draft(A))
    changed = records.change(made.id, revision=made.revision, now=NOW, by=BY, title="new")
    with pytest.raises(Refused) as caught:
        records.change(made.id, revision=made.revision, now=NOW, by=BY, title="newer")
    assert caught.value.code == "changed_meanwhile"
    assert records.get(made.id) == changed


def test_what_changes_nothing_leaves_no_trace(records: BookingRecords, engine: Engine) -> None:
    made = book(records, draft(A))
    assert records.change(made.id, revision=made.revision, now=NOW + 9, by=BY, title="") == made
    assert records.revision() == made.revision
    assert len(AuditRecords(engine).search()) == 1


@pytest.mark.parametrize("number", [0, -1, 999, 2**31, 2**63, 2**70])
def test_an_unknown_booking_is_said_to_be(records: BookingRecords, number: int) -> None:
    assert records.get(number) is None
    with pytest.raises(Refused) as caught:
        records.change(number, revision=None, now=NOW, by=BY, title="x")
    assert caught.value.code == "unknown_booking"


def test_the_past_cannot_be_edited(records: BookingRecords) -> None:
    made = book(records, draft(A))
    with pytest.raises(Refused) as caught:
        records.change(made.id, revision=None, now=START + 1, by=BY, starts_at=START + 5)
    assert caught.value.code == "past"
    released = records.change(
        made.id, revision=None, now=START + 9.5, by=BY, ends_at=START + 9, released_from=made.ends_at
    )
    assert records.overlapping(devices=[A], starts_at=START + 9, ends_at=END_OF_TIME) == ()
    with pytest.raises(Refused) as caught:
        records.change(made.id, revision=None, now=START + 10, by=BY, title="x")
    assert caught.value.code == "past"
    assert records.get(made.id) == released


def test_a_cancelled_booking_comes_back_only_if_its_devices_are_free(records: BookingRecords) -> None:
    made = book(records, draft(A, B))
    records.change(made.id, revision=None, now=NOW, by=BY, state="cancelled")
    rival = book(records, draft(B))
    with pytest.raises(Conflict) as caught:
        records.change(made.id, revision=None, now=NOW, by=BY, state="active")
    assert caught.value.devices == (B,)
    records.change(rival.id, revision=None, now=NOW, by=BY, state="cancelled")
    assert records.change(made.id, revision=None, now=NOW, by=BY, state="active").state == "active"


def test_requests_without_an_answer_are_refused_at_their_start(records: BookingRecords) -> None:
    asked = book(records, draft(A, state="pending"))
    later = book(records, draft(A, at=START + HOUR, state="pending"))
    book(records, draft(B))
    assert records.close_pending(now=START - 1, by=BY) == ()
    (closed,) = records.close_pending(now=START, by=BY)
    assert (closed.id, closed.state) == (asked.id, "refused")
    assert records.get(asked.id) == closed
    assert records.get(later.id) == later


def test_limits_count_everything_ahead(records: BookingRecords, ada: str) -> None:
    limits = Limits(max_devices_at_once=2, gpu_seconds_ahead=5 * HOUR)
    mine = book(records, draft(A, owner_id=ada, hours=2), limits=limits)
    book(records, draft(B, owner_id=ada, at=START + HOUR, hours=1, group="vision"), limits=limits)
    assert records.usage_ahead(ada, NOW) == Usage(devices_at_once=2, gpu_seconds_ahead=3 * HOUR)
    with pytest.raises(Refused, match="3 devices at a time; 2") as caught:
        book(records, draft(C, owner_id=ada, at=START + HOUR, hours=0.5), limits=limits)
    assert caught.value.code == "too_many_devices"
    with pytest.raises(Refused, match=r"5\.5 GPU-hours from now on; 5 are") as caught:
        book(records, draft(C, owner_id=ada, at=START + 2 * HOUR, hours=2.5), limits=limits)
    assert caught.value.code == "too_many_gpu_hours"
    book(records, draft(C, owner_id=ada, at=START + 2 * HOUR, hours=2), limits=limits)
    # What has passed counts no more, and what is cancelled never.
    assert records.usage_ahead(ada, START + 1.5 * HOUR).gpu_seconds_ahead == 3 * HOUR
    records.change(mine.id, revision=None, now=NOW, by=BY, state="cancelled")
    assert records.usage_ahead(ada, NOW) == Usage(devices_at_once=1, gpu_seconds_ahead=3 * HOUR)
    assert records.usage_ahead("nobody", NOW) == Usage(devices_at_once=0, gpu_seconds_ahead=0)


def test_a_limit_holds_for_changes_too_but_never_forbids_less(records: BookingRecords, ada: str) -> None:
    made = book(records, draft(A, B, owner_id=ada, hours=4))
    limits = Limits(max_devices_at_once=1, gpu_seconds_ahead=6 * HOUR)

    def change(**what: int | list[DeviceRef]) -> None:
        records.change(made.id, revision=None, now=NOW, by=BY, limits=limits, **what)  # type: ignore[arg-type]

    with pytest.raises(Refused, match="GPU-hours"):
        change(ends_at=START + 5 * HOUR)
    with pytest.raises(Refused, match="devices at a time"):
        change(devices=[A, B, C])
    change(ends_at=START + 3 * HOUR)
    change(devices=[C])
    assert records.usage_ahead(ada, NOW) == Usage(devices_at_once=1, gpu_seconds_ahead=3 * HOUR)


def test_a_limit_on_a_series_counts_all_of_it(records: BookingRecords, ada: str) -> None:
    weeks = [draft(A, owner_id=ada, at=START + week * 604_800) for week in range(3)]
    with pytest.raises(Refused):
        records.create(weeks, now=NOW, by=BY, limits=Limits(gpu_seconds_ahead=2 * HOUR))
    assert everything(records) == ()
    records.create(weeks, now=NOW, by=BY, limits=Limits(gpu_seconds_ahead=3 * HOUR, max_devices_at_once=1))


def test_bookings_are_found_by_what_they_are(records: BookingRecords, ada: str) -> None:
    own = book(records, draft(A, owner_id=ada))
    groups = book(records, draft(B, group="vision"))
    others = book(records, draft(C, at=START + 5 * HOUR))
    cancelled = records.change(others.id, revision=None, now=NOW, by=BY, state="cancelled")
    assert records.search() == (cancelled, groups, own)
    assert records.search(limit=1) == (cancelled,)
    assert records.search(before_id=others.id, limit=1) == (groups,)
    assert records.search(account_id=ada) == (own,)
    assert records.search(account_id=ada, groups=["vision", "audio"]) == (groups, own)
    assert records.search(groups=["vision"]) == (groups,)
    assert records.search(node_id="n2") == records.search(node_id="n2", uuid="GPU-a") == (cancelled,)
    assert records.search(uuid="GPU-a") == (cancelled, own)
    assert records.search(states=["active"]) == (groups, own)
    assert records.search(since=START + HOUR) == (cancelled,)
    assert records.search(until=START) == ()
    assert records.search(node_id="n\0") == ()
    assert records.of_account(ada) == (own,)
    assert records.of_account(ada, ["vision"]) == (own, groups)
    assert records.of_account(ada, since=own.ends_at) == ()


def test_every_change_is_in_the_log_in_the_same_moment(records: BookingRecords, engine: Engine) -> None:
    by = Actor(account_id=None, label="command line", peer="192.0.2.7")
    made = records.create([draft(A, B)], now=NOW, by=by)[0]
    records.change(made.id, revision=None, now=NOW + 1, by=by, state="cancelled", action="booking.cancel")
    for attempt in (
        lambda: records.create([draft(A), draft(A)], now=NOW, by=by),
        lambda: records.change(made.id, revision=1, now=NOW, by=by, title="x"),
        lambda: records.change(99, revision=None, now=NOW, by=by, title="x"),
    ):
        with pytest.raises(Refused):
            attempt()
    cancel, create = AuditRecords(engine).search()
    assert (create.action, create.subject, create.who, create.peer) == (
        "booking.create",
        str(made.id),
        "command line",
        "192.0.2.7",
    )
    assert create.detail == "2 devices, 2027-01-15 09:00:00 UTC to 2027-01-15 10:00:00 UTC, active"
    assert (cancel.action, cancel.detail, cancel.at) == ("booking.cancel", "active → cancelled", NOW + 1)
