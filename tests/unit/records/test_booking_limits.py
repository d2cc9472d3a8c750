"""How much someone may hold: counted second by second, against a slow and simple truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.model.errors import Refused
from gpuherd.records.booking_limits import BookedSpan, Limits, check_limits, usage_of

spans = st.lists(
    st.builds(
        lambda start, length, devices: BookedSpan(start, start + length, devices),
        st.integers(0, 12),
        st.integers(1, 6),
        st.integers(1, 3),
    ),
    max_size=5,
)


def held_at(spans: list[BookedSpan], second: int) -> int:
    return sum(span.devices for span in spans if span.starts_at <= second < span.ends_at)


@given(spans, st.integers(0, 20))
def test_what_is_held_is_what_counting_every_second_gives(held: list[BookedSpan], now: int) -> None:
    usage = usage_of(held, now=now)
    assert usage.devices_at_once == max((held_at(held, second) for second in range(20)), default=0)
    assert usage.gpu_seconds_ahead == sum(held_at(held, second) for second in range(now, 20))


@given(spans, spans, st.integers(0, 8))
def test_a_limit_counts_only_the_time_that_is_asked_for(
    held: list[BookedSpan], wanted: list[BookedSpan], allowed: int
) -> None:
    seconds = [second for second in range(20) if held_at(wanted, second)]
    is_too_much = any(held_at([*held, *wanted], second) > allowed for second in seconds)
    limits = Limits(max_devices_at_once=allowed)
    if is_too_much:
        with pytest.raises(Refused, match="devices at a time"):
            check_limits(limits, held, wanted, now=0)
    else:
        check_limits(limits, held, wanted, now=0)


@given(spans, spans)
def test_giving_something_up_is_never_too_much(held: list[BookedSpan], given_up: list[BookedSpan]) -> None:
    limits = Limits(max_devices_at_once=0, gpu_seconds_ahead=0)
    fewer = [span._replace(devices=span.devices - 1) for span in given_up if span.devices > 1]
    check_limits(limits, held, fewer, replaced=given_up, now=0)
    check_limits(limits, held, given_up, replaced=given_up, now=0)


def test_without_limits_anything_goes() -> None:
    check_limits(Limits(), [BookedSpan(0, 10**9, 10**6)], [BookedSpan(0, 10**9, 10**6)], now=0)
