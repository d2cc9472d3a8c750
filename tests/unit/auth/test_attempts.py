"""How often a name can be tried."""

from __future__ import annotations

import pytest

from gpuherd.auth.attempts import NameAttempts
from gpuherd.model.errors import Refused


def tries(attempts: NameAttempts, name: str, address: str, now: float, count: int = 20) -> int:
    """Give how many of so many attempts are let through."""
    for number in range(count):
        try:
            attempts.begin(name, address, now)
        except Refused:
            return number
    return count


def test_name_is_tried_five_times_a_minute() -> None:
    attempts = NameAttempts()
    assert tries(attempts, "alice", "192.0.2.1", 0.0) == 5
    assert tries(attempts, "alice", "192.0.2.1", 59.0) == 0
    assert tries(attempts, "bob", "192.0.2.1", 59.0) == 5
    assert tries(attempts, "alice", "192.0.2.1", 61.0) == 5


def test_refusal_says_what_was_tried_too_often() -> None:
    attempts = NameAttempts(limit=1)
    attempts.begin("alice", "192.0.2.1", 0.0)
    with pytest.raises(Refused, match="with this name; wait a minute") as refused:
        attempts.begin("alice", "192.0.2.1", 0.0)
    assert refused.value.code == "too_many_attempts"


def test_who_succeeds_can_do_so_again_and_again() -> None:
    attempts = NameAttempts()
    for _ in range(50):
        attempts.begin("alice", "192.0.2.1", 0.0)
        attempts.succeeded("alice", "192.0.2.1")
    assert tries(attempts, "alice", "192.0.2.1", 0.0) == 5


@pytest.mark.parametrize("spelling", ["Alice", "ALICE", "\u00e1lice", "alic\u00e9", " alice", "\uff41lice"])
def test_other_spelling_is_the_same_name(spelling: str) -> None:
    attempts = NameAttempts()
    assert tries(attempts, "alice", "192.0.2.1", 0.0) == 5
    assert tries(attempts, spelling, "192.0.2.1", 0.0) == 0


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [
        ("192.0.2.1", "192.0.2.1", 0),
        ("192.0.2.1", "192.0.2.254", 5),
        ("192.0.2.1", "192.0.3.1", 5),
        ("2001:db8:1:2::1", "2001:db8:1:2::ffff", 0),
        ("2001:db8:1:2::1", "2001:db8:1:ffff::1", 5),
        ("fe80::1%eth0", "fe80::2%eth1", 0),
        ("unknown", "unknown", 0),
    ],
)
def test_attempts_are_counted_by_address(one: str, other: str, left: int) -> None:
    attempts = NameAttempts()
    assert tries(attempts, "alice", one, 0.0) == 5
    assert tries(attempts, "alice", other, 0.0) == left


@pytest.mark.parametrize("network", ["192.0.2.{}", "2001:db8:1:{}::1"])
def test_a_network_has_more_attempts_than_an_address_and_not_without_end(network: str) -> None:
    attempts = NameAttempts()
    assert [tries(attempts, "alice", network.format(number), 0.0) for number in range(1, 5)] == [5, 5, 0, 0]
    assert tries(attempts, "alice", "198.51.100.1", 0.0) == 5, "another network is another matter"


def test_memory_is_bounded() -> None:
    attempts = NameAttempts(max_names=10)
    for number in range(1000):
        attempts.begin(f"name-{number}", "192.0.2.1", 0.0)
    assert len(attempts._by_address._counts) == len(attempts._by_network._counts) == 10
    attempts.succeeded("name-0", "192.0.2.1")  # long forgotten
