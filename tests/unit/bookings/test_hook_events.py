"""Which events are due, and what is told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.bookings.hook_events import LATE_SECONDS, Event, Violation, Violations, due_events, event_body
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.views import BookedDevice
from gpuherd.model.bookings import Booking, BookingUse, DeviceRef
from gpuherd.model.errors import Misconfigured

NOW = 1_800_000_000
GPU = DeviceRef("gpu01", "GPU-0")
ALL: Any = ("start", "end", "violation")


def booking(**changed: Any) -> Booking:
    values: dict[str, Any] = {
        "id": 7,
        "title": "training",
        "comment": "",
        "owner_id": "a1",
        "owner_name": "Ann",
        "group": None,
        "devices": (GPU,),
        "starts_at": NOW - 10,
        "ends_at": NOW + 100,
        "zone": "UTC",
        "state": "active",
        "created_at": NOW - 100.0,
        "changed_at": NOW - 100.0,
        "revision": 1,
    }
    return Booking(**{**values, **changed})


def due(
    one: Booking,
    *,
    since: float = 0,
    now: float = NOW,
    on: Any = ALL,
    violations: dict[int, Violation] | None = None,
) -> list[str]:
    found = due_events([one], violations or {}, on=on, since=since, violation_after_seconds=60, now=now)
    return [event.id for event in found]


def test_a_booking_starts_and_ends() -> None:
    assert due(booking(), now=NOW - 11) == []
    assert due(booking(), now=NOW - 10) == ["booking-7-start"]
    assert due(booking(), now=NOW + 100) == ["booking-7-start", "booking-7-end"]
    assert due(booking(), now=NOW + 100, on=("end",)) == ["booking-7-end"]


@pytest.mark.parametrize("state", ["pending", "cancelled", "refused"])
def test_only_what_stands_happens(state: str) -> None:
    assert due(booking(state=state), now=NOW + 100) == []


def test_what_happened_before_the_hook_was_there_is_not_told() -> None:
    assert due(booking(), since=NOW, now=NOW + 100) == ["booking-7-end"]


def test_a_hub_that_was_away_tells_late_but_not_for_ever() -> None:
    assert due(booking(), now=NOW + LATE_SECONDS - 20) == ["booking-7-start", "booking-7-end"]
    assert due(booking(), now=NOW + LATE_SECONDS + 101) == []


def test_a_violation_must_last() -> None:
    uses: dict[tuple[int, DeviceRef], BookingUse] = {(7, GPU): "others"}
    violations = Violations()
    found = violations.take(uses, NOW)
    assert due(booking(), on=("violation",), violations=found, now=NOW + 59) == []
    found = violations.take({(7, GPU): "shared"}, NOW + 60)
    assert found == {7: Violation(since=NOW, devices=(GPU,))}
    assert due(booking(), on=("violation",), violations=found, now=NOW + 60) == ["booking-7-violation"]


def test_what_is_not_known_neither_breaks_nor_mends() -> None:
    violations = Violations()
    assert violations.take({(7, GPU): "unknown"}, NOW) == {}
    violations.take({(7, GPU): "others"}, NOW + 10)
    assert violations.take({(7, GPU): "unknown"}, NOW + 20) == {}
    assert violations.take({(7, GPU): "others"}, NOW + 30)[7].since == NOW + 10
    assert violations.take({(7, GPU): "holder"}, NOW + 40) == {}
    assert violations.take({(7, GPU): "others"}, NOW + 50)[7].since == NOW + 50


def test_what_is_told() -> None:
    def label(ref: DeviceRef) -> BookedDevice:
        return BookedDevice(
            node_id=ref.node_id,
            uuid=ref.uuid,
            node_name="gpu01.lab",
            index=0,
            parent_index=None,
            short_name="A100",
            is_gone=False,
        )

    violation = Violation(since=NOW, devices=(GPU,))
    event = Event(kind="violation", booking=booking(title="a\nb"), at=NOW, violation=violation)
    told = json.loads(event_body(event, hub="https://gpus/", label=label, users=lambda _: ["eve", "bob"]))
    assert (told["version"], told["id"], told["event"], told["hub"]) == (
        1,
        "booking-7-violation",
        "violation",
        "https://gpus/",
    )
    assert told["booking"]["holder"] == "Ann"
    assert told["booking"]["devices"][0]["node_name"] == "gpu01.lab"
    assert told["violation"]["users"] == ["bob", "eve"]


@given(
    st.integers(NOW - 200_000, NOW + 200_000),
    st.integers(1, 200_000),
    st.lists(st.integers(0, 50_000), min_size=1, max_size=20),
)
def test_over_any_looks_each_event_is_due_once_it_has_happened(
    start: int, length: int, steps: list[int]
) -> None:
    one = booking(starts_at=start, ends_at=start + length)
    now, told = NOW, list[str]()
    for step in steps:
        now += step
        told += [event for event in due(one, since=NOW, now=now) if event not in told]
    expected = [
        f"booking-7-{kind}" for kind, at in (("start", start), ("end", start + length)) if NOW <= at <= now
    ]
    assert told == expected


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({}, "give either url or command"),
        ({"url": "https://x", "command": ("/bin/true",)}, "give either url or command"),
        ({"url": "ftp://x"}, "not an http or https address"),
        ({"url": "https://user:secret@x/"}, "must not contain a user name"),
        ({"url": "https://[::1"}, "not an http or https address"),
        ({"url": "https://x/a b"}, "not an http or https address"),
        ({"url": "https://x", "networks": ("10.0.0.1/8",)}, "networks: "),
        ({"command": ("true",)}, "is not a full path"),
        ({"command": ("/bin/true", "a\0b")}, "NUL"),
        ({"command": ("/bin/true",), "networks": ("10.0.0.0/8",)}, "networks: only works with url"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(Misconfigured, match=part) as caught:
        HookSettings(on=("start",), **settings).check()
    assert "secret" not in str(caught.value).replace("secret_file", "")
