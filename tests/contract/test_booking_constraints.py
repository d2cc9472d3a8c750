"""Overlaps are impossible in the database itself, whatever is written to it."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from gpuherd.model.bookings import Booking
from gpuherd.records.bookings import BookingRecords
from support.booking_drafts import BY, HOUR, NOW, START, A, B, draft

CHECK = "CHECK|ck_bookings_"
OVERLAP = "booking_conflict|ex_booking_devices_overlap"


@pytest.fixture
def records(engine: Engine) -> BookingRecords:
    return BookingRecords(engine)


@pytest.fixture
def two(records: BookingRecords) -> tuple[Booking, Booking]:
    """Two bookings of one device, an hour apart, and the second of another device, too."""
    first = records.create([draft(A)], now=NOW, by=BY)[0]
    second = records.create([draft(A, B, at=START + 2 * HOUR)], now=NOW, by=BY)[0]
    return first, second


def write(engine: Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


@pytest.mark.promise("no-device-twice")
def test_times_cannot_be_moved_onto_anothers(
    engine: Engine, records: BookingRecords, two: tuple[Booking, Booking]
) -> None:
    first, second = two
    for column, value in (("starts_at", START + HOUR - 1), ("ends_at", START + 9 * HOUR)):
        statement = f"UPDATE bookings SET {column} = :value WHERE id = :id"  # noqa: S608
        booking = second if column == "starts_at" else first
        with pytest.raises(IntegrityError, match=OVERLAP):
            write(engine, statement, value=value, id=booking.id)
    assert records.changed_after(0) == two


def test_moved_times_move_the_devices(
    engine: Engine, records: BookingRecords, two: tuple[Booking, Booking]
) -> None:
    write(engine, "UPDATE bookings SET starts_at = starts_at - :s WHERE id = :id", s=HOUR, id=two[1].id)
    (found,) = records.overlapping(devices=[B], starts_at=START + HOUR, ends_at=START + HOUR + 1)
    assert found.id == two[1].id


def test_a_cancelled_booking_cannot_be_revived_onto_anothers(
    engine: Engine, records: BookingRecords, two: tuple[Booking, Booking]
) -> None:
    first, _ = two
    records.change(first.id, revision=None, now=NOW, by=BY, state="cancelled")
    records.create([draft(A, hours=0.5)], now=NOW, by=BY)
    with pytest.raises(IntegrityError, match=CHECK):
        write(engine, "UPDATE bookings SET state = 'active' WHERE id = :id", id=first.id)
    with pytest.raises(IntegrityError, match=CHECK):
        write(engine, "UPDATE bookings SET holds = true WHERE id = :id", id=first.id)
    with pytest.raises(IntegrityError, match=OVERLAP):
        write(engine, "UPDATE bookings SET state = 'active', holds = true WHERE id = :id", id=first.id)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("node_id = 'n1', uuid = 'GPU-a'", "booking_conflict|pk_booking_devices"),
        ("booking_id = :other", "FOREIGN KEY|fk_booking_devices"),
        ("starts_at = 5", "FOREIGN KEY|fk_booking_devices"),
        ("ends_at = ends_at + 1", "FOREIGN KEY|fk_booking_devices"),
        ("holds = false", "FOREIGN KEY|fk_booking_devices"),
    ],
)
def test_a_device_cannot_part_from_its_bookings_times(
    engine: Engine, two: tuple[Booking, Booking], change: str, words: str
) -> None:
    statement = f"UPDATE booking_devices SET {change} WHERE booking_id = :id AND uuid = 'GPU-b'"  # noqa: S608
    values = {"other": two[0].id} if ":other" in change else {}
    with pytest.raises(IntegrityError, match=words):
        write(engine, statement, id=two[1].id, **values)


def test_a_device_cannot_be_put_into_anothers_time(
    engine: Engine, records: BookingRecords, two: tuple[Booking, Booking]
) -> None:
    rival = records.create([draft(B)], now=NOW, by=BY)[0]
    with pytest.raises(IntegrityError, match=OVERLAP):
        write(
            engine,
            "INSERT INTO booking_devices (booking_id, node_id, uuid, starts_at, ends_at, holds) "
            "VALUES (:id, 'n1', 'GPU-a', :start, :end, true)",
            id=rival.id,
            start=rival.starts_at,
            end=rival.ends_at,
        )
    with pytest.raises(IntegrityError, match=OVERLAP):
        write(engine, "UPDATE booking_devices SET uuid = 'GPU-a' WHERE booking_id = :id", id=rival.id)


@pytest.mark.parametrize(
    "change",
    [
        "ends_at = starts_at",
        "ends_at = starts_at - 1",
        "starts_at = -1",
        "ends_at = 253402300800",
        "state = 'x'",
    ],
)
def test_impossible_values_are_refused(engine: Engine, two: tuple[Booking, Booking], change: str) -> None:
    statement = f"UPDATE bookings SET {change} WHERE id = :id"  # noqa: S608
    with pytest.raises(IntegrityError, match=CHECK):
        write(engine, statement, id=two[1].id)
