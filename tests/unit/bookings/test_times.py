"""Times as people write them, in their own zones, also on the nights on which the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.bookings.refusals import UnclearTime, Unfit
from gpuherd.bookings.times import (
    LATEST,
    format_duration,
    format_moment,
    moments_of,
    read_end,
    read_start,
    read_zone,
    wall_of,
)

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")


def utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


NOW = utc("2026-11-16 09:20:30")  # a Monday; 10:20:30 in Berlin


def start(text: str | int, zone: str = "Europe/Berlin", now: int = NOW) -> int:
    return read_start(text, now=now, zone=read_zone(zone))


def end(text: str | int, zone: str = "Europe/Berlin", now: int = NOW, starts_at: int | None = None) -> int:
    return read_end(text, starts_at=now if starts_at is None else starts_at, now=now, zone=read_zone(zone))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3d 4h", 273_600),
        ("3d4h", 273_600),
        ("3 days and 4 hours", 273_600),
        ("3 days, 4 hours", 273_600),
        ("for 3d 4h", 273_600),
        ("90m", 5_400),
        ("90 min", 5_400),
        ("2 weeks", 1_209_600),
        ("1w", 604_800),
        ("1.5h", 5_400),
        (" 2H ", 7_200),
        ("until 2h", 7_200),
    ],
)
def test_durations_count_from_the_start(text: str, seconds: int) -> None:
    later = NOW + 1_000
    assert end(text, starts_at=later) == later + seconds
    assert start(text) == NOW + seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-11-16 09:20:30"),
        ("until friday 18:00", "2026-11-20 17:00"),
        ("friday 18:00", "2026-11-20 17:00"),
        ("Fri, 18:00", "2026-11-20 17:00"),
        ("18:00 on friday", "2026-11-20 17:00"),
        ("fri 6pm", "2026-11-20 17:00"),
        ("monday 10:21", "2026-11-16 09:21"),
        ("monday 10:00", "2026-11-23 09:00"),
        ("tomorrow 9:00", "2026-11-17 08:00"),
        ("today 12:00", "2026-11-16 11:00"),
        ("today 24:00", "2026-11-16 23:00"),
        ("18:00", "2026-11-16 17:00"),
        ("10:00", "2026-11-17 09:00"),
        ("24:00", "2026-11-16 23:00"),
        ("at noon", "2026-11-16 11:00"),
        ("12:30 am", "2026-11-16 23:30"),
        ("12:30pm", "2026-11-16 11:30"),
        ("2026-11-20 18:00", "2026-11-20 17:00"),
        ("2026-11-20T18:00", "2026-11-20 17:00"),
        ("until 2026-11-20 24:00", "2026-11-20 23:00"),
        ("2026-07-01 12:00:15", "2026-07-01 10:00:15"),
        ("2026-11-20T18:00+05:45", "2026-11-20 12:15"),
        ("2026-11-20T18:00:00.000Z", "2026-11-20 18:00"),
        ("2026-11-20 18:00 -0330", "2026-11-20 21:30"),
        (str(NOW + 7), "2026-11-16 09:20:37"),
        (NOW + 7, "2026-11-16 09:20:37"),
    ],
)
def test_clock_times_are_those_of_the_zone(text: str | int, expected: str) -> None:
    assert start(text) == end(text) == utc(expected)


@pytest.mark.parametrize(
    ("text", "starts", "ends"),
    [
        ("10:20", "2026-11-16 09:20", "2026-11-17 09:20"),
        ("10:06", "2026-11-16 09:06", "2026-11-17 09:06"),
        ("10:05", "2026-11-17 09:05", "2026-11-17 09:05"),  # 15 minutes and a half ago
        ("monday 10:20", "2026-11-16 09:20", "2026-11-23 09:20"),
        ("10:06 on monday", "2026-11-16 09:06", "2026-11-23 09:06"),
        ("monday 10:05", "2026-11-23 09:05", "2026-11-23 09:05"),
    ],
)
def test_a_start_of_a_few_minutes_ago_is_not_the_next_one(text: str, starts: str, ends: str) -> None:
    assert start(text) == utc(starts)
    assert end(text) == utc(ends)


def test_a_start_just_before_midnight() -> None:
    after_midnight = utc("2026-11-16 23:05")  # 00:05 in Berlin
    assert start("23:55", now=after_midnight) == utc("2026-11-16 22:55")
    assert start("24:00", now=after_midnight) == utc("2026-11-16 23:00")


def test_the_next_such_time_comes_after_the_start_and_not_only_after_now() -> None:
    friday_evening = utc("2026-11-20 18:30")
    assert end("18:00", starts_at=friday_evening) == utc("2026-11-21 17:00")
    assert end("friday 18:00", starts_at=friday_evening) == utc("2026-11-27 17:00")
    assert end("tomorrow 18:00", starts_at=friday_evening) == utc("2026-11-17 17:00")  # counted from now


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-11-20 18:00"),
        ("Asia/Kathmandu", "2026-11-20 12:15"),
        ("Australia/Lord_Howe", "2026-11-20 07:00"),
        ("America/New_York", "2026-11-20 23:00"),
        ("Etc/GMT+12", "2026-11-21 06:00"),
    ],
)
def test_the_zone_of_the_person_decides(zone: str, expected: str) -> None:
    assert start("friday 18:00", zone) == utc(expected)


def test_today_is_the_day_where_the_person_is() -> None:
    late = utc("2026-11-16 20:00")  # already Tuesday in Auckland
    assert start("today 12:00", "Pacific/Auckland", late) == utc("2026-11-16 23:00")
    assert start("today 22:00", "UTC", late) == utc("2026-11-16 22:00")


# -- the nights on which the clocks change -------------------------------------------------------------------------

AUTUMN = utc("2026-10-24 20:00")  # clocks go from 03:00+02:00 back to 02:00+01:00 at 01:00 UTC
SPRING = utc("2027-03-27 20:00")  # clocks go from 02:00+01:00 forward to 03:00+02:00 at 01:00 UTC


@pytest.mark.parametrize("text", ["2026-10-25 02:30", "02:30", "tomorrow 2:30", "sunday 02:30"])
def test_a_time_that_comes_twice_is_refused_with_both_readings(text: str) -> None:
    with pytest.raises(UnclearTime, match="occurs twice in Europe/Berlin") as caught:
        end(text, now=AUTUMN)
    assert (caught.value.code, caught.value.path) == ("ambiguous_time", "end")
    assert [choice.text for choice in caught.value.choices] == [
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:30+01:00",
    ]
    assert [choice.at for choice in caught.value.choices] == [
        utc("2026-10-25 00:30"),
        utc("2026-10-25 01:30"),
    ]
    for choice in caught.value.choices:
        assert end(choice.text, now=AUTUMN) == choice.at


@pytest.mark.parametrize("text", ["2027-03-28 02:30", "02:30", "tomorrow 2:30", "sunday 02:30"])
def test_a_time_that_never_comes_is_refused_with_both_readings(text: str) -> None:
    with pytest.raises(UnclearTime, match="does not exist in Europe/Berlin") as caught:
        start(text, now=SPRING)
    assert (caught.value.code, caught.value.path) == ("nonexistent_time", "start")
    assert [choice.text for choice in caught.value.choices] == [
        "2027-03-28T01:30+01:00",
        "2027-03-28T03:30+02:00",
    ]
    for choice in caught.value.choices:
        assert start(choice.text, now=SPRING) == choice.at


def test_between_the_two_a_bare_time_means_the_one_to_come() -> None:
    between = utc("2026-10-25 00:45")  # 02:45, for the first time
    assert start("02:30", now=between) == utc("2026-10-25 01:30")
    with pytest.raises(UnclearTime):
        start("02:50", now=between)


def test_the_edges_of_the_change_are_clear() -> None:
    assert start("2026-10-25 01:59", now=AUTUMN) == utc("2026-10-24 23:59")
    assert start("2026-10-25 03:00", now=AUTUMN) == utc("2026-10-25 02:00")
    assert start("2027-03-28 01:59", now=SPRING) == utc("2027-03-28 00:59")
    assert start("2027-03-28 03:00", now=SPRING) == utc("2027-03-28 01:00")


def test_days_as_durations_are_24_hours_and_until_is_the_clock_on_the_wall() -> None:
    at_ten = utc("2026-10-24 08:00")  # 10:00 in summer time
    assert end("1d", now=at_ten) - at_ten == 24 * 3600
    assert end("until tomorrow 10:00", now=at_ten) - at_ten == 25 * 3600
    at_ten = utc("2027-03-27 09:00")
    assert end("1d", now=at_ten) - at_ten == 24 * 3600
    assert end("until tomorrow 10:00", now=at_ten) - at_ten == 23 * 3600


def test_clocks_that_change_by_half_an_hour() -> None:
    with pytest.raises(UnclearTime) as caught:
        start("2026-04-05 01:45", "Australia/Lord_Howe", utc("2026-04-01 00:00"))
    first, second = caught.value.choices
    assert (first.text, second.text) == ("2026-04-05T01:45+11:00", "2026-04-05T01:45+10:30")
    assert second.at - first.at == 1_800
    with pytest.raises(UnclearTime, match="does not exist"):
        start("2026-10-04 02:15", "Australia/Lord_Howe", utc("2026-10-01 00:00"))


def test_a_day_that_a_country_left_out() -> None:
    with pytest.raises(UnclearTime, match="does not exist"):
        start("2011-12-30 12:00", "Pacific/Apia")
    assert start("friday 12:00", "Pacific/Apia", utc("2011-12-31 10:30")) == utc("2012-01-05 22:00")


# -- what cannot be read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "18",
        "3x",
        "1 month",
        "next friday 18:00",
        "25:00",
        "24:01",
        "18:60",
        "13pm",
        "0am",
        "2026-02-30 10:00",
        "2026-13-01 10:00",
        "0000-01-01 10:00",
        "18:00\n19:00x",
        "-3d",
        "1e9",
        "3d" * 50,
        "9" * 500,
        "2026-11-20 18:00 +99:00",
        "2026-11-20 18:00 +01:99",
        "\u202e18:00",
        "freitag 18:00",
        "٣d",
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Unfit) as caught:
        start(text)
    assert caught.value.path == "start"
    assert caught.value.code in ("unreadable_time", "time_out_of_range")
    assert str(caught.value).isprintable()
    assert any(word in str(caught.value) for word in ("write", "such as", "between"))


@pytest.mark.parametrize("text", ["friday", "until tomorrow", "2026-11-20"])
def test_a_day_without_a_time_is_asked_for_one(text: str) -> None:
    with pytest.raises(Unfit, match="has no time of day") as caught:
        end(text)
    assert f'write "{text} 18:00"' in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        LATEST + 1,
        NOW * 1000,
        str(NOW * 1000),
        "9999-12-31 23:59",
        "9999-01-01T00:00Z",
        "1969-12-31 12:00",
        2**70,
    ],
)
def test_times_beyond_the_calendar_are_refused(value: str | int) -> None:
    with pytest.raises(Unfit) as caught:
        end(value)
    assert caught.value.code == "time_out_of_range"


def test_durations_do_not_run_over_the_calendar() -> None:
    with pytest.raises(Unfit):
        end("999999w 999999w 999999w")
    with pytest.raises(Unfit):
        end("999999d", starts_at=LATEST)
    with pytest.raises(Unfit):
        end("friday 18:00", starts_at=LATEST)


@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "Europe", "", "../../etc/passwd", "Europe/Berlin\n", "/etc/localtime", "é", "A" * 500],
)
def test_an_unknown_zone_is_named(name: str) -> None:
    with pytest.raises(Unfit, match="there is no time zone") as caught:
        read_zone(name)
    assert (caught.value.code, caught.value.path) == ("unknown_zone", "zone")


# -- round trips ---------------------------------------------------------------------------------------------------

moments = st.integers(86_400, LATEST - 86_400)
zones = st.sampled_from(ZONES).map(ZoneInfo)


def readings(text: str, zone: ZoneInfo) -> list[int]:
    """Give what a text means, or what it could mean."""
    try:
        return [read_start(text, now=NOW, zone=zone)]
    except UnclearTime as unclear:
        return [choice.at for choice in unclear.choices]


@given(at=moments, zone=zones, reader=zones)
def test_what_is_written_with_its_offset_reads_back_everywhere(
    at: int, zone: ZoneInfo, reader: ZoneInfo
) -> None:
    assert read_start(format_moment(at, zone), now=NOW, zone=reader) == at


@given(at=moments, zone=zones)
def test_wall_clock_text_reads_back_or_offers_the_right_reading(at: int, zone: ZoneInfo) -> None:
    assert at in readings(wall_of(at, zone).isoformat(sep=" "), zone)


@given(hour=st.integers(0, 4), minute=st.integers(0, 59), day=st.sampled_from(["2026-10-25", "2027-03-28"]))
def test_on_the_nights_of_the_change_every_reading_is_one_of_that_clock(
    hour: int, minute: int, day: str
) -> None:
    found = readings(f"{day} {hour:02}:{minute:02}", BERLIN)
    assert len(found) == (2 if hour == 2 else 1)
    shown = {(wall_of(at, BERLIN).hour, wall_of(at, BERLIN).minute) for at in found}
    assert shown <= {(hour, minute), (hour - 1, minute), (hour + 1, minute)}


@given(seconds=st.integers(1, 999_999 * 86_400))
def test_durations_read_back(seconds: int) -> None:
    assert read_end(format_duration(seconds), starts_at=0, now=NOW, zone=BERLIN) == seconds


@given(at=st.integers(NOW - 10**9, NOW + 10**9), zone=zones)
def test_a_wall_clock_shows_a_time_never_once_or_twice(at: int, zone: ZoneInfo) -> None:
    wall = wall_of(at, ZoneInfo("UTC"))
    found = moments_of(wall, zone)
    assert len(found) <= 2
    assert all(wall_of(moment, zone) == wall for moment in found)


@given(
    now=st.integers(NOW - 10**9, NOW + 10**9),
    zone=zones,
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
)
def test_the_next_such_time_is_within_a_day_and_a_change_of_clocks(
    now: int, zone: ZoneInfo, hour: int, minute: int
) -> None:
    try:
        at = read_end(f"{hour}:{minute:02}", starts_at=now, now=now, zone=zone)
    except UnclearTime:
        return
    assert now < at <= now + 2 * 86_400 + 3_600
    assert (wall_of(at, zone).hour, wall_of(at, zone).minute) == (hour, minute)


@given(text=st.text(max_size=100) | st.from_regex(r"[0-9a-z :+-]{0,30}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        at = read_end(text, starts_at=NOW, now=NOW, zone=BERLIN)
    except Unfit as unfit:
        at = len(unfit.path or "")
    assert 0 < at <= LATEST
