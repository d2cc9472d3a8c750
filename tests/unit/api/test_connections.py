"""Which connections of strangers are closed."""

from __future__ import annotations

from gpuherd.api.connections import surplus
from gpuherd.api.sockets import Connection

CAPACITY = 1600
SHARE = 100


def crowd(place: str, count: int, *, since: float = 0.0, start: int = 0) -> dict[str, list[Connection]]:
    return {
        place: [
            Connection(start + number, start + number, (place, number), since + number / 1000)
            for number in range(count)
        ]
    }


def closed(*crowds: dict[str, list[Connection]]) -> list[int]:
    by_place = {place: connections for one in crowds for place, connections in one.items()}
    return [connection.file for connection in surplus(by_place, CAPACITY)]


def test_an_address_within_its_share_is_left_alone() -> None:
    assert closed(crowd("192.0.2.1", SHARE)) == []


def test_an_address_with_too_many_loses_those_that_waited_longest() -> None:
    late_first = {"192.0.2.1": list(reversed(crowd("192.0.2.1", SHARE + 300)["192.0.2.1"]))}
    assert closed(late_first) == list(range(300))


def test_others_do_not_pay_for_it() -> None:
    assert closed(crowd("192.0.2.1", 500), crowd("192.0.2.2", 90, start=1000)) == list(range(400))


def test_all_strangers_together_leave_a_quarter() -> None:
    crowds = [crowd(f"192.0.2.{place}", SHARE, since=place, start=place * SHARE) for place in range(15)]
    assert closed(*crowds) == list(range(15 * SHARE - CAPACITY * 3 // 4))


def test_a_small_hub_leaves_each_address_a_few() -> None:
    assert [one.file for one in surplus(crowd("192.0.2.1", 20), 64)] == [0, 1, 2, 3]
