"""When so many devices are free at once."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.bookings.free_slots import add_split_gpus, find_slots
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.requests import AnyDevices
from gpuherd.bookings.slots import Span, free_starts, is_free, next_free
from gpuherd.model.bookings import DeviceRef
from support.booking_desk import HOUR, NOW, a100, herd_of, mig_slice, ref

A, B, C = ref("n1", 0), ref("n1", 1), ref("n2", 0)
FAR = NOW + 1000 * HOUR


def span(start: float, end: float) -> Span:
    return Span(NOW + round(start * HOUR), NOW + round(end * HOUR))


def starts(
    spans: dict[DeviceRef, list[Span]], *devices: DeviceRef, count: int, hours: float, limit: int = 10
) -> list[float]:
    found = free_starts(
        spans, devices, count=count, seconds=round(hours * HOUR), since=NOW, until=FAR, limit=limit
    )
    return [(slot.starts_at - NOW) / HOUR for slot in found]


def test_nothing_booked_is_free_now() -> None:
    assert starts({}, A, B, count=2, hours=5) == [0.0]
    assert starts({}, A, B, count=3, hours=5) == []


def test_gaps_that_are_too_short_do_not_count() -> None:
    spans = {A: [span(1, 2), span(3, 4), span(10, 11)]}
    assert starts(spans, A, count=1, hours=1) == [0.0, 2.0, 4.0, 11.0]
    assert starts(spans, A, count=1, hours=2) == [4.0, 11.0]
    assert starts(spans, A, count=1, hours=24) == [11.0]
    assert starts(spans, A, count=1, hours=1, limit=2) == [0.0, 2.0]


def test_devices_must_be_free_at_the_same_time() -> None:
    spans = {A: [span(0, 4)], B: [span(5, 8)]}
    assert starts(spans, A, B, count=2, hours=1) == [4.0, 8.0]
    assert starts(spans, A, B, count=2, hours=2) == [8.0]
    assert starts(spans, A, B, count=1, hours=2) == [0.0, 4.0]  # none at 3.5
    assert starts(spans, A, B, count=1, hours=1) == [0.0]
    assert next_free(spans, [A, B], seconds=2 * HOUR, since=NOW, until=FAR) == NOW + 8 * HOUR
    assert next_free(spans, [A, B], seconds=2 * HOUR, since=NOW, until=NOW + 7 * HOUR) is None


def test_one_ends_where_the_next_begins() -> None:
    assert starts({A: [span(0, 2), span(2, 3)]}, A, count=1, hours=1) == [3.0]
    assert starts({A: [span(0, 2), span(3, 4)]}, A, count=1, hours=1) == [2.0, 4.0]


def test_how_long_each_stays_free() -> None:
    found = free_starts({A: [span(6, 7)]}, [A, B], count=2, seconds=HOUR, since=NOW, until=FAR, limit=1)
    assert found[0].free_until == {A: NOW + 6 * HOUR, B: None}


def test_wishes_find_slots_and_devices() -> None:
    herd = herd_of(a100("n1", 0), a100("n1", 1), a100("n2", 0), a100("n2", 1, state="fault"))
    spans = {A: [span(0, 3)], C: [span(2, 9)]}

    def find(wish: AnyDevices, hours: float = 4) -> list[tuple[float, list[DeviceRef]]]:
        found = find_slots(
            herd, wish, spans, seconds=round(hours * HOUR), since=NOW, until=FAR, limit=3, now=NOW
        )
        return [((slot.starts_at - NOW) / HOUR, list(slot.devices)) for slot in found]

    assert find(AnyDevices(count=1)) == [(0.0, [B])]
    assert find(AnyDevices(count=2)) == [(3.0, [A, B])]
    assert (
        find(AnyDevices(count=2), hours=1) == [(0.0, [C, B])]
        or find(AnyDevices(count=2), hours=1)[0][0] == 0.0
    )
    assert find(AnyDevices(count=2, same_node=True)) == [(3.0, [A, B])]
    assert find(AnyDevices(count=3)) == [(9.0, [A, B, C])]
    with pytest.raises(Unfit, match="3 bookable; 1 more"):
        find(AnyDevices(count=4))


def test_slices_of_a_gpu_that_was_booked_before_it_was_split() -> None:
    herd = herd_of(a100("n2", 0, is_partitioned=True), mig_slice("n2", 0, 0), mig_slice("n2", 0, 1))
    spans = {C: [span(0, 3)], ref("n2", "0-1"): [span(5, 6)]}
    add_split_gpus(spans, herd)
    assert spans[ref("n2", "0-0")] == [span(0, 3)]
    assert spans[ref("n2", "0-1")] == [span(0, 3), span(5, 6)]


def test_a_thousand_devices_with_many_bookings_are_searched_in_no_time() -> None:
    herd = herd_of(*(a100(f"n{node}", index) for node in range(125) for index in range(8)))
    spans = {
        one: [span(6 * day + number % 5, 6 * day + 5.5) for day in range(40)]
        for number, one in enumerate(herd.devices)
    }
    began = time.process_time()
    found = find_slots(
        herd, AnyDevices(count=500), spans, seconds=HOUR, since=NOW, until=FAR, limit=20, now=NOW
    )
    assert len(found) == 20
    assert time.process_time() - began < 2.0  # 0.1 s on an idle machine


# -- against counting ----------------------------------------------------------------------------------------------


@st.composite
def calendars(draw: st.DrawFn) -> dict[DeviceRef, list[Span]]:
    """Three devices with bookings that do not overlap, in small whole numbers."""
    calendar = {}
    for device in (A, B, C):
        edges = sorted(draw(st.sets(st.integers(0, 24), max_size=8)))
        calendar[device] = [Span(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    return calendar


@given(calendar=calendars(), start=st.integers(0, 24), length=st.integers(1, 10))
def test_free_is_what_no_booking_touches(
    calendar: dict[DeviceRef, list[Span]], start: int, length: int
) -> None:
    for spans in calendar.values():
        touched = any(one.starts_at < start + length and one.ends_at > start for one in spans)
        assert is_free(spans, start, start + length) is not touched


@given(calendar=calendars(), count=st.integers(1, 3), length=st.integers(1, 10), since=st.integers(0, 10))
def test_slots_are_where_counting_finds_them(
    calendar: dict[DeviceRef, list[Span]], count: int, length: int, since: int
) -> None:
    def enough(moment: int) -> bool:
        return sum(is_free(calendar[one], moment, moment + length) for one in (A, B, C)) >= count

    counted = [m for m in range(since, 30) if enough(m) and (m == since or not enough(m - 1))]
    found = free_starts(calendar, [A, B, C], count=count, seconds=length, since=since, until=29, limit=100)
    assert [slot.starts_at for slot in found] == counted
    for slot in found:
        free = {one for one in (A, B, C) if is_free(calendar[one], slot.starts_at, slot.starts_at + length)}
        assert set(slot.free_until) == free
