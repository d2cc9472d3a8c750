"""A booking for as long as a command needs it: what the hub did unheard is found, and all is given back."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gpuherd.client import HubClient, HubRefused, HubSilent
from gpuherd.client.errors import NOT_A_HUB
from gpuherd.client.holding import Holding
from gpuherd.client.keeping import BookingKeeper
from gpuherd.client.views import Booking, HubError
from gpuherd.model.errors import Refused
from support.running import PATIENCE_SECONDS

DEVICES = [{"node_id": "n", "uuid": "GPU-0"}]


NOT_DONE = {
    "proxy": HubRefused(404, HubError(code=NOT_A_HUB, message="http://hub answers 404")),
    "busy": HubRefused(429, HubError(code="too_many_requests", message="too many at a time")),
}


class Line:
    """A hub that books, and whose answers may get lost."""

    def __init__(self) -> None:
        self.url = "http://hub"
        self.shared: dict[str, Any] = {"bookings": {}, "lose": [], "late": [], "asked": []}

    def with_deadline(self, seconds: float) -> Line:
        assert seconds <= 10
        return self

    def ask(self, method: str, path: str, body: Any = None, **_query: Any) -> bytes:
        import msgspec

        held: dict[int, Booking] = self.shared["bookings"]
        self.shared["asked"].append(path)
        fate = self.shared["lose"].pop(0) if self.shared["lose"] else None
        if fate == "before":
            raise HubSilent("lost")
        if fate in NOT_DONE:
            raise NOT_DONE[fate]
        if fate == "late":
            self.shared["late"].append(body)
            raise HubSilent("lost")
        answer: Any
        if method == "GET":
            answer = list(held.values())
        elif path == "bookings":
            answer = [self.make(body)]
        else:
            number = int(path.split("/")[1])
            if number not in held:
                raise HubRefused(409, HubError(code="past", message="it is over"))
            answer = held.pop(number)
        if fate == "after":
            raise HubSilent("lost")
        if fate == "too late":
            raise HubRefused(408, HubError(code="timeout", message="it took too long"))
        if fate == "error":
            raise HubRefused(503, HubError(code="unavailable", message="the records do not answer"))
        return msgspec.json.encode(answer)

    def make(self, body: dict[str, Any]) -> Booking:
        number = 1 + max(self.shared["bookings"], default=0)
        state = self.shared.get("state", "active")
        made = Booking(id=number, comment=body["comment"], starts_at=1, ends_at=2, state=state)
        self.shared["bookings"][number] = made
        return made


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def holding(line: Line) -> Holding:
    hub: Any = line
    return Holding(HubClient(hub), words="test", sleep=lambda _: None)


def test_book_and_give_back(line: Line, holding: Holding) -> None:
    holding.give_back()
    assert line.shared["asked"] == []
    booking = holding.book(DEVICES, {"end": "2h"})
    assert booking is not None
    assert booking.comment.startswith("test (")
    holding.give_back()
    assert (line.shared["bookings"], holding.booking) == ({}, None)
    holding.give_back()
    assert line.shared["asked"] == ["bookings", "bookings/1/release"]


@pytest.mark.parametrize("fate", ["after", "error", "too late"])
def test_what_was_booked_unheard_is_found(line: Line, holding: Holding, fate: str) -> None:
    line.shared["lose"] = [fate]
    with pytest.raises(HubSilent):
        holding.book(DEVICES, {"end": "2h"})
    assert holding.is_unsure
    assert holding.booking is None
    found = holding.settle()
    assert found is not None
    assert not holding.is_unsure
    holding.give_back()
    assert line.shared["bookings"] == {}


def test_what_was_never_booked_is_not_found(line: Line, holding: Holding) -> None:
    line.shared["lose"] = ["before"]
    with pytest.raises(HubSilent):
        holding.book(DEVICES, {"end": "2h"})
    assert holding.settle() is None
    assert holding.book(DEVICES, {"end": "2h"}) is not None


def test_what_a_hub_does_long_after_it_was_asked_is_given_back_too(line: Line, holding: Holding) -> None:
    line.shared["lose"] = ["late"]
    with pytest.raises(HubSilent):
        holding.book(DEVICES, {"end": "2h"})
    assert holding.settle() is None
    assert holding.book(DEVICES, {"end": "2h"}) is not None
    line.make(line.shared["late"][0])
    assert len(line.shared["bookings"]) == 2
    holding.give_back()
    assert line.shared["bookings"] == {}


def test_giving_back_is_tried_again_unless_someone_is_in_a_hurry(line: Line, holding: Holding) -> None:
    holding.book(DEVICES, {"end": "2h"})
    troubles: list[Exception] = []
    line.shared["lose"] = ["before", "error", "too late"]
    holding.give_back(on_trouble=troubles.append)
    assert (line.shared["bookings"], len(troubles)) == ({}, 1)

    holding.book(DEVICES, {"end": "2h"})
    line.shared["lose"] = ["before"] * 9
    with pytest.raises(HubSilent):
        holding.give_back(is_hurried=lambda: True)
    assert len(line.shared["lose"]) == 8
    with pytest.raises(HubSilent):
        holding.give_back()
    assert holding.booking is not None


@pytest.mark.parametrize("fate", NOT_DONE)
def test_no_answer_of_the_hub_itself_is_no_proof_that_it_is_given_back(
    line: Line, holding: Holding, fate: str
) -> None:
    holding.book(DEVICES, {"end": "2h"})
    line.shared["lose"] = [fate, fate]
    holding.give_back()
    assert (line.shared["bookings"], holding.booking) == ({}, None)


def test_whether_a_proxy_has_passed_on_a_booking_is_not_known(line: Line, holding: Holding) -> None:
    line.shared["lose"] = ["proxy"]
    with pytest.raises(HubSilent):
        holding.book(DEVICES, {"end": "2h"})
    assert holding.is_unsure


def test_a_hub_that_is_too_busy_to_look_has_booked_nothing(line: Line, holding: Holding) -> None:
    line.shared["lose"] = ["busy"]
    with pytest.raises(HubRefused) as refused:
        holding.book(DEVICES, {"end": "2h"})
    assert not refused.value.is_final
    assert not holding.is_unsure


def test_someone_else_was_faster(line: Line, holding: Holding) -> None:
    def taken(*_: Any, **__: Any) -> bytes:
        raise HubRefused(409, HubError(code="conflict", message="taken"))

    line.ask = taken  # type: ignore[method-assign]
    assert holding.book(DEVICES, {"end": "2h"}) is None
    assert not holding.is_unsure


def test_what_would_have_to_be_approved_is_of_no_use_now(line: Line, holding: Holding) -> None:
    line.shared["state"] = "pending"
    with pytest.raises(Refused, match="need an admin's approval"):
        holding.book(DEVICES, {"end": "2h"})
    assert line.shared["bookings"] == {}


# -- while it runs -------------------------------------------------------------------------------------------------


class ExtendingHub:
    """Extends by an hour, or does what it is told to."""

    def __init__(self, *fates: Exception) -> None:
        self.fates = list(fates)
        self.extended = 0

    def extend(self, booking_id: int, end: str, zone: str | None) -> Booking:
        assert (booking_id, end, zone) == (7, "1h", "UTC")
        if self.fates:
            raise self.fates.pop(0)
        self.extended += 1
        return Booking(id=7, starts_at=0, ends_at=3600 * (1 + self.extended))


def keeper(hub: Any, told: list[str], extend: str | None = "1h") -> BookingKeeper:
    return BookingKeeper(
        hub, Booking(id=7, starts_at=0, ends_at=3600), tell=told.append, extend=extend, zone="UTC"
    )


def test_the_end_of_a_booking_is_told_before_it_comes() -> None:
    told: list[str] = []
    kept = keeper(None, told, extend=None)
    assert kept.step(0) == 3000
    assert told == []
    assert kept.step(3000) == 600
    assert kept.step(3100) == 500
    assert told == ["booking 7 ends in 10 min; extend it with: gpuherd bookings extend 7 2h"]
    assert kept.step(3600) == float("inf")


def test_a_booking_is_extended_as_long_as_the_command_runs() -> None:
    hub, told = ExtendingHub(), list[str]()
    kept = keeper(hub, told)
    now = 0.0
    while now < 20_000:
        now += max(1.0, kept.step(now))
        assert kept.booking.ends_at > now
    assert hub.extended >= 4
    assert told == []


def test_a_hub_that_is_away_is_asked_again_and_a_refusal_is_told() -> None:
    hub, told = ExtendingHub(HubSilent("away"), HubSilent("away")), list[str]()
    kept = keeper(hub, told)
    assert kept.step(3000) == 30
    assert kept.step(3030) == 30
    kept.step(3060)
    assert (hub.extended, told) == (1, ["booking 7 could not be extended, retrying: away"])

    refused = ExtendingHub(HubRefused(409, HubError(code="conflict", message="bob comes next")))
    told.clear()
    kept = keeper(refused, told)
    kept.step(3100)
    kept.step(3200)
    kept.step(3600)
    assert told == ["booking 7 cannot be extended: bob comes next; it ends in 9 min"]


def test_an_end_that_came_while_the_machine_slept_is_told() -> None:
    told: list[str] = []
    keeper(None, told, extend=None).step(4000)
    assert told == ["booking 7 has ended, but the command is still running; others may take the GPUs"]


def test_whatever_goes_wrong_it_is_looked_after_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.client.keeping.AGAIN_SECONDS", 0.01)
    extended = threading.Event()

    class Hub(ExtendingHub):
        def extend(self, *asked: Any) -> Booking:
            made = super().extend(*asked)
            extended.set()
            return made

    def tell(_words: str) -> None:
        raise OSError("the terminal is gone")

    kept = BookingKeeper(
        Hub(HubSilent("away"), ZeroDivisionError("a slip"), HubSilent("away")),  # type: ignore[arg-type]
        Booking(id=7, starts_at=0, ends_at=3600),
        tell=tell,
        extend="1h",
        zone="UTC",
        hub_now=lambda: 3500.0,
    )
    kept.start()
    try:
        assert extended.wait(PATIENCE_SECONDS)
    finally:
        kept.stop()
        kept._thread.join(PATIENCE_SECONDS)


def test_looking_after_it_ends_at_once() -> None:
    told: list[str] = []
    kept = BookingKeeper(
        HubClient(Line()),  # type: ignore[arg-type]
        Booking(id=7, starts_at=0, ends_at=3600),
        tell=told.append,
        hub_now=lambda: 3500.0,
    )
    kept.start()
    kept.stop()
    kept._thread.join(PATIENCE_SECONDS)
    assert not kept._thread.is_alive()
