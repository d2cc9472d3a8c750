"""What the hub itself has to say of a node or of the herd, and how it reaches viewers."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.node import Node
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.reports import Problem
from support.herd import IDLE, ManualClock, Speaker, gpu

LOST = Problem(code="link_lost", message="gpu1: connection lost", since=5.0)


def test_trouble_explains_a_silent_node_and_goes_with_its_next_sample(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("gpu1")
    node.describe(gpu(0))
    node.sample(IDLE)
    fleet.note("gpu1", "contact", LOST)
    clock.advance(100)
    fleet.tick()
    view = fleet.node("gpu1")
    assert view is not None
    assert (view.state, view.reason, view.notes) == ("offline", LOST.message, (LOST,))
    node.sample(IDLE)
    fleet.tick()
    view = fleet.node("gpu1")
    assert view is not None
    assert (view.state, view.reason, view.notes) == ("live", "reports arrive on time", ())


def test_other_notes_stay_until_they_are_taken_back(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("gpu1")
    node.describe(gpu(0))
    fleet.note("gpu1", "list", Problem(code="not_discovered", message="no longer named"))
    node.sample(IDLE)
    view = fleet.node("gpu1")
    assert view is not None
    assert [note.code for note in view.notes] == ["not_discovered"]
    fleet.note("gpu1", "list", None)
    view = fleet.node("gpu1")
    assert view is not None
    assert view.notes == ()
    fleet.note("nobody", "list", LOST)  # a node that is gone is no error


def test_a_gpu_that_two_nodes_report_is_told_of_both_while_it_lasts(
    fleet: Fleet, clock: ManualClock, speaker: Callable[[str], Speaker]
) -> None:
    uuid = "GPU-11111111-2222-3333-4444-555555555555"
    one, other, third = speaker("one"), speaker("other"), speaker("third")
    for node, card in ((one, gpu(0, uuid=uuid)), (other, gpu(0, uuid=uuid)), (third, gpu(0))):
        node.describe(card)
        node.sample(IDLE)
    fleet.tick()
    fleet.note_duplicates()
    notes = {node.id: [note.code for note in node.notes] for node in fleet.nodes()}
    assert notes == {"one": ["same_gpu"], "other": ["same_gpu"], "third": []}
    clock.advance(100)
    one.sample(IDLE)
    fleet.tick()
    fleet.note_duplicates()
    assert [node.notes for node in fleet.nodes()] == [(), (), ()], "the other has fallen silent"


def test_viewers_are_told_of_notes_and_notices_once_they_change(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    speaker("gpu1")
    fleet.tick()
    fleet.change()
    fleet.note("gpu1", "contact", LOST)
    fleet.set_notices((FleetNotice(code="list_failed", message="consul does not answer"),))
    fleet.tick()
    change = fleet.change()
    assert [node.notes for node in change.nodes] == [(LOST,)]
    assert change.host_states.reason == [LOST.message]
    assert [notice.code for notice in change.notices] == ["list_failed"]
    fleet.note("gpu1", "contact", LOST)
    fleet.tick()
    assert fleet.change().nodes == [], "the same note is not news"


def test_a_list_that_names_a_node_again_is_no_news_to_viewers(fleet: Fleet) -> None:
    fleet.add_node("gpu1", "gpu1", "ssh", 0)
    fleet.tick()
    fleet.change()
    fleet.add_node("gpu1", "gpu1", "ssh", 0)
    fleet.tick()
    assert fleet.change().nodes == []
    fleet.add_node("gpu1", "gpu1", "ssh", 1)
    fleet.tick()
    assert [node.id for node in fleet.change().nodes] == ["gpu1"]


@pytest.mark.promise("hostile-input-is-bounded")
def test_many_gpus_that_two_nodes_report_cost_each_tick_little(
    fleet: Fleet, speaker: Callable[[str], Speaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = [gpu(index, uuid=f"GPU-11111111-2222-3333-4444-{index:012}") for index in range(100)]
    for node in (speaker("one"), speaker("other")):
        node.describe(*cards)
        node.sample(*[IDLE] * len(cards))
    looks: list[str] = []
    devices = cast("Callable[[Node], tuple[DeviceFacts, ...]]", vars(Node)["devices"].fget)

    def counted(node: Node) -> tuple[DeviceFacts, ...]:
        looks.append(node.id)
        return devices(node)

    monkeypatch.setattr(Node, "devices", property(counted))
    fleet.tick()
    fleet.note_duplicates()
    assert len(looks) < 20
    assert [note.code for node in fleet.nodes() for note in node.notes] == ["same_gpu"] * 2
