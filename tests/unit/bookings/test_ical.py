"""Calendar feeds, read back with another reader than our own eyes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar

from gpuherd.bookings.ical import MAX_EVENTS, CalendarFeed, calendar_etag, is_shown, write_calendar
from gpuherd.model.bookings import Booking, DeviceRef

NOW = 1_800_000_000
DAY = 86_400
FEED = CalendarFeed(
    name="GPUs of ann",
    hub="0a1b2c",
    device_name=lambda ref: f"{ref.node_id}/{ref.uuid[-1]}",
    owner_id="a1",
)


def booking(**changed: Any) -> Booking:
    values: dict[str, Any] = {
        "id": 7,
        "title": "training",
        "comment": "",
        "owner_id": "a1",
        "owner_name": "Ann",
        "group": None,
        "devices": (DeviceRef("gpu01", "GPU-0"), DeviceRef("gpu01", "GPU-1")),
        "starts_at": NOW,
        "ends_at": NOW + DAY,
        "zone": "Europe/Paris",
        "state": "active",
        "created_at": NOW - 100.5,
        "changed_at": NOW - 50.5,
        "revision": 12,
    }
    return Booking(**{**values, **changed})


def events(*bookings: Booking, feed: CalendarFeed = FEED, now: float = NOW) -> list[Any]:
    content = write_calendar(bookings, feed, now)
    assert all(len(line) <= 75 for line in content.split(b"\r\n"))
    assert b"\n" not in content.replace(b"\r\n", b"")
    calendar = Calendar.from_ical(content)
    assert str(calendar["version"]) == "2.0"
    return list(calendar.walk("VEVENT"))


def test_an_event_says_what_the_booking_says() -> None:
    (event,) = events(booking(comment="first\nsecond"))
    assert str(event["uid"]) == "booking-7@0a1b2c.gpuherd"
    assert event.decoded("dtstart") == datetime.fromtimestamp(NOW, UTC)
    assert event.decoded("dtend") == datetime.fromtimestamp(NOW + DAY, UTC)
    assert event.decoded("dtstamp") == event.decoded("last-modified") == datetime.fromtimestamp(NOW - 51, UTC)
    assert (event["sequence"], str(event["status"])) == (12, "CONFIRMED")
    assert str(event["summary"]) == "training"
    assert str(event["location"]) == "gpu01/0, gpu01/1"
    assert str(event["description"]).split("\n") == [
        "first",
        "second",
        "",
        "Holder: Ann",
        "Devices: gpu01/0, gpu01/1",
        "Booking 7",
    ]


def test_times_are_utc_and_need_no_zone() -> None:
    content = write_calendar([booking()], FEED, NOW)
    assert b"DTSTART:20270115T080000Z" in content
    assert b"VTIMEZONE" not in content


@pytest.mark.parametrize(
    ("state", "status"),
    [("active", "CONFIRMED"), ("pending", "TENTATIVE"), ("cancelled", "CANCELLED"), ("refused", "CANCELLED")],
)
def test_states(state: str, status: str) -> None:
    (event,) = events(booking(state=state))
    assert str(event["status"]) == status


def test_of_several_people_each_event_says_whose_it_is() -> None:
    feed = CalendarFeed(name="gpu01/0", hub="x", device_name=lambda ref: ref.uuid)
    summaries = [str(event["summary"]) for event in events(booking(), booking(id=8, title=""), feed=feed)]
    assert summaries == ["Ann: training", "Ann: GPU-0, GPU-1"]
    own = [
        str(event["summary"]) for event in events(booking(), booking(id=8, owner_id="b2", owner_name="Bob"))
    ]
    assert own == ["training", "Bob: training"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"ends_at": NOW - 365 * DAY}, True),
        ({"ends_at": NOW - 367 * DAY}, False),
        ({"starts_at": NOW + 300 * DAY, "ends_at": NOW + 301 * DAY}, True),
        ({"state": "cancelled", "changed_at": NOW - 29 * DAY}, True),
        ({"state": "cancelled", "changed_at": NOW - 31 * DAY}, False),
    ],
)
def test_what_is_shown(changed: dict[str, Any], expected: bool) -> None:
    assert is_shown(booking(**changed), NOW) is expected
    assert len(events(booking(**changed))) == expected


def test_the_tag_changes_with_the_bookings_and_with_nothing_else() -> None:
    def tag(*bookings: Booking, now: float = NOW) -> str:
        return calendar_etag(write_calendar(bookings, FEED, now))

    assert tag(booking(), booking(id=8)) == tag(booking(id=8), booking(), now=NOW + 600)
    assert tag(booking()) != tag(booking(revision=13))


def test_a_feed_has_an_end() -> None:
    many = [booking(id=number, ends_at=NOW + number) for number in range(1, MAX_EVENTS + 11)]
    found = write_calendar(many, FEED, NOW).count(b"BEGIN:VEVENT")
    assert found == MAX_EVENTS


@pytest.mark.parametrize(
    "text",
    [
        "a\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nSUMMARY:forged",
        "comma, semicolon; backslash \\ and \\n",
        "\u202egnirts\u202c \u200b zero",
        "\x00\x1b[31m\x7f",
        "x" * 10_000,
        "日本語" * 500,
        "\u2028line\u2029paragraph\x85next",
    ],
)
def test_hostile_texts_stay_within_their_event(text: str) -> None:
    hostile = booking(title=text, comment=text, owner_name=text, group=text)
    feed = CalendarFeed(name=text, hub="x", device_name=lambda _: text)
    content = write_calendar([hostile], feed, NOW)
    assert content.count(b"\r\nBEGIN:VEVENT\r\n") == 1
    assert len(content) < 40_000
    (event,) = events(hostile, feed=feed)
    seen = str(event["summary"]) + str(event["location"]) + str(event["description"])
    assert not set("\x00\x1b\u202e\u202c\u200b\u2028\u2029\x85\r") & set(seen)
    assert "\n" not in str(event["summary"])


@given(
    st.text(max_size=300),
    st.text(max_size=300),
    st.integers(0, 253_402_300_799),
    st.integers(1, 10**7),
    st.integers(0, 9),
)
def test_whatever_is_written_can_be_read(
    title: str, comment: str, start: int, length: int, count: int
) -> None:
    devices = tuple(DeviceRef("n", f"GPU-{number}") for number in range(count + 1))
    end = min(start + length, 253_402_300_799)
    (event,) = events(
        booking(title=title, comment=comment, starts_at=start, ends_at=end, devices=devices), now=0
    )
    assert event.decoded("dtstart").timestamp() == start
    assert event.decoded("dtend").timestamp() == end
