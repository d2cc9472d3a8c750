"""Idempotency keys, in every database: a request that is repeated books once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs
from sqlalchemy import Engine, func, select

from gpuherd.model.errors import Refused
from gpuherd.records.booking_keys import KEY_SECONDS, BookingKey, KeyReused, key_of
from gpuherd.records.bookings import BookingRecords, Conflict
from gpuherd.records.people import PeopleRecords
from gpuherd.records.tables import booking_keys
from gpuherd.records.transactions import writing
from support.booking_drafts import BY, NOW, START, A, B, draft

WEEK = 7 * 86_400


@pytest.fixture
def records(engine: Engine) -> BookingRecords:
    return BookingRecords(engine)


def account(engine: Engine, name: str) -> str:
    people = PeopleRecords(engine)
    return people.create_account(name=name, display_name=name, role="member", now=NOW, by=BY).id


@pytest.fixture
def key(engine: Engine) -> BookingKey:
    return key_of(account(engine, "ada"), "key 1", b"book A")


def test_the_same_request_books_once_and_gets_what_was_booked(
    records: BookingRecords, key: BookingKey
) -> None:
    drafts = [draft(A), draft(A, at=START + WEEK)]
    made = records.create(drafts, now=NOW, by=BY, key=key)
    assert records.create(drafts, now=NOW + 60, by=BY, key=key) == made
    assert records.booked_with(key) == made
    # What became of it since is told, too.
    records.change(made[0].id, revision=None, now=NOW, by=BY, state="cancelled")
    assert records.create(drafts, now=NOW + 60, by=BY, key=key)[0].state == "cancelled"
    assert len(records.changed_after(0)) == 2


def test_a_key_is_for_one_request_of_one_account(
    records: BookingRecords, engine: Engine, key: BookingKey
) -> None:
    records.create([draft(A)], now=NOW, by=BY, key=key)
    another = key_of(key.account_id, "key 1", b"book B")
    with pytest.raises(KeyReused, match="use a new key"):
        records.create([draft(B)], now=NOW, by=BY, key=another)
    with pytest.raises(KeyReused):
        records.booked_with(another)
    bobs = key_of(account(engine, "bob"), "key 1", b"book A")
    with pytest.raises(Conflict):
        records.create([draft(A)], now=NOW, by=BY, key=bobs)
    assert records.create([draft(B)], now=NOW, by=BY, key=bobs)[0].devices == (B,)


def test_what_was_refused_uses_up_no_key(records: BookingRecords, key: BookingKey) -> None:
    [other] = records.create([draft(A)], now=NOW, by=BY)
    with pytest.raises(Conflict):
        records.create([draft(A)], now=NOW, by=BY, key=key)
    records.change(other.id, revision=None, now=NOW, by=BY, state="cancelled")
    assert records.create([draft(A)], now=NOW, by=BY, key=key)


@pytest.mark.promise("wrong-clock-deletes-nothing")
def test_a_booking_under_a_clock_that_is_years_ahead_forgets_no_key(
    records: BookingRecords, key: BookingKey
) -> None:
    made = records.create([draft(A)], now=NOW, by=BY, key=key)
    later = structs.replace(key, key_digest="0" * 64)
    records.create([draft(B)], now=NOW + 1000 * KEY_SECONDS, by=BY, key=later)
    assert records.create([draft(A)], now=NOW + 60, by=BY, key=key) == made


def test_keys_are_forgotten_after_a_day(records: BookingRecords, engine: Engine, key: BookingKey) -> None:
    records.create([draft(A)], now=NOW, by=BY, key=key)
    assert records.prune_keys(NOW + KEY_SECONDS - 1) == 0
    assert records.booked_with(key)
    assert records.prune_keys(NOW + KEY_SECONDS) == 1
    assert not records.booked_with(key)
    records.create([draft(B)], now=NOW + KEY_SECONDS, by=BY, key=key)
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(booking_keys)).scalar_one() == 1


def test_many_at_once_with_one_key_book_once(records: BookingRecords, key: BookingKey) -> None:
    with ThreadPoolExecutor(8) as pool:
        # Each wants another device, as `any` may choose: only the key keeps them from being booked all.
        wanted = [[draft(A if number % 2 else B)] for number in range(16)]
        answers = list(pool.map(lambda drafts: records.create(drafts, now=NOW, by=BY, key=key), wanted))
    assert len({answer[0].id for answer in answers}) == 1
    assert len(records.changed_after(0)) == 1


def test_the_database_itself_refuses_a_key_twice(
    records: BookingRecords, engine: Engine, key: BookingKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.create([draft(A)], now=NOW, by=BY, key=key)
    monkeypatch.setattr("gpuherd.records.bookings.booked_with", lambda *_, **__: ())
    with pytest.raises(Refused, match="Idempotency-Key") as caught:
        records.create([draft(B)], now=NOW, by=BY, key=key)
    assert caught.value.code == "idempotency_key_in_use"
    assert len(records.changed_after(0)) == 1


def test_keys_go_with_their_account(records: BookingRecords, engine: Engine, key: BookingKey) -> None:
    records.create([draft(A)], now=NOW, by=BY, key=key)
    with writing(engine) as connection:
        connection.exec_driver_sql("DELETE FROM accounts")
    assert not records.booked_with(key)
