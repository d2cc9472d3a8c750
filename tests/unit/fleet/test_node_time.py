"""Whose clock is believed: a sample comes after it was taken, and queues are no clocks."""

from __future__ import annotations

import itertools
import math

import pytest

from gpuherd.fleet.node_time import NodeTime

HUB = 1_790_000_000.0


def test_a_clock_that_is_nearly_right_is_believed() -> None:
    node = NodeTime()
    assert node.live(HUB - 1.5, HUB, 0.0, 1.0) == HUB - 1.5


def test_nothing_is_in_the_hubs_future() -> None:
    node = NodeTime()
    assert node.live(HUB + 1.5, HUB, 0.0, 1.0) == HUB
    assert node.past(HUB + 100.0, HUB) == HUB


@pytest.mark.parametrize("skew", [-86_400.0, -5.0, 5.0, 86_400.0])
def test_a_hello_tells_the_time(skew: float) -> None:
    node = NodeTime()
    node.greet(HUB + skew, HUB, 0.0)
    assert node.live(HUB + skew + 1.0, HUB + 1.0, 1.0, 1.0) == HUB + 1.0
    assert node.past(HUB + skew - 60.0, HUB + 1.0) == HUB - 60.0


@pytest.mark.parametrize("round_trip_seconds", [5.0, 60.0, math.inf])
def test_a_hello_that_may_only_be_late_moves_nothing(round_trip_seconds: float) -> None:
    node = NodeTime()
    node.greet(HUB - 5.0, HUB, round_trip_seconds)
    assert node.is_right
    assert node.past(HUB - 60.0, HUB) == HUB - 60.0


@pytest.mark.parametrize("skew", [-86_400.0, -20.0, 20.0, 86_400.0])
@pytest.mark.parametrize(("before", "after"), [(0.0, 5.0), (0.5, 5.0), (0.5, 0.5), (0.0, 0.0), (0.9, 0.1)])
def test_a_hello_that_is_late_tells_the_time_nearly(skew: float, before: float, after: float) -> None:
    # The hub's word takes `before` seconds to the node, the hello lies in the hub for `after` seconds.
    node = NodeTime()
    node.greet(HUB + before + skew, HUB + before + after, before + after)
    assert node.offset_seconds == pytest.approx(-skew, abs=1.0)


def test_a_hello_long_after_what_the_hub_sent_keeps_what_was_measured_before() -> None:
    node = NodeTime()
    node.greet(HUB - 100.0, HUB, 0.0)
    node.greet(HUB - 70.0, HUB + 35.0, 35.0)
    assert node.offset_seconds == 100.0


def test_a_hello_from_the_future_is_a_wrong_clock_even_if_nothing_else_is_known() -> None:
    node = NodeTime()
    node.greet(HUB + 60.0, HUB, math.inf)
    assert node.offset_seconds == -60.0


def test_a_steady_offset_keeps_samples_evenly_apart() -> None:
    node = NodeTime()
    node.greet(HUB - 100.0, HUB, 0.0)
    delays = [0.1, 0.9, 0.2, 1.4, 0.3]
    times = [node.live(HUB - 100.0 + i, HUB + i + delay, i + delay, 1.0) for i, delay in enumerate(delays)]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [1.0] * 4


def test_samples_that_have_queued_up_keep_their_times() -> None:
    node = NodeTime()
    for second in range(5):
        node.live(HUB + second, HUB + second, second, 1.0)
    stalled = [node.live(HUB + second, HUB + 30.0, 30.0 + second / 1000, 1.0) for second in range(5, 30)]
    assert stalled == [HUB + second for second in range(5, 30)]
    assert node.live(HUB + 31.0, HUB + 31.0, 31.0, 1.0) == HUB + 31.0


@pytest.mark.parametrize("step", [-3600.0, -30.0, 30.0, 3600.0])
def test_a_clock_that_is_set_is_seen_at_once(step: float) -> None:
    node = NodeTime()
    for second in range(5):
        node.live(HUB + second, HUB + second, second, 1.0)
    times = [node.live(HUB + second + step, HUB + second, second, 1.0) for second in range(5, 10)]
    assert times == [HUB + second for second in range(5, 10)]


def test_a_clock_that_drifts_is_followed_after_a_few_samples() -> None:
    node = NodeTime()
    late = [node.live(HUB + 0.9 * second, HUB + second, second, 1.0) for second in range(100)]
    assert all(second - (time - HUB) < 2.6 for second, time in enumerate(late))


def test_a_clock_that_is_put_right_is_believed_again() -> None:
    node = NodeTime()
    node.greet(HUB + 3600.0, HUB, 0.0)
    node.live(HUB + 3601.0, HUB + 1.0, 1.0, 1.0)
    assert node.live(HUB + 2.5, HUB + 3.0, 3.0, 1.0) == HUB + 2.5
    assert node.offset_seconds == 0.0


def test_what_is_fetched_may_be_old() -> None:
    node = NodeTime()
    assert [node.live(HUB + i * 60.0 - 50.0, HUB + i * 60.0, i * 60.0, 60.0, 60.0) for i in range(5)] == [
        HUB + i * 60.0 - 50.0 for i in range(5)
    ]
