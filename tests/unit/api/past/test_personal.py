"""What is one's own of the past: given to oneself, and forgotten when one goes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from gpuherd.api.past.figures import Prices
from gpuherd.api.past.personal import PersonalPast
from gpuherd.history.settings import UsageSettings
from gpuherd.model.errors import Failed
from support.reported_past import ADA, BOB, NOW, ReportedPast, random_slots


class Use:
    """The book and its reader as one."""

    def __init__(self, past: ReportedPast) -> None:
        self.export = past.memory.usage.export
        self.erase = past.book.erase


@pytest.fixture
def personal(past: ReportedPast) -> Iterator[PersonalPast]:
    made = PersonalPast(Use(past), past.fleet.names, Prices(UsageSettings()))
    yield made
    made.close()


def test_an_export_has_all_of_a_person_and_nothing_of_others(
    past: ReportedPast, personal: PersonalPast
) -> None:
    slots = random_slots(1)
    past.keep(slots)
    told = asyncio.run(personal.export(ADA))
    mine = {slot.key for slot in slots if slot.key.user in ("ada", "ada-laptop")}
    assert {one.id for one in told} == {key.id for key in mine}
    assert {one.user for one in told} == {"ada", "ada-laptop"}
    assert all("--secret-of ada" in (one.command or "") for one in told)
    hours = sum(one.figures.gpu_hours for one in told)
    assert hours == pytest.approx(sum(s.of("gpu_seconds") for s in slots if s.key in mine) / 3600, rel=1e-6)


def test_who_is_erased_is_unknown_and_the_hours_stay(past: ReportedPast, personal: PersonalPast) -> None:
    past.keep(random_slots(1))
    before = {row.key: row.sums for row in past.memory.usage.figures("user", 0.0, NOW).rows}
    asyncio.run(personal.erase(ADA))
    after = {row.key: row.sums for row in past.memory.usage.figures("user", 0.0, NOW).rows}
    assert not {"ada", "ada-laptop"} & after.keys()
    assert after["bob"] == before["bob"]
    gone = before["ada"].gpu_seconds + before["ada-laptop"].gpu_seconds
    assert after[None].gpu_seconds == pytest.approx(before[None].gpu_seconds + gone)
    assert asyncio.run(personal.export(ADA)) == []
    assert asyncio.run(personal.export(BOB)) != []
    texts = [stay.command or "" for stay in past.memory.usage.stays(0.0, NOW).stays]
    assert not any("--secret-of ada" in text for text in texts)


def test_a_closed_desk_fails_clearly(personal: PersonalPast) -> None:
    personal.close()
    with pytest.raises(Failed):
        asyncio.run(personal.export(ADA))
