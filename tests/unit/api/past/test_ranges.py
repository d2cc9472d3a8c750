"""Ranges as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.api.errors import HttpError
from gpuherd.api.history_service import Wanted
from gpuherd.api.past.ranges import MAX_RANGE_SECONDS, Range, known_zone, month_range, read_range, steps_of
from gpuherd.model.history import UsageStep

UTC_ZONE, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
DAY = 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOW = at("2026-11-16T13:30:00+00:00")


def read(since: str | None = None, until: str | None = None, zone: ZoneInfo = UTC_ZONE) -> Range:
    return read_range(Wanted(since=since, until=until), now=NOW, zone=zone)


def test_the_last_day_is_meant_if_nothing_is_said() -> None:
    assert read() == Range(NOW - DAY, NOW)
    assert read(until="2026-10-02T00:00Z") == Range(
        at("2026-10-01T00:00:00+00:00"), at("2026-10-02T00:00:00+00:00")
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1790000000", 1_790_000_000.0),
        ("1790000000.25", 1_790_000_000.25),
        ("7d", NOW - 7 * DAY),
        ("-7d", NOW - 7 * DAY),
        ("36h", NOW - 36 * 3600),
        ("36 h ago", NOW - 36 * 3600),
        ("90m", NOW - 5400),
        ("2w", NOW - 14 * DAY),
        ("1y", NOW - 365 * DAY),
        ("today", at("2026-11-16T00:00:00+01:00")),
        ("yesterday", at("2026-11-15T00:00:00+01:00")),
        ("2026-10-01", at("2026-10-01T00:00:00+02:00")),
        ("2026-10", at("2026-10-01T00:00:00+02:00")),
        ("2026-10-01T08:30", at("2026-10-01T08:30:00+02:00")),
        ("2026-10-01 08:30:15", at("2026-10-01T08:30:15+02:00")),
        ("2026-10-01T08:30:15.5", at("2026-10-01T08:30:15.5+02:00")),
        ("2026-10-01T08:30Z", at("2026-10-01T08:30:00+00:00")),
        ("2026-10-01T08:30+05:30", at("2026-10-01T08:30:00+05:30")),
        ("2026-10-01T08:30-0330", at("2026-10-01T08:30:00-03:30")),
        ("2026-10-01T08:30 05:30", at("2026-10-01T08:30:00+05:30")),  # a plus sign that an address has eaten
    ],
)
def test_begins_can_be_written_in_many_ways(text: str, meant: float) -> None:
    assert read(text, zone=BERLIN).start == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-10-01", at("2026-10-02T00:00:00+02:00")),
        ("2026-10", at("2026-11-01T00:00:00+01:00")),
        ("yesterday", at("2026-11-16T00:00:00+01:00")),
        ("today", NOW),
        ("now", NOW),
        ("2027-01-01", NOW),
        ("99999999999", NOW),
    ],
)
def test_an_end_takes_in_its_day_and_nothing_that_lies_ahead(text: str, meant: float) -> None:
    assert read("2026-09-01", text, BERLIN).end == meant


@pytest.mark.parametrize(
    ("since", "until", "path"),
    [
        ("", None, "from"),
        ("soon", None, "from"),
        ("2026", None, "from"),
        ("2026-13-01", None, "from"),
        ("2026-02-30", None, "from"),
        ("2026-10-01T25:00", None, "from"),
        ("2026-10-01T08:00+99:00", None, "from"),
        ("NaN", None, "from"),
        ("-1", None, "from"),
        ("1e9", None, "from"),
        ("１７９０００００００", None, "from"),
        ("7d", "yesterdayy", "to"),
        ("7d", "8d", "from"),
        ("2026-10-02", "2026-10-01", "from"),
        ("now", None, "from"),
        ("2027-01-01", None, "from"),
        ("1790000000000", None, "from"),
        ("0", None, "from"),
        ("1900-01-01", None, "from"),
        (None, "0", "from"),
        (None, "1970-01-01T00:00Z", "from"),
    ],
)
def test_what_is_no_range_is_refused_and_said_why(since: str | None, until: str | None, path: str) -> None:
    with pytest.raises(HttpError) as caught:
        read(since, until)
    assert (caught.value.status, caught.value.detail.code, caught.value.detail.path) == (
        400,
        "bad_range",
        path,
    )


def test_hostile_text_is_not_given_back_as_it_came() -> None:
    with pytest.raises(HttpError) as caught:
        read("\x1b[31m" + "x" * 60)
    assert "\x1b" not in caught.value.detail.message
    assert len(caught.value.detail.message) < 250


@given(st.text(max_size=70), st.text(max_size=70))
def test_any_text_is_a_range_or_a_refusal(since: str, until: str) -> None:
    try:
        span = read(since, until, BERLIN)
    except HttpError:
        return
    assert 0 <= span.start < span.end <= NOW
    assert span.end - span.start <= MAX_RANGE_SECONDS


def test_where_clocks_change_the_wider_reading_is_taken() -> None:
    # 02:30 comes twice on 2026-10-25 and never on 2026-03-29.
    twice = read("2026-10-25T02:30", "2026-10-25T02:30", BERLIN)
    assert twice == Range(at("2026-10-25T02:30:00+02:00"), at("2026-10-25T02:30:00+01:00"))
    never = read("2026-03-29T02:30", "2026-03-29T02:30", BERLIN)
    assert never.end - never.start == 3600


def test_zones() -> None:
    assert known_zone(None, "Europe/Berlin").key == "Europe/Berlin"
    assert known_zone("Asia/Kathmandu", "UTC").key == "Asia/Kathmandu"
    for bad in ("Nowhere/Else", "../etc/passwd", "Europe", "x" * 64):
        with pytest.raises(HttpError) as caught:
            known_zone(bad, "UTC")
        assert (caught.value.status, caught.value.detail.code) == (400, "unknown_zone")


def test_months_are_those_of_the_zone() -> None:
    assert month_range("2026-10", BERLIN) == Range(
        at("2026-10-01T00:00:00+02:00"), at("2026-11-01T00:00:00+01:00")
    )
    october, march = month_range("2026-10", BERLIN), month_range("2026-03", BERLIN)
    assert (october.end - october.start) / 3600 == 31 * 24 + 1
    assert (march.end - march.start) / 3600 == 31 * 24 - 1
    assert month_range("2026-12", UTC_ZONE).end == at("2027-01-01T00:00:00+00:00")
    for bad in ("2026-13", "2026-00", "1970-01", "9999-12", "26-10", "2026-1", "2026-10-01"):
        with pytest.raises(HttpError):
            month_range(bad, UTC_ZONE)


def test_a_month_whose_midnight_was_skipped_begins_at_the_skip() -> None:
    # Clocks in Brazil went from 23:59 to 01:00 on this night.
    zone = ZoneInfo("America/Sao_Paulo")
    edges = steps_of(Range(at("2018-11-03T12:00:00-03:00"), at("2018-11-05T12:00:00-02:00")), "day", zone)
    assert edges == [
        at("2018-11-03T00:00:00-03:00"),
        at("2018-11-04T01:00:00-02:00"),
        at("2018-11-05T00:00:00-02:00"),
        at("2018-11-06T00:00:00-02:00"),
    ]


@pytest.mark.parametrize(
    ("step", "bounds"),
    [
        (
            "day",
            [
                "2026-10-24T00:00+02:00",
                "2026-10-25T00:00+02:00",
                "2026-10-26T00:00+01:00",
                "2026-10-27T00:00+01:00",
            ],
        ),
        ("week", ["2026-10-19T00:00+02:00", "2026-10-26T00:00+01:00", "2026-11-02T00:00+01:00"]),
        ("month", ["2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"]),
    ],
)
def test_steps_follow_the_calendar_over_changes_of_the_clocks(step: UsageStep, bounds: list[str]) -> None:
    span = Range(at("2026-10-24T10:00:00+02:00"), at("2026-10-26T10:00:00+01:00"))
    assert steps_of(span, step, BERLIN) == [at(bound) for bound in bounds]


def test_hours_are_hours() -> None:
    span = Range(at("2026-10-25T01:30:00+02:00"), at("2026-10-25T03:30:00+01:00"))
    assert len(steps_of(span, "hour", BERLIN)) == 5  # the hour that came twice is told twice


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(HttpError, match="longer step"):
        steps_of(Range(0.0, 3600.0 * 2001), "hour", UTC_ZONE)
    with pytest.raises(HttpError, match="longer step"):
        steps_of(Range(0.0, DAY * 2001), "day", UTC_ZONE)


@given(
    st.floats(0, 4e9),
    st.floats(1, 90 * DAY),
    st.sampled_from(["hour", "day", "week", "month"]),
    st.sampled_from([BERLIN, UTC_ZONE, ZoneInfo("Asia/Kathmandu"), ZoneInfo("Australia/Lord_Howe")]),
)
def test_steps_cover_the_range_without_gaps(
    start: float, length: float, step: UsageStep, zone: ZoneInfo
) -> None:
    span = Range(start, start + length)
    try:
        edges = steps_of(span, step, zone)
    except HttpError:
        assert step == "hour"
        return
    assert edges[0] <= span.start
    assert edges[-1] >= span.end
    assert edges[-2] < span.end
    assert all(first < second for first, second in pairwise(edges))


def test_ranges_a_moment_apart_are_the_same() -> None:
    assert Range(1003.0, 2008.0).snapped(10.0) == Range(1000.0, 2010.0) == Range(1009.0, 2001.0).snapped(10.0)
    assert datetime.fromtimestamp(Range(60.0, 120.0).snapped(60.0).start, UTC).second == 0
