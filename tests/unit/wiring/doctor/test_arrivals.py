"""Of nodes that come by themselves the hub's own words are told, and of listed ones not a second time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuherd.model.reports import Problem
from gpuherd.wiring.doctor.arrivals import MOST_TOLD, tell_arrivals
from gpuherd.wiring.doctor.hub_api import HubHealth, HubNode, NoHub
from gpuherd.wiring.doctor.steps import Journal, Step

HEALTH = HubHealth(status="ok", version="0.1.0", time=1000.0, uptime_seconds=60.0)


def told(*nodes: HubNode, listed: frozenset[str] = frozenset()) -> list[Step]:
    class Api:
        async def nodes(self) -> tuple[HubNode, ...]:
            return nodes

    api: Any = Api()
    journal = Journal()
    asyncio.run(tell_arrivals(api, HEALTH, journal, listed))
    return list(journal.steps)


def live(node_id: str, **more: Any) -> HubNode:
    known = {"id": node_id, "name": node_id, "state": "live", "received_at": 999.0, "devices": ({},), **more}
    return HubNode(**known)


def test_one_line_for_all_that_are_well() -> None:
    (step,) = told(live("gpu01"), live("gpu02"))
    assert (step.state, step.fact) == ("ok", "2 nodes report by themselves")


def test_a_listed_node_is_told_elsewhere_under_whatever_name_it_is_shown() -> None:
    shown = live("10.0.0.3", name="gpu03 (10.0.0.3)")
    assert told(shown, live("rack-1-a", name="rack 1/A"), listed=frozenset({"10.0.0.3", "Rack 1/A"})) == []


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("it posts nothing", "gpu03 (10.0.0.3): it posts nothing"),
        ("gpu03 (10.0.0.3) is silent", "gpu03 (10.0.0.3) is silent"),
        ("10.0.0.3: it is silent", "gpu03 (10.0.0.3): 10.0.0.3: it is silent"),
    ],
)
def test_whose_trouble_it_is_is_said_once(message: str, sentence: str) -> None:
    trouble = Problem(code="silent", message=message)
    (step,) = told(live("10.0.0.3", name="gpu03 (10.0.0.3)", way="file", notes=(trouble,)))
    assert (step.state, step.remedy) == ("failed", sentence)


def test_what_the_hub_dials_does_not_come_by_itself_though_no_list_names_it_now() -> None:
    assert (
        told(live("a", way="ssh"), live("b", way="pull"), live("c", way="node_info"), listed=frozenset("x"))
        == []
    )


def test_of_many_with_trouble_some_are_told() -> None:
    *some, rest = told(*(HubNode(id=f"n{number}", name=f"n{number}") for number in range(MOST_TOLD + 3)))
    assert len(some) == MOST_TOLD
    assert "n0 is known to the hub but has never reported" in (some[0].remedy or "")
    assert rest.fact == "and 3 more nodes with problems"


def test_a_hub_that_tells_nothing_to_this_user() -> None:
    class Api:
        async def nodes(self) -> tuple[HubNode, ...]:
            raise NoHub("run this with sudo")

    api: Any = Api()
    journal = Journal()
    asyncio.run(tell_arrivals(api, HEALTH, journal, ()))
    (step,) = journal.steps
    assert (step.state, step.fact) == ("skipped", "unknown: run this with sudo")
