"""Limits by role and group, weekly series, texts."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.bookings.asking import MAX_BOOKINGS_AHEAD, check_group, check_length, limits_of, not_past
from gpuherd.bookings.hook_settings import HookSettings
from gpuherd.bookings.policy import Allowance, allowance_of, check_span
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.series import weekly_spans
from gpuherd.bookings.settings import BookingRule, BookingSettings
from gpuherd.bookings.texts import clean_comment, clean_title
from gpuherd.bookings.times import LATEST, wall_of
from gpuherd.model.errors import Misconfigured
from gpuherd.records.booking_limits import Limits
from support.booking_desk import HOUR, NOW, person

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 24 * HOUR


def utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


SETTINGS = BookingSettings(
    horizon_days=30,
    max_days=7,
    max_devices=4,
    approval=True,
    rules=(
        BookingRule(groups=("vision",), max_days=21, approval=False),
        BookingRule(groups=("vision", "night"), max_devices=16, gpu_hours_ahead=500),
        BookingRule(groups=("night",), max_days=2, max_devices=1),
        BookingRule(groups=("chosen",), unlimited=True),
    ),
)


def test_without_a_rule_the_table_itself_counts() -> None:
    assert allowance_of(person("ada"), SETTINGS) == Allowance(
        horizon_days=30, max_days=7, max_devices=4, gpu_hours_ahead=None, needs_approval=True
    )


def test_of_several_rules_the_most_generous_word_on_each_limit_counts() -> None:
    assert allowance_of(person("ada", "member", "night", "vision"), SETTINGS) == Allowance(
        horizon_days=30, max_days=21, max_devices=16, gpu_hours_ahead=500, needs_approval=False
    )


def test_a_rule_may_also_be_stricter_than_the_table() -> None:
    assert allowance_of(person("bob", "member", "night"), SETTINGS).max_days == 2


def hooks(*targets: str | tuple[str, ...]) -> BookingSettings:
    return BookingSettings(
        hooks=tuple(
            HookSettings(on=("start",), **({"url": one} if isinstance(one, str) else {"command": one}))
            for one in targets
        )
    )


def test_rules_fit_by_role_and_group_together() -> None:
    settings = BookingSettings(rules=(BookingRule(groups=("x",), roles=("member",), max_days=99),))
    assert allowance_of(person("ada", "member", "x"), settings).max_days == 99
    assert allowance_of(person("ada", "viewer", "x"), settings).max_days == 14
    assert allowance_of(person("ada", "member"), settings).max_days == 14


def test_the_unlimited_and_admins_have_no_limits() -> None:
    assert allowance_of(person("ada", "member", "chosen"), SETTINGS) == Allowance()
    assert allowance_of(person("root", "admin"), SETTINGS) == Allowance(is_exempt=True)
    assert limits_of(Allowance(is_exempt=True)) is None
    most = MAX_BOOKINGS_AHEAD
    assert limits_of(Allowance()) == Limits(max_bookings=most)
    assert limits_of(Allowance(gpu_hours_ahead=1.5)) == Limits(gpu_seconds_ahead=5_400, max_bookings=most)
    assert limits_of(Allowance(max_devices=0)) == Limits(max_devices_at_once=0, max_bookings=most)


def test_spans_are_measured_and_the_limit_is_told() -> None:
    allowance = Allowance(horizon_days=30, max_days=7)
    check_span(allowance, starts_at=NOW + 30 * DAY, ends_at=NOW + 37 * DAY, now=NOW)
    with pytest.raises(Unfit, match="must start within 30 days; this one would start in 31d 2h") as caught:
        check_span(allowance, starts_at=NOW + 31 * DAY + 2 * HOUR + 5, ends_at=NOW + 32 * DAY, now=NOW)
    assert (caught.value.code, caught.value.path) == ("beyond_horizon", "start")
    with pytest.raises(Unfit, match="can last at most 7 days; this one would last 7d 1s") as caught:
        check_span(allowance, starts_at=NOW, ends_at=NOW + 7 * DAY + 1, now=NOW)
    assert (caught.value.code, caught.value.path) == ("too_long", "end")
    check_span(Allowance(), starts_at=LATEST - 5, ends_at=LATEST, now=NOW)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (BookingSettings(zone="Mars/Base"), "bookings.zone: there is no time zone"),
        (BookingSettings(rules=(BookingRule(max_days=3),)), r"bookings.rules\[0\]: matches everyone"),
        (
            hooks("https://x/secret", "https://y", "https://x/secret"),
            r"hooks\[2\]: has the same url as .*hooks\[0\];",
        ),
        (
            hooks(("/bin/a", "b"), ("/bin/a", "b")),
            r"hooks\[1\]: has the same command as bookings.hooks\[0\];",
        ),
    ],
)
def test_settings_that_cannot_be_meant(settings: BookingSettings, key: str) -> None:
    with pytest.raises(Misconfigured, match=key) as caught:
        settings.check()
    assert "secret" not in str(caught.value)


def test_hooks_that_are_not_the_same() -> None:
    hooks("https://x", "https://y", ("/bin/a",), ("/bin/a", "b")).check()


# -- starts and lengths --------------------------------------------------------------------------------------------


def test_a_start_of_a_few_minutes_ago_means_now() -> None:
    assert not_past(NOW + 5, NOW) == NOW + 5
    assert not_past(NOW - 900, NOW) == NOW
    with pytest.raises(Unfit, match="the start is 2h 5m ago") as caught:
        not_past(NOW - 2 * HOUR - 301, NOW)
    assert (caught.value.code, caught.value.path) == ("in_the_past", "start")


@pytest.mark.parametrize(("seconds", "code"), [(0, "reversed"), (-5, "reversed"), (59, "too_short")])
def test_bookings_end_after_they_start(seconds: int, code: str) -> None:
    with pytest.raises(Unfit) as caught:
        check_length(NOW, NOW + seconds)
    assert (caught.value.code, caught.value.path) == (code, "end")
    check_length(NOW, NOW + 60)


def test_groups_that_one_may_book_for() -> None:
    check_group(None, person("ada"))
    check_group("vision", person("ada", "member", "vision"))
    check_group("any", person("root", "admin"))
    for account in (person("ada", "member", "vision"), person("root", "admin")):
        with pytest.raises(Unfit) as caught:
            check_group("  ", account)
        assert caught.value.path == "group"
    with pytest.raises(Unfit, match="not in the group speech; yours: vision"):
        check_group("speech", person("ada", "member", "vision"))


# -- weekly --------------------------------------------------------------------------------------------------------


def test_weekly_bookings_keep_their_hours_over_a_change_of_clocks() -> None:
    first = utc("2026-10-19 07:00")  # Monday 09:00 in summer time
    spans = weekly_spans(first, first + 8 * HOUR, zone=BERLIN, times=3)
    assert [span.starts_at for span in spans] == [
        first,
        utc("2026-10-26 08:00"),  # Monday 09:00 in winter time
        utc("2026-11-02 08:00"),
    ]
    assert {span.ends_at - span.starts_at for span in spans} == {8 * HOUR}


def test_a_night_that_is_longer_is_booked_in_full() -> None:
    saturday = utc("2026-10-17 20:00")  # 22:00 to 06:00
    lengths = [
        (span.ends_at - span.starts_at) / HOUR
        for span in weekly_spans(saturday, saturday + 8 * HOUR, zone=BERLIN, times=3)
    ]
    assert lengths == [8.0, 9.0, 8.0]


def test_weeks_in_which_the_hour_comes_twice_or_never() -> None:
    twice = weekly_spans(utc("2026-10-18 00:30"), utc("2026-10-18 02:00"), zone=BERLIN, times=2)
    assert twice[1].starts_at == utc("2026-10-25 00:30")  # 02:30, the first time
    never = weekly_spans(utc("2027-03-21 01:30"), utc("2027-03-21 04:00"), zone=BERLIN, times=2)
    assert never[1].starts_at == utc("2027-03-28 01:30")  # 03:30 instead of 02:30
    with pytest.raises(Unfit, match="in week 2, on 2027-03-28, this time does not exist") as caught:
        weekly_spans(utc("2027-03-21 01:15"), utc("2027-03-21 02:00"), zone=BERLIN, times=2)
    assert (caught.value.code, caught.value.path) == ("nonexistent_time", "weekly")


def test_weekly_bookings_do_not_overlap_themselves_or_leave_the_calendar() -> None:
    with pytest.raises(Unfit, match="longer than a week") as caught:
        weekly_spans(NOW, NOW + 7 * DAY + 1, zone=BERLIN, times=2)
    assert caught.value.path == "end"
    with pytest.raises(Unfit) as caught:
        weekly_spans(LATEST - 8 * DAY, LATEST - 7 * DAY, zone=BERLIN, times=2)
    assert (caught.value.code, caught.value.path) == ("time_out_of_range", "weekly.times")


@given(
    first=st.integers(NOW, NOW + 400 * DAY),
    seconds=st.integers(60, 7 * DAY),
    times=st.integers(2, 52),
    zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu"]),
)
def test_weekly_bookings_are_a_week_apart_by_the_clock_on_the_wall(
    first: int, seconds: int, times: int, zone: str
) -> None:
    try:
        spans = weekly_spans(first, first + seconds, zone=ZoneInfo(zone), times=times)
    except Unfit as unfit:
        assert unfit.path in ("weekly", "end")  # noqa: PT017
        return
    assert len(spans) == times
    assert all(one.ends_at <= other.starts_at for one, other in itertools.pairwise(spans))
    walls = [wall_of(span.starts_at, ZoneInfo(zone)) for span in spans]
    assert all(
        abs((wall - walls[0]).total_seconds() - week * 7 * DAY) <= HOUR for week, wall in enumerate(walls)
    )


# -- texts ---------------------------------------------------------------------------------------------------------


def test_titles_are_one_visible_line() -> None:
    assert clean_title("  two\nlines\tof  text ") == "two lines of text"
    assert clean_title("\u202egnp.exe\x1b[31m") == "\ufffdgnp.exe\ufffd[31m"
    assert clean_title("<b>&amp;") == "<b>&amp;"  # the page writes text, not markup


def test_comments_keep_their_lines_and_nothing_else_that_is_hidden() -> None:
    assert clean_comment("one\r\ntwo\n\n\tthree \x07\n") == "one\ntwo\n\n three \ufffd"
    assert len(clean_comment("x" * 5000)) == 2000
