"""Every face of the product offers the same devices: API, terminal, pick, booking, totals, stream and exports."""

from __future__ import annotations

import csv
from collections.abc import Callable

import msgspec
import pytest
from msgspec import structs

from gpuherd.api.resources.gpus import is_wanted
from gpuherd.client.booked_times import BookedTimes
from gpuherd.client.choosing import Search
from gpuherd.client.glance import Glance
from gpuherd.client.herd_views import Herd
from gpuherd.client.live_messages import Inventory
from gpuherd.client.live_nodes import LiveNode
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import Problem
from gpuherd.wiring.exporting.tables import full_table
from support.herd import GIB, HOLDING, IDLE, WORKING, ManualClock, Speaker, gpu

CARD = "GPU-11111111-2222-3333-4444-{:012d}"
SLICE = {"kind": "slice", "parent_uuid": CARD.format(0), "profile": "3g.40gb", "memory_total_bytes": 40 * GIB}
UNUSED = DeviceSample(memory_used_bytes=0)
Story = Callable[[Fleet, ManualClock], set[str]]
"""Lets nodes report; gives the devices that are free."""


def card(index: int, **changes: object) -> DeviceFacts:
    return gpu(index, uuid=CARD.format(index), **changes)


def speaker(fleet: Fleet, clock: ManualClock, name: str = "n1") -> Speaker:
    fleet.add_node(name, name)
    return Speaker(fleet, clock, name)


def whole(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(
        card(0), card(1), card(2), processes=(Process(pid=1),), uses=(ProcessUse(process=0, device=2),)
    )
    node.sample(IDLE, WORKING, IDLE)
    return {CARD.format(0)}


def split(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0, is_partitioned=True), card(1, **SLICE), card(2, **SLICE), card(3))
    node.sample(DeviceSample(), UNUSED, UNUSED, IDLE)
    return {CARD.format(index) for index in (1, 2, 3)}


def split_in_use(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0, is_partitioned=True), card(1, **SLICE), card(2, **SLICE))
    node.sample(DeviceSample(), UNUSED, DeviceSample(memory_used_bytes=30 * GIB))
    return {CARD.format(1)}


def split_and_not_saying_so(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1, **SLICE), card(2, **SLICE))
    node.sample(IDLE, UNUSED, DeviceSample(memory_used_bytes=30 * GIB))
    return {CARD.format(1)}


def split_without_slices(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0, is_partitioned=True))
    node.sample(UNUSED)
    return set()


def broken(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1), card(2), card(3))
    xid = Problem(code="xid", message="Xid 110: m", device_uuid=CARD.format(2))
    node.sample(
        structs.replace(IDLE, throttle_reasons=128),
        structs.replace(IDLE, ecc_uncorrected=1),
        IDLE,
        IDLE,
        problems=(xid,),
    )
    return {CARD.format(3)}


def broken_split(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0, is_partitioned=True), card(1, **SLICE))
    node.sample(DeviceSample(throttle_reasons=64), UNUSED)
    return set()


def unreadable(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1), card(2))
    blind = Problem(code="processes_failed", message="m", device_uuid=CARD.format(0))
    node.sample(IDLE, DeviceSample(utilization_gpu=0.0), IDLE, problems=(blind,))
    return {CARD.format(2)}


def hung(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    node.describe()
    node.sample(problems=(Problem(code="driver_hung", message="m", is_fault=True),))
    return set()


def missing(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1))
    node.sample(IDLE, IDLE)
    node.describe(card(1))
    node.sample(IDLE)
    return {CARD.format(1)}


def twice(fleet: Fleet, clock: ManualClock) -> set[str]:
    for name in ("n1", "n2"):
        node = speaker(fleet, clock, name)
        node.describe(card(0))
        node.sample(IDLE)
    return set()


def silent(fleet: Fleet, clock: ManualClock) -> set[str]:
    for name, index in (("n1", 0), ("n2", 1)):
        node = speaker(fleet, clock, name)
        node.describe(card(index))
        node.sample(IDLE)
        clock.advance(30)
    node.sample(IDLE)
    return {CARD.format(1)}


def held(fleet: Fleet, clock: ManualClock) -> set[str]:
    node = speaker(fleet, clock)
    node.describe(card(0), card(1, memory_total_bytes=192 * GIB), card(2, memory_basis="host"))
    node.sample(HOLDING, DeviceSample(utilization_gpu=0.0, memory_used_bytes=GIB), HOLDING)
    return {CARD.format(2)}


STORIES: list[Story] = [
    whole,
    split,
    split_in_use,
    split_and_not_saying_so,
    split_without_slices,
    broken,
    broken_split,
    unreadable,
    hung,
    missing,
    twice,
    silent,
    held,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_all_say_the_same(fleet: Fleet, clock: ManualClock, story: Story) -> None:
    expected = story(fleet, clock)
    fleet.tick()
    api = {view.facts.uuid for view in fleet.devices() if is_wanted(view, ["free"], None)}
    herd = msgspec.json.decode(msgspec.json.encode(fleet.view()), type=Herd)
    glance = msgspec.json.decode(msgspec.json.encode(fleet.glance("admin")), type=Glance).herd()
    picked = Search().sort(glance, BookedTimes(), clock.wall()).able
    exported = csv.DictReader(full_table(herd).decode("utf-8-sig").splitlines())
    change = fleet.snapshot()
    rows = {device.row: device.facts for node in change.nodes for device in node.devices}
    streamed = zip(change.device_states.row, change.device_states.state, strict=True)
    offered = {
        "GET /gpus?state=free": api,
        "gpuherd free": {gpu.uuid for _, gpu in glance.units() if gpu.state == "free"},
        "gpuherd pick": {candidate.gpu.uuid for candidate in picked},
        "booking": {
            one.ref.uuid for one in fleet.listing() if one.state == "free" and not one.is_partitioned
        },
        "export": {row["uuid"] for row in exported if row["state"] == "free"},
        "page": {
            rows[row].uuid for row, state in streamed if state == "free" and not rows[row].is_partitioned
        },
    }
    # Slices are picked by name alone.
    slices = {view.facts.uuid for view in fleet.devices() if view.facts.kind == "slice"}
    assert offered == {**dict.fromkeys(offered, expected), "gpuherd pick": expected - slices}
    totals = fleet.totals()
    assert totals.devices["free"] == len(expected)
    assert change.totals == totals, "what the page's title and the badges of its filters show"
    in_fault = {"hung"} if story in (hung, broken_split) else set()
    assert totals.nodes_in_fault == sum(node.is_in_fault for node in herd.nodes) == len(in_fault)
    assert sum(node.is_in_fault for node in glance.nodes) == len(in_fault)
    assert sum(model.counts["free"] for model in totals.models) == len(expected)


def test_a_missing_gpu_is_shown_in_its_place(fleet: Fleet, clock: ManualClock) -> None:
    node = speaker(fleet, clock)
    parts = [structs.replace(card(3 + place, **SLICE), index=1 - place) for place in range(2)]
    node.describe(card(0, is_partitioned=True), *parts, card(1), card(2))
    node.sample(DeviceSample(), UNUSED, UNUSED, IDLE, IDLE)
    node.describe(
        card(0, is_partitioned=True),
        *parts,
        structs.replace(card(2), index=1),
        processes=(Process(pid=7),),
        uses=(ProcessUse(process=0, device=3),),
    )
    node.sample(DeviceSample(), UNUSED, UNUSED, WORKING)
    fleet.tick()
    glance = msgspec.json.decode(msgspec.json.encode(fleet.glance("admin")), type=Glance).herd()
    inventory = msgspec.json.decode(msgspec.json.encode(fleet.snapshot().nodes[0]), type=Inventory)
    # The driver counts the GPUs that are there: what was GPU 2 is GPU 1 now.
    expected = [(CARD.format(number), number == 2) for number in (0, 4, 3, 1, 2)]
    assert [(one.facts.uuid, bool(one.processes)) for one in fleet.devices()] == expected
    assert [(one.uuid, bool(one.processes)) for one in glance.nodes[0].devices] == expected
    assert [(one.facts.uuid, bool(one.uses)) for one in LiveNode(inventory, {}).gpus] == expected
