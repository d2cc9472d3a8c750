"""How many bytes of bodies the hub holds at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from gpuherd.api.asgi import Message
from gpuherd.api.bodies import LEAST_CHARGE, BodyBudget, BodyRule
from gpuherd.api.errors import HttpError

RULE = BodyRule(max_bytes=100, seconds=60.0)
SCOPE = {"headers": [(b"content-length", b"10")]}


def part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def fill(budget: BodyBudget, place: str, *, is_known: bool) -> int:
    """Charge bodies until one is refused; return how many there was room for."""
    for count in itertools.count():
        try:
            budget.charge(place, LEAST_CHARGE, is_known=is_known)
        except HttpError:
            return count
    raise AssertionError


def test_strangers_have_a_quarter_of_their_address_and_half_of_all() -> None:
    budget = BodyBudget(total_bytes=20 * LEAST_CHARGE, share_bytes=8 * LEAST_CHARGE)
    assert fill(budget, "192.0.2.1", is_known=False) == 2
    assert fill(budget, "192.0.2.1", is_known=True) == 6, "who is known at the same address has the rest"
    strangers = [fill(budget, f"192.0.2.{number}", is_known=False) for number in range(2, 9)]
    assert strangers == [2, 1, 1, 1, 1, 1, 0], (
        "beyond half of all, one body of each address, up to three quarters"
    )
    assert fill(budget, "192.0.2.99", is_known=True) == 5


def test_what_was_charged_is_given_back() -> None:
    budget = BodyBudget(share_bytes=4 * LEAST_CHARGE)

    async def story() -> None:
        with budget.reading(SCOPE, _receive([]), RULE, place="192.0.2.1", is_known=False):
            assert budget.held_bytes == LEAST_CHARGE
            with pytest.raises(HttpError) as refused:
                budget.check("192.0.2.1", is_known=False)
            assert refused.value.status == 503
            budget.check("192.0.2.2", is_known=False)
        assert budget.held_bytes == 0
        budget.check("192.0.2.1", is_known=False)

    asyncio.run(story())


def _receive(messages: Sequence[Message]):  # type: ignore[no-untyped-def]
    left = list(messages)

    async def receive() -> Message:
        return left.pop(0)

    return receive


def test_a_body_that_was_received_before_comes_in_one_piece() -> None:
    async def story() -> list[Message]:
        gone: Message = {"type": "http.disconnect"}
        receive = _receive([part(b"one ", more=True), part(b"two", more=True), part(b"", more=False), gone])
        with BodyBudget().reading(SCOPE, receive, RULE, place="192.0.2.1", is_known=False) as body:
            await body.receive_all()
            return [await body(), await body()]

    whole, after = asyncio.run(story())
    assert whole == part(b"one two", more=False)
    assert after["type"] == "http.disconnect"


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([part(b"x" * 60, more=True), part(b"x" * 60, more=True)], 413),
        ([part(b"x", more=True), {"type": "http.disconnect"}], 400),
    ],
)
def test_a_body_that_is_too_large_or_broken_is_refused(messages: list[Message], status: int) -> None:
    async def story() -> None:
        with BodyBudget().reading(SCOPE, _receive(messages), RULE, place="x", is_known=False) as body:
            await body.receive_all()

    with pytest.raises(HttpError) as refused:
        asyncio.run(story())
    assert refused.value.status == status
