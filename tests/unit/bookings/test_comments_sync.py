"""From a comments.json to bookings and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gpuherd.bookings.comments_export import comment_entries
from gpuherd.bookings.comments_json import CommentEntry, Comments, Complaint, read_comments, write_comments
from gpuherd.bookings.comments_sync import (
    CommentsSync,
    Owner,
    SyncOutcome,
    Taken,
    missing_from,
    place_entries,
)
from gpuherd.bookings.herd import Herd
from gpuherd.model.bookings import Booking
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords
from gpuherd.records.people import PeopleRecords
from support.booking_desk import HOUR, NOW, a100, herd_of, mig_slice, ref

BY = Actor(account_id=None, label="comments.json")
DAY = 24 * HOUR
HERD = herd_of(a100("gpu01", 0), a100("gpu01", 1), a100("gpu02.site", 0, node_name="Big Country"))


def entry(
    host: str = "gpu01", index: int = 0, name: str = "ann", days: float = 3, comment: str = ""
) -> CommentEntry:
    return CommentEntry(host=host, index=index, name=name, until=int(NOW + days * DAY), comment=comment)


class Lab:
    """A hub's records and what it remembers of the file."""

    def __init__(self, records: BookingRecords, herd: Herd = HERD) -> None:
        self.records, self.herd = records, herd
        self.taken: dict[str, Taken] = {}
        self.now = float(NOW)
        self.sync = CommentsSync(records, owner_of=lambda name: Owner(None, name), zone="Europe/Paris", by=BY)

    def take(
        self, *entries: CommentEntry, complaints: Iterable[Complaint] = (), follows: bool = True
    ) -> SyncOutcome:
        comments = Comments(entries=entries, complaints=tuple(complaints))
        placed, _ = place_entries(entries, self.herd)
        is_missing = missing_from(comments) if follows else lambda _: False
        outcome = self.sync.apply(placed, self.taken, is_missing=is_missing, now=self.now)
        self.taken = outcome.taken
        return outcome

    def held(self) -> list[tuple[str, str, int]]:
        """Give who holds which device until when, in days from the beginning."""
        found = self.records.overlapping(starts_at=int(self.now), ends_at=int(self.now) + 1)
        return sorted(
            (device.uuid, booking.owner_name, round((booking.ends_at - NOW) / DAY))
            for booking in found
            for device in booking.devices
        )

    def person(self, name: str) -> str:
        people = PeopleRecords(self.records._engine)
        return people.create_account(name=name, display_name=name, role="member", now=NOW, by=BY).id

    def person_books(self, index: int, *, start: float, end: float) -> Booking:
        draft = BookingDraft(
            owner_id=None,
            owner_name="Bob",
            devices=(ref("gpu01", index),),
            starts_at=int(NOW + start * DAY),
            ends_at=int(NOW + end * DAY),
        )
        return self.records.create([draft], now=self.now, by=BY)[0]


@pytest.fixture
def lab(records: BookingRecords) -> Lab:
    return Lab(records)


def test_entries_become_bookings_and_once_only(lab: Lab) -> None:
    first = lab.take(entry(comment="résumé"), entry(index=1, name="bob", days=-4))
    assert [(one.owner_name, one.title, one.origin, one.zone) for one in first.made] == [
        ("ann", "résumé", "comments", "Europe/Paris")
    ]
    revision = lab.records.revision()
    for _ in range(2):
        again = lab.take(entry(comment="résumé"), entry(index=1, name="bob", days=-4))
        assert (again.made, again.changed, again.ended, again.complaints) == ((), (), (), ())
    lab.taken = {}  # the memory is lost
    lab.take(entry(comment="résumé"))
    assert lab.records.revision() == revision
    assert lab.held() == [("GPU-gpu01-0", "ann", 3)]


def test_a_changed_entry_changes_its_booking(lab: Lab) -> None:
    (made,) = lab.take(entry()).made
    lab.now += 60
    outcome = lab.take(entry(days=5, comment="longer"))
    assert [(one.id, one.title) for one in outcome.changed] == [(made.id, "longer")]
    assert lab.held() == [("GPU-gpu01-0", "ann", 5)]
    outcome = lab.take(entry(name="bob", days=5))
    assert (len(outcome.ended), len(outcome.made)) == (1, 1)
    assert lab.held() == [("GPU-gpu01-0", "bob", 5)]


@pytest.mark.parametrize("gone", [(), (entry(name="ann", days=-1),)])
def test_an_entry_that_is_gone_or_past_ends_its_booking(lab: Lab, gone: tuple[CommentEntry, ...]) -> None:
    lab.take(entry(), entry(index=1))
    lab.now += 60
    assert len(lab.take(entry(index=1), *gone).ended) == 1
    assert lab.held() == [("GPU-gpu01-1", "ann", 3)]


def test_what_ended_lately_is_booked_for_its_last_second_to_be_shown_as_past(lab: Lab) -> None:
    old, recent = entry(index=0, days=-3.1), entry(index=1, days=-2.9, comment="paper")
    (made,) = lab.take(old, recent).made
    until = int(NOW - 2.9 * DAY)
    assert (made.starts_at, made.ends_at, made.owner_name, made.title) == (until - 1, until, "ann", "paper")
    assert lab.held() == []
    assert lab.take(old, recent).made == ()
    lab.taken = {}  # what was taken is forgotten, the booking is still there
    assert lab.take(old, recent).made == ()
    assert len(lab.take(entry(index=1, days=1)).made) == 1, "and then the same GPU is booked again"


def test_without_watching_nothing_ends_because_it_is_gone(lab: Lab) -> None:
    lab.take(entry())
    assert lab.take(follows=False).ended == ()
    assert lab.held() == [("GPU-gpu01-0", "ann", 3)]


def test_an_entry_that_became_unreadable_does_not_end_its_booking(lab: Lab) -> None:
    lab.take(entry(), entry(index=1))
    complaint = Complaint(host="gpu01", index="0", reason="its date cannot be read")
    assert lab.take(entry(index=1), complaints=[complaint]).ended == ()
    whole = Complaint(host="gpu01", index=None, reason="is neither a list nor a table")
    assert lab.take(complaints=[whole]).ended == ()
    assert len(lab.held()) == 2


def test_what_people_do_here_stands_until_the_file_says_something_new(lab: Lab) -> None:
    (made,) = lab.take(entry()).made
    lab.now += 60
    lab.records.change(made.id, revision=None, now=lab.now, by=BY, ends_at=int(NOW + 9 * DAY))
    lab.take(entry())
    assert lab.held() == [("GPU-gpu01-0", "ann", 9)]
    lab.records.change(
        made.id, revision=None, now=lab.now, by=BY, ends_at=int(lab.now), released_from=int(NOW + 3 * DAY)
    )
    lab.now += 60
    lab.take(entry())
    lab.taken = {}  # also when the memory is lost
    lab.take(entry())
    assert lab.held() == []
    lab.take(entry(days=4))
    assert lab.held() == [("GPU-gpu01-0", "ann", 4)]


def test_an_entry_that_was_taken_out_and_put_back_is_booked_again(lab: Lab) -> None:
    lab.take(entry())
    lab.now += 60
    lab.take()
    lab.now += 60
    lab.take(entry())
    assert lab.held() == [("GPU-gpu01-0", "ann", 3)]


def test_bookings_that_people_made_are_never_touched(lab: Lab) -> None:
    theirs = lab.person_books(0, start=1, end=2)
    outcome = lab.take(entry(), entry(index=1))
    (complaint,) = outcome.complaints
    assert str(complaint).startswith(f"gpu01:0: ann: is booked here already, by Bob (booking {theirs.id}); ")
    assert lab.held() == [("GPU-gpu01-1", "ann", 3)]
    assert lab.records.get(theirs.id) == theirs
    lab.records.change(theirs.id, revision=None, now=lab.now, by=BY, state="cancelled")
    assert lab.take(entry(), entry(index=1)).complaints == ()
    assert len(lab.held()) == 2


def test_an_extension_into_someone_elses_time_is_told(lab: Lab) -> None:
    lab.take(entry(days=1))
    lab.person_books(0, start=2, end=3)
    assert len(lab.take(entry(days=5)).complaints) == 1
    assert lab.held() == [("GPU-gpu01-0", "ann", 1)]


def test_the_end_of_time(lab: Lab) -> None:
    (forever,) = read_comments(
        b'{"gpu01":[{"name":"ann","date":"9999-12-31 23:59"}]}', ZoneInfo("UTC")
    ).entries
    assert len(lab.take(forever).made) == 1
    assert lab.take(forever).changed == ()


SPLIT = herd_of(a100("gpu01", 0, is_partitioned=True), mig_slice("gpu01", 0, 0), mig_slice("gpu01", 0, 1))


def test_slices_of_a_gpu_that_someone_has_whole_are_not_taken(lab: Lab) -> None:
    lab.person_books(0, start=1, end=2)
    lab.herd = SPLIT
    outcome = lab.take(entry())
    assert (outcome.made, [one.reason for one in outcome.complaints]) == (
        (),
        ["ann: is booked here already, by Bob (booking 1); agree with them, or remove the entry"],
    )
    assert len(lab.take(entry(days=0.5)).made) == 1
    assert len(lab.take(entry(days=1.5)).complaints) == 1  # nor does it grow into that


@pytest.mark.parametrize("remembers", [True, False])
def test_an_entry_keeps_its_gpu_when_it_is_split(lab: Lab, remembers: bool) -> None:
    lab.take(entry())
    lab.herd = SPLIT
    lab.now += 60
    if not remembers:
        lab.taken = {}
    outcome = lab.take(entry(comment="more"))
    assert outcome.complaints == ()
    assert [one.uuid for one in outcome.made[0].devices] == ["GPU-gpu01-0-0", "GPU-gpu01-0-1"]


def test_a_partitioned_gpu_is_booked_by_its_slices(records: BookingRecords) -> None:
    herd = herd_of(a100("gpu01", 0, is_partitioned=True), mig_slice("gpu01", 0, 0), mig_slice("gpu01", 0, 1))
    lab = Lab(records, herd)
    lab.take(entry())
    assert [uuid for uuid, _, _ in lab.held()] == ["GPU-gpu01-0-0", "GPU-gpu01-0-1"]


def test_people_get_their_bookings_when_they_get_an_account(lab: Lab) -> None:
    (first,) = lab.take(entry(comment="x")).made
    lab.records.change(first.id, revision=None, now=lab.now, by=BY, ends_at=int(NOW + 9 * DAY))
    with_account = {"ann": Owner(lab.person("ann"), "Ann")}
    lab.sync = CommentsSync(
        lab.records, owner_of=lambda name: with_account.get(name, Owner(None, name)), zone="UTC", by=BY
    )
    outcome = lab.take(entry(comment="x"), entry(index=1, name="bob"))
    assert [(one.owner_name, one.owner_id, one.title) for one in outcome.made] == [
        ("Ann", with_account["ann"].account_id, "x"),
        ("bob", None, ""),
    ]
    lab.now += 60
    assert lab.held() == [("GPU-gpu01-0", "Ann", 9), ("GPU-gpu01-1", "bob", 3)]
    again = lab.take(entry(comment="x"), entry(index=1, name="bob"))
    assert (again.made, again.changed, again.ended) == ((), (), ())


def test_an_entry_follows_its_index_to_another_gpu(lab: Lab) -> None:
    (first,) = lab.take(entry()).made
    lab.records.change(first.id, revision=None, now=lab.now, by=BY, ends_at=int(NOW + 9 * DAY))
    lab.herd = herd_of(a100("gpu01", 0, ref=ref("gpu01", "new")), a100("gpu01", 1))
    lab.now += 60
    outcome = lab.take(entry())
    assert [one.id for one in outcome.ended] == [first.id]
    lab.now += 60
    assert lab.held() == [("GPU-gpu01-new", "ann", 9)]  # what was extended here stays extended
    again = lab.take(entry())
    assert (again.made, again.changed, again.ended) == ((), (), ())


def test_what_was_given_back_here_is_not_booked_on_another_gpu(lab: Lab) -> None:
    (first,) = lab.take(entry()).made
    lab.now += 60
    lab.records.change(first.id, revision=None, now=lab.now, by=BY, ends_at=int(lab.now))
    lab.herd = herd_of(a100("gpu01", 0, ref=ref("gpu01", "new")))
    lab.now += 60
    assert lab.take(entry()).made == ()
    assert lab.held() == []


def test_gpus_that_have_changed_places_are_booked_in_the_end(lab: Lab) -> None:
    lab.take(entry(), entry(index=1, name="bob"))
    lab.herd = herd_of(a100("gpu01", 0, ref=ref("gpu01", 1)), a100("gpu01", 1, ref=ref("gpu01", 0)))
    lab.now += 60
    assert len(lab.take(entry(), entry(index=1, name="bob")).complaints) == 1
    lab.now += 60
    assert lab.take(entry(), entry(index=1, name="bob")).complaints == ()
    assert lab.held() == [("GPU-gpu01-0", "bob", 3), ("GPU-gpu01-1", "ann", 3)]


def test_a_node_under_two_names_has_one_booking_for_each_gpu(lab: Lab) -> None:
    both = entry(days=2), entry("gpu01.lab", name="bob", days=5)
    placed, complaints = place_entries(both, HERD)
    assert [one.entry.name for one in placed] == ["bob"]
    assert [str(one).partition(",")[0] for one in complaints] == ["gpu01:0: is the same GPU as gpu01.lab:0"]
    for _ in range(2):
        lab.take(*both)
        assert lab.held() == [("GPU-gpu01-0", "bob", 5)]
        lab.now += 60
    lab.take(both[0])
    lab.now += 60
    assert lab.held() == [("GPU-gpu01-0", "ann", 2)]


def test_a_name_that_is_taken_out_does_not_end_what_another_has(lab: Lab) -> None:
    lab.take(entry())
    longer = entry("gpu01.lab", days=5)
    lab.take(entry(), longer)
    lab.now += 60
    assert lab.take(longer).ended == ()
    assert lab.held() == [("GPU-gpu01-0", "ann", 5)]


@pytest.mark.parametrize(
    ("host", "index", "told"),
    [
        ("GPU01", 0, None),
        ("gpu01.lab", 0, None),
        ("gpu01.elsewhere", 0, None),
        ("gpu02", 0, None),
        ("gpu02.site", 0, None),
        ("Big Country", 0, None),
        ("GPU_01", 0, "there is no such node"),
        ("Gpu02_site", 0, "there is no such node"),
        ("gpu03", 0, "there is no such node"),
        ("gpu01", 7, "no GPU with that index"),
    ],
)
def test_hosts_by_id_shown_name_or_first_part(host: str, index: int, told: str | None) -> None:
    placed, complaints = place_entries([entry(host, index)], HERD)
    assert (len(placed), len(complaints)) == ((1, 0) if told is None else (0, 1))
    assert told is None or told in str(complaints[0])


@pytest.mark.parametrize(
    ("herd", "told"),
    [
        (herd_of(a100("gpu01.a", 0, node_name="x"), a100("gpu01.b", 0, node_name="y")), "several nodes"),
        (herd_of(a100("gpu01", 0, is_partitioned=True)), "has no slices"),
        (herd_of(a100("gpu01", 0), quiet=("gpu01",)), "not bookable"),
    ],
)
def test_what_cannot_be_placed_is_told(herd: Herd, told: str) -> None:
    placed, (complaint,) = place_entries([entry()], herd)
    assert placed == ()
    assert told in str(complaint)


# -- and back ------------------------------------------------------------------------------------------------------


def made(**changed: Any) -> Booking:
    values: dict[str, Any] = {
        "id": 1,
        "title": "",
        "comment": "",
        "owner_id": None,
        "owner_name": "ann",
        "group": None,
        "devices": (ref("gpu01", 1),),
        "starts_at": NOW - HOUR,
        "ends_at": NOW + HOUR,
        "zone": "UTC",
        "state": "active",
        "created_at": 0.0,
        "changed_at": 0.0,
        "revision": 1,
    }
    return Booking(**{**values, **changed})


@pytest.mark.parametrize(
    ("bookings", "expected"),
    [
        ([made(title="t", comment="two\nlines")], [("ann", NOW + HOUR, "t: two lines")]),
        ([made(starts_at=NOW + 1, ends_at=NOW + HOUR)], []),
        ([made(state="pending")], []),
        ([made(ends_at=NOW - HOUR, starts_at=0)], [("ann", NOW - HOUR, "")]),
        ([made(ends_at=NOW - 71 * HOUR, starts_at=0)], [("ann", NOW - 71 * HOUR, "")]),
        ([made(ends_at=NOW - 73 * HOUR, starts_at=0)], []),
        (
            [made(ends_at=NOW - HOUR, starts_at=0), made(id=2, owner_name="bob", starts_at=NOW - HOUR)],
            [("bob", NOW + HOUR, "")],
        ),
    ],
)
def test_what_is_told_of_a_gpu(bookings: list[Booking], expected: list[tuple[str, int, str]]) -> None:
    hosts = comment_entries(HERD, bookings, NOW)
    assert hosts.keys() == {"gpu01", "gpu02"}
    assert [(one.name, one.until, one.comment) for one in hosts["gpu01"]] == expected


def test_hosts_are_called_as_the_older_page_calls_them() -> None:
    herd = herd_of(a100("gpu-x", 0, node_name="GPU_X"), a100("n2", 0, node_name="Big Country"))
    assert comment_entries(herd, [], NOW) == {"GPU_X": [], "n2": []}
    dotted = herd_of(
        a100("a.lip6.fr", 0, node_name="a.lip6.fr"),
        a100("b.x", 0, node_name="b.x"),
        a100("b.y", 0, node_name="b.y"),
        a100("c.lab", 0, node_name="c.lab", is_dropped=True),
        a100("10.0.0.1", 0, node_name="10.0.0.1"),
    )
    names = "a", "b.x", "b.y", "c.lab", "10.0.0.1"
    assert comment_entries(dotted, [], NOW) == {name: [] for name in names}, "as the page knows them"
    placed, _ = place_entries([entry("GPU_X")], herd_of(a100("gpu-x", 0, node_name="shown otherwise")))
    assert [one.devices for one in placed] == [(ref("gpu-x", 0),)]


def test_slices_are_told_together() -> None:
    herd = herd_of(a100("gpu01", 0, is_partitioned=True), mig_slice("gpu01", 0, 0), mig_slice("gpu01", 0, 1))
    first = made(devices=(ref("gpu01", "0-0"),), title="a")
    second = made(id=2, devices=(ref("gpu01", "0-1"),), owner_name="bob", ends_at=NOW + 2 * HOUR, title="b")
    (told,) = comment_entries(herd, [first, second], NOW)["gpu01"]
    assert (told.index, told.name, told.until, told.comment) == (0, "ann, bob", NOW + 2 * HOUR, "a; b")


def test_what_is_exported_is_imported_as_it_was(lab: Lab) -> None:
    long = "x" * 300
    lab.take(entry(comment=long), entry("gpu02", name="bob"))
    bookings = lab.records.overlapping(starts_at=NOW, ends_at=NOW + 1)
    content = write_comments(comment_entries(HERD, bookings, NOW), ZoneInfo("UTC"))
    assert json.loads(content)["gpu01"][0]["comment"] == long
    lab.taken = {}
    again = lab.take(*read_comments(content, ZoneInfo("UTC")).entries)
    assert (again.made, again.changed, again.ended, again.complaints) == ((), (), (), ())
