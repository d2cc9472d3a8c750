"""Values of any kind give a number within bounds or nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.sources.node_clock import naive_seconds, zone_seconds
from gpuherd.sources.old_values import label, mebibytes, number, ratio, value_problems, whole

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(ANYTHING)
def test_anything_gives_a_value_within_bounds_or_nothing(value: object) -> None:
    found = number(value, -60, 250)
    assert found is None or -60 <= found <= 250
    assert (share := ratio(value)) is None or 0 <= share <= 1
    assert (size := mebibytes(value)) is None or 0 <= size <= 2**53
    assert (name := label(value)) is None or (len(name) <= 128 and name.isprintable())
    assert (count := whole(value, 0, 9)) is None or count in range(10)
    assert isinstance(value_problems("GPU-1", 0, [("memory.used", value)]), tuple)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, 0.0),
        (37, 37.0),
        ("37", 37.0),
        ("37 MiB", 37.0),
        (" 12 %", 12.0),
        ("36.6 C", 36.6),
        (True, None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        ("9" * 400, None),
        ("[N/A]", None),
        ("[Not Supported]", None),
        ("[Unknown Error]", None),
        ("ERR!", None),
        ("1.2.3", None),
        ([], None),
        ({}, None),
    ],
)
def test_numbers(value: object, found: float | None) -> None:
    assert number(value, 0, 2**33) == found


@pytest.mark.parametrize("word", ["[N/A]", "N/A", "", "-", "[Not Supported]", "?", 0, None, "37 %"])
def test_a_card_without_a_sensor_has_no_problem(word: object) -> None:
    assert value_problems("GPU-1", 0, [("fan.speed", word)]) == ()


@pytest.mark.parametrize(
    ("word", "code", "is_fault"),
    [
        ("[Unknown Error]", "metric_failed", False),
        ("ERR!", "metric_failed", False),
        ("[GPU is lost]", "gpu_lost", True),
        ("GPU is lost", "gpu_lost", True),
        ("[GPU requires reset]", "reset_required", True),
    ],
)
def test_words_that_tell_of_trouble(word: str, code: str, is_fault: bool) -> None:
    (problem,) = value_problems("GPU-1", 3, [("memory.used", word), ("fan.speed", "[N/A]")])
    assert (problem.code, problem.is_fault, problem.device_uuid) == (code, is_fault, "GPU-1")
    assert "GPU 3" in problem.message


def test_names_are_made_harmless() -> None:
    assert label("\x1b[31mred\x1b[0m") == "�[31mred�[0m"
    assert label("a" * 500) == "a" * 127 + "…"
    assert label("  alice ") == "alice"


# -- times without a zone ------------------------------------------------------------------------------------------

NOON = 1_600_000_200.0  # 2020-09-13T12:30:00Z


@pytest.mark.parametrize(
    "text",
    ["2020-09-13T12:30:00", "2020/09/13 12:30:00.000", "2020-09-13T12:30:00.000000", " 2020/09/13 12:30:00 "],
)
def test_times_are_read_as_if_they_were_utc(text: str) -> None:
    assert naive_seconds(text) == NOON


@pytest.mark.parametrize("text", ["", "yesterday", "2020-13-13T12:30:00", "2020-09-13", None, 5, "2" * 1000])
def test_what_is_no_time_is_unknown(text: object) -> None:
    assert naive_seconds(text) is None


@pytest.mark.parametrize("zone", [0, 3600, -8 * 3600, 5.75 * 3600, 14 * 3600])
@pytest.mark.parametrize("skew", [-50.0, 0.0, 3.0, 50.0])
def test_whole_quarters_of_an_hour_are_the_zone(zone: float, skew: float) -> None:
    assert zone_seconds(NOON + zone + skew, NOON, behind_seconds=60, ahead_seconds=60) == zone


@pytest.mark.parametrize("ahead", [61.0, -61.0, 3600 + 300.0, 15 * 3600.0, 40 * 86400.0])
def test_a_clock_that_is_far_off_tells_nothing(ahead: float) -> None:
    assert zone_seconds(NOON + ahead, NOON, behind_seconds=60, ahead_seconds=60) is None
