"""Many who want the same: exactly one gets it, and nobody sees an error other than that."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import Engine

from gpuherd.model.bookings import DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.records.audit import AuditRecords
from gpuherd.records.bookings import BookingRecords, Limits
from gpuherd.records.people import PeopleRecords
from support.booking_drafts import BY, HOUR, NOW, START, A, B, C, draft
from support.booking_writer import BookingWriter, Outcome, race

RIVALS = 50
# Each wants the device A at a time that touches all the others', and some more.
WANTED = [draft(A, *([B], [C], [C, B], [])[number % 4], at=START + number) for number in range(RIVALS)]


@pytest.fixture
def records(engine: Engine) -> BookingRecords:
    return BookingRecords(engine)


@pytest.fixture
def ada(engine: Engine) -> str:
    people = PeopleRecords(engine)
    return people.create_account(name="ada", display_name="Ada", role="admin", now=NOW, by=BY).id


def tally(outcomes: list[Outcome]) -> Counter[object]:
    return Counter(one.kind if one.kind == "done" else one.value for one in outcomes)


def test_one_of_fifty_threads_wins(records: BookingRecords, engine: Engine) -> None:
    outcomes = race(records, WANTED, now=NOW, by=BY)
    assert tally(outcomes) == {"done": 1, "conflict": RIVALS - 1}
    (winner,) = [one.value for one in outcomes if one.kind == "done"]
    assert records.changed_after(0) == winner
    assert len(AuditRecords(engine).search()) == records.revision() == 1


def test_one_of_fifty_in_five_processes_wins(records: BookingRecords, migrated_location: Path | str) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(closing(BookingWriter(migrated_location))) for _ in range(5)]
        for writer in writers:
            assert writer.do("revision") == Outcome("done", 0)  # all are ready
        for number, writer in enumerate(writers):
            writer.tell("race", WANTED[number::5], now=NOW, by=BY)
        outcomes = [outcome for writer in writers for outcome in writer.answer()]
    assert tally(outcomes) == {"done": 1, "conflict": RIVALS - 1}
    (winner,) = [one.value for one in outcomes if one.kind == "done"]
    assert records.changed_after(0) == winner


def test_those_who_want_different_things_all_get_them(records: BookingRecords) -> None:
    wanted = [draft(DeviceRef("n", f"GPU-{number}")) for number in range(RIVALS)]
    assert tally(race(records, wanted, now=NOW, by=BY)) == {"done": RIVALS}
    revisions = [booking.revision for booking in records.changed_after(0)]
    assert sorted(revisions) == list(range(1, RIVALS + 1))


@pytest.mark.parametrize(
    ("limits", "code", "granted"),
    [
        (Limits(max_devices_at_once=3), "too_many_devices", 3),
        (Limits(gpu_seconds_ahead=4 * HOUR), "too_many_gpu_hours", 4),
        (Limits(max_bookings=5), "too_many_bookings", 5),
    ],
)
def test_nobody_passes_a_limit_by_asking_often_at_once(
    records: BookingRecords, ada: str, limits: Limits, code: str, granted: int
) -> None:
    wanted = [draft(DeviceRef("n", f"GPU-{number}"), owner_id=ada) for number in range(20)]
    outcomes = race(records, wanted, now=NOW, by=BY, limits=limits)
    assert tally(outcomes) == {"done": granted, code: 20 - granted}
    assert records.usage_ahead(ada, NOW).gpu_seconds_ahead == granted * HOUR


def test_of_two_edits_thought_out_for_the_same_one_counts(records: BookingRecords) -> None:
    made = records.create([draft(A)], now=NOW, by=BY)[0]
    start = Barrier(20)

    def edit(number: int) -> str:
        start.wait()
        try:
            return records.change(made.id, revision=made.revision, now=NOW, by=BY, title=f"{number}").title
        except Refused as error:
            return error.code

    with ThreadPoolExecutor(20) as pool:
        titles = list(pool.map(edit, range(20)))
    (winner,) = set(titles) - {"changed_meanwhile"}
    assert Counter(titles) == {winner: 1, "changed_meanwhile": 19}
    now_is = records.get(made.id)
    assert now_is is not None
    assert now_is.title == winner


def test_two_who_swap_devices_do_not_deadlock(records: BookingRecords) -> None:
    first = records.create([draft(A)], now=NOW, by=BY)[0]
    second = records.create([draft(B)], now=NOW, by=BY)[0]
    start = Barrier(20)

    def swap(number: int) -> str:
        start.wait()
        mine, device = ((first, B), (second, A))[number % 2]
        try:
            records.change(mine.id, revision=None, now=NOW, by=BY, devices=[device, C])
        except Refused as error:
            return error.code
        return "done"

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(swap, range(20))) == {"conflict"}


def test_two_admins_cannot_dismiss_each_other(engine: Engine, ada: str) -> None:
    people = PeopleRecords(engine)
    for turn in range(3):
        bob = people.create_account(name=f"bob{turn}", display_name="", role="admin", now=NOW, by=BY).id
        start = Barrier(6)

        def dismiss(number: int, others: tuple[str, str] = (ada, bob), start: Barrier = start) -> str:
            start.wait()
            try:
                if number < 2:
                    people.change_account(others[number % 2], role="member", now=NOW, by=BY)
                elif number < 4:
                    people.change_account(others[number % 2], is_disabled=True, now=NOW, by=BY)
                else:
                    people.erase_account(others[number % 2], now=NOW, by=BY)
            except Refused as error:
                return error.code
            return "done"

        with ThreadPoolExecutor(6) as pool:
            outcomes = Counter(pool.map(dismiss, range(6)))
        assert people.has_admin()
        assert outcomes["last_admin"] >= 1
        assert set(outcomes) <= {"done", "last_admin", "unknown_account"}
        (ada,) = [
            account.id
            for account in people.load().accounts
            if account.role == "admin" and not account.is_disabled
        ]


def test_a_set_up_code_is_spent_once(engine: Engine) -> None:
    people = PeopleRecords(engine)
    people.put_setup_code("digest", NOW + 60, now=NOW)
    start = Barrier(10)

    def take(number: int) -> str:
        start.wait()
        try:
            people.take_setup_code(
                "digest", name=f"admin{number}", display_name="", password_hash="h", now=NOW, by=BY
            )
        except Refused as error:
            return error.code
        return "done"

    with ThreadPoolExecutor(10) as pool:
        assert Counter(pool.map(take, range(10))) == {"done": 1, "setup_done": 9}
    assert len(people.load().accounts) == 1


def test_everyone_gets_the_same_secret(engine: Engine) -> None:
    people = PeopleRecords(engine)
    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(people.secret, ["pseudonyms"] * 20))) == 1
