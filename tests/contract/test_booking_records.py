"""What every backend of the booking records must do."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.errors import Refused
from gpuherd.model.people import Actor
from gpuherd.records.bookings import BookingDraft, BookingRecords, Conflict, Limits

NOW = 1_800_000_000.0
START = int(NOW) + 3600
BY = Actor(account_id=None, label="test")
A, B, C = (DeviceRef("n1", "GPU-a"), DeviceRef("n1", "GPU-b"), DeviceRef("n2", "GPU-c"))


@pytest.fixture
def records(engine: Engine) -> BookingRecords:
    return BookingRecords(engine)


def draft(*devices: DeviceRef, at: int = START, hours: float = 1, **more: object) -> BookingDraft:
    return BookingDraft(
        **{  # type: ignore[arg-type]
            "owner_id": None,
            "owner_name": "Ada",
            "devices": devices,
            "starts_at": at,
            "ends_at": at + int(hours * 3600),
            **more,
        }
    )


def book(records: BookingRecords, *drafts: BookingDraft, limits: Limits | None = None) -> Booking:
    return records.create(drafts, now=NOW, by=BY, limits=limits)[0]


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


def test_a_held_device_cannot_be_booked_and_nothing_else_of_it_is(records: BookingRecords) -> None:
    first = book(records, draft(A))
    with pytest.raises(Conflict) as caught:
        book(records, draft(B, A, hours=0.5))
    assert caught.value.bookings == (first,)
    assert caught.value.devices == (A,)
    assert records.overlapping(starts_at=0, ends_at=2 * START) == (first,)
    assert records.revision() == 1


def test_bookings_may_touch(records: BookingRecords) -> None:
    book(records, draft(A))
    book(records, draft(A, at=START + 3600))
    book(records, draft(A, at=START - 3600))
    assert len(records.overlapping(devices=[A], starts_at=START, ends_at=START + 3600)) == 1


def test_a_change_needs_the_revision_it_was_thought_out_for(records: BookingRecords) -> None:
    made = book(records, draft(A))
    changed = records.change(made.id, revision=made.revision, now=NOW, by=BY, title="new", devices=[B, C])
    assert changed.devices == (B, C)
    assert records.get(made.id) == changed
    with pytest.raises(Refused) as caught:
        records.change(made.id, revision=made.revision, now=NOW, by=BY, title="newer")
    assert caught.value.code == "changed_meanwhile"
    assert records.get(made.id) == changed
