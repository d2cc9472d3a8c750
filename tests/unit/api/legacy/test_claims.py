"""Names that anyone may claim."""

from __future__ import annotations

import pytest

from gpuherd.api.legacy.claims import MAX_NOTICES, NameClaims
from gpuherd.model.errors import Refused
from support.herd import ManualClock


def claims(known: dict[str, str], *, max_per_sender: int = 2, clock: ManualClock | None = None) -> NameClaims:
    clock = clock or ManualClock()
    return NameClaims(
        kept_seconds=60,
        max_nodes=1000,
        max_per_sender=max_per_sender,
        known=lambda: known,
        monotonic=clock.monotonic,
        wall=clock.wall,
    )


def test_the_first_sender_keeps_a_name_until_it_is_silent() -> None:
    clock = ManualClock()
    held = claims({}, clock=clock)

    def say(sender: str) -> None:
        held.check("gpu01", sender)
        held.claim("gpu01", sender)

    say("10.0.0.1")
    clock.advance(59)
    say("10.0.0.1")
    assert held.doubts("gpu01") is None
    clock.advance(30)
    with pytest.raises(Refused) as caught:
        say("10.0.0.2")
    assert caught.value.code == "name_taken"
    problem = held.doubts("gpu01")
    assert problem is not None
    assert problem.code == "two_senders"
    assert "10.0.0.2" in problem.message
    assert "10.0.0.1" in problem.message
    clock.advance(29)
    say("10.0.0.1")
    clock.advance(32)
    assert held.doubts("gpu01") is None
    clock.advance(30)
    say("10.0.0.2")  # the first has been silent for over a minute
    with pytest.raises(Refused):
        say("10.0.0.1")


def test_a_machine_with_a_network_of_addresses_is_one_sender() -> None:
    known = {"a": "2001:db8::1", "b": "2001:db8::ffff", "c": "10.0.0.1"}
    with pytest.raises(Refused, match="2 names already come from your address"):
        claims(known).check("d", "2001:db8:0:0:1::5")
    claims(known).check("d", "2001:db8:0:1::5")
    claims(known).check("d", "10.0.0.2")
    claims(known).check("a", "2001:db8::1")


def test_what_is_told_is_bounded_and_clean() -> None:
    known = {f"{number}-{site}": f"10.0.0.{site}" for site in range(200) for number in range(2)}
    refusing = claims(known)
    for site in range(200):
        with pytest.raises(Refused):
            refusing.check("evil\x1b[31m", f"10.0.0.{site}")
    told = refusing.notices()
    assert len(told) == MAX_NOTICES
    assert all("\x1b" not in notice.message for notice in told)
    assert "10.0.0.199" in told[-1].message


def test_nodes_of_before_without_a_known_sender_belong_to_whoever_comes_first() -> None:
    held = claims({"a": ""}, max_per_sender=1)
    held.check("a", "10.0.0.1")
    held.claim("a", "10.0.0.1")
    with pytest.raises(Refused, match="another address posts under this name"):
        held.check("a", "10.0.0.2")
