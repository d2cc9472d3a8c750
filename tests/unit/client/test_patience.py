"""Asking again: only when too many ask, as the hub wishes, told once and not for ever."""

from __future__ import annotations

import pytest

from gpuherd.client.errors import HubRefused
from gpuherd.client.patience import patiently
from gpuherd.client.views import HubError


def no(status: int, retry_after: int | None = None) -> HubRefused:
    return HubRefused(status, HubError(code="some", message="no"), retry_after_seconds=retry_after)


class Door:
    """Gives its answers one by one, and keeps what was waited and told."""

    def __init__(self, *answers: HubRefused | str) -> None:
        self.answers = list(answers)
        self.waits: list[float] = []
        self.told: list[HubRefused] = []

    def ask(self) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, HubRefused):
            raise answer
        return answer

    def __call__(self, chance: float = 0.0) -> str:
        return patiently(self.ask, tell=self.told.append, sleep=self.waits.append, chance=lambda: chance)


def test_a_crowd_is_waited_for_as_the_hub_wishes_and_told_once() -> None:
    door = Door(no(429, 5), no(429, 7), no(429), no(429, 0), "in")
    assert door() == "in"
    assert door.waits == [5, 7, 5, 1]
    assert len(door.told) == 1


def test_not_all_come_back_in_the_same_moment() -> None:
    door = Door(no(429, 10), "in")
    door(chance=0.5)
    assert door.waits == [11]


@pytest.mark.parametrize("status", [400, 401, 403, 409, 500, 503])
def test_every_other_no_is_final(status: int) -> None:
    door = Door(no(429, 5), no(status, 5), "in")
    with pytest.raises(HubRefused) as refused:
        door()
    assert refused.value.status == status
    assert door.waits == [5]


def test_a_minute_is_enough() -> None:
    door = Door(*[no(429, 30)] * 4)
    with pytest.raises(HubRefused):
        door()
    assert door.waits == [30, 30]
    assert len(door.answers) == 1, "three tries"


def test_a_hub_that_wants_more_than_a_minute_is_believed_at_once() -> None:
    door = Door(no(429, 61), "in")
    with pytest.raises(HubRefused):
        door()
    assert (door.waits, door.told) == ([], [])
