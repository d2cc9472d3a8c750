"""A viewer who applies all changes knows exactly what a newcomer's snapshot says."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from gpuherd.fleet.changes import FleetChange
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.bookings import DeviceBookingFacts, DeviceRef
from gpuherd.model.devices import DeviceSample
from gpuherd.model.processes import Process, ProcessUse
from gpuherd.model.reports import Problem
from support.herd import GIB, ManualClock, Speaker, gpu, settle

KEYS = {
    "devices": ("row",),
    "device_details": ("row",),
    "device_states": ("row",),
    "hosts": ("row",),
    "host_states": ("row",),
    "uses": ("node", "position"),
}


class Viewer:
    """Applies messages the way the page does."""

    def __init__(self) -> None:
        self.tick = -1
        self.nodes: dict[int, Any] = {}
        self.tables: dict[str, dict[Any, dict[str, Any]]] = {table: {} for table in KEYS}
        self.bookings: dict[int, Any] = {}

    def take(self, change: FleetChange) -> None:
        message = msgspec.json.decode(msgspec.json.encode(change))
        if message["after_tick"] is None:
            self.nodes.clear()
            self.tables = {table: {} for table in KEYS}
            self.bookings.clear()
        else:
            assert message["after_tick"] == self.tick
        self.tick = message["tick"]
        for row in message["removed"]:
            self._forget(row)
        for node in message["nodes"]:
            self._forget(node["row"])
            self.nodes[node["row"]] = node
        for table, keys in KEYS.items():
            columns = message[table]
            for position, key in enumerate(zip(*(columns[name] for name in keys), strict=True)):
                self.tables[table][key] = {name: values[position] for name, values in columns.items()}
        for booked in message["device_bookings"]:
            self.bookings.pop(booked["row"], None)
            if booked["bookings"]:
                self.bookings[booked["row"]] = booked["bookings"]

    def _forget(self, row: int) -> None:
        old = self.nodes.pop(row, None)
        if old is not None:
            for device in old["devices"]:
                self.bookings.pop(device["row"], None)
                for table in ("devices", "device_details", "device_states"):
                    self.tables[table].pop((device["row"],), None)
            for table in ("hosts", "host_states"):
                self.tables[table].pop((row,), None)
            self.tables["uses"] = {key: use for key, use in self.tables["uses"].items() if key[0] != row}


def test_changes_add_up_to_the_snapshot(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable, not secret
    speakers = [speaker(f"n{number}") for number in range(4)]
    sizes = [2, 8, 0, 3]
    for node, size in zip(speakers, sizes, strict=True):
        node.describe(*(gpu(index) for index in range(size)))
    fleet.tick()
    follower = Viewer()
    follower.take(fleet.snapshot())
    phases: set[str] = set()
    for step in range(60):
        clock.advance(1)
        for number, node in enumerate(speakers):
            if step == 20 and number == 1:
                node.describe(
                    *(gpu(index) for index in range(5)),
                    processes=(Process(pid=step, user="user01"),),
                    uses=(ProcessUse(process=0, device=2),),
                )
            if chance.random() < 0.7:
                node.sample(
                    *(
                        DeviceSample(
                            utilization_gpu=chance.choice([None, 0.0, chance.random()]),
                            memory_used_bytes=chance.choice([0, chance.randrange(80 * GIB)]),
                        )
                        for _ in node.facts.devices
                    )
                )
        if step % 10 == 5:
            fleet.set_bookings(
                DeviceBookingFacts(
                    device=DeviceRef(f"n{chance.randrange(4)}", f"GPU-{chance.randrange(6)}"),
                    booking_id=step * 100 + number,
                    holder="Ada",
                    title="",
                    starts_at=int(clock.wall()) + 3 * number,
                    ends_at=int(clock.wall()) + 3 * number + 3,
                    linux_names=frozenset({"user01"}),
                )
                for number in range(6)
            )
        if step == 40:
            fleet.remove_node("n3")
            speakers.pop()
        fleet.tick()
        follower.take(fleet.change())
        newcomer = Viewer()
        newcomer.take(fleet.snapshot())
        assert newcomer.tables == follower.tables
        assert newcomer.nodes == follower.nodes
        assert newcomer.bookings == follower.bookings
        assert newcomer.tick == follower.tick
        phases |= {view["phase"] for views in follower.bookings.values() for view in views}
    assert phases == {"past", "current", "next"}


def test_a_quiet_herd_sends_next_to_nothing(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(DeviceSample(utilization_gpu=0.5, memory_used_bytes=GIB))
    fleet.tick()
    fleet.snapshot()
    clock.advance(1)
    node.sample(DeviceSample(utilization_gpu=0.5001, memory_used_bytes=GIB + 1))
    fleet.tick()
    change = fleet.change()
    assert (change.nodes, change.devices.row, change.uses.node) == ([], [], [])
    assert (change.device_details.row, change.device_states.row, change.host_states.row) == ([], [], [])
    assert change.hosts.row == [0]  # contact moved


def test_unknown_stays_unknown_in_the_stream(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    node = speaker("n1")
    node.describe(gpu(0))
    node.sample(DeviceSample())
    fleet.tick()
    devices = fleet.snapshot().devices
    assert devices.utilization_gpu == [None]
    assert devices.memory_used_mebibytes == [None]


def test_a_newcomer_is_not_told_of_a_device_what_was_true_of_another(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    shrinking, growing = speaker("a"), speaker("b")
    shrinking.describe(gpu(0), gpu(1))
    shrinking.sample(*[DeviceSample(utilization_gpu=0.0, memory_used_bytes=0)] * 2)
    fleet.tick()
    assert fleet.change().device_states.state == ["free", "free"]
    shrinking.describe()
    shrinking.sample()
    for uuid in ("GPU-0", "GPU-1"):
        settle(fleet, "a", uuid, "forget")
    growing.describe(gpu(8), gpu(9))  # into the rows that the other one left
    growing.sample(*[DeviceSample(utilization_gpu=0.9)] * 2)
    assert fleet.snapshot().device_states.state == []
    fleet.tick()
    assert fleet.change().device_states.state == ["busy", "busy"]
    assert fleet.snapshot().device_states.state == ["busy", "busy"]


def test_who_looks_first_is_told_the_same_as_those_who_always_did(
    fleet: Fleet, speaker: Callable[[str], Speaker], clock: ManualClock
) -> None:
    node = speaker("a")
    table = ((Process(pid=1, user="user01"),), (ProcessUse(process=0, device=0),))
    node.describe(gpu(0), processes=table[0], uses=table[1])
    node.sample(DeviceSample(utilization_gpu=0.5))
    for _ in range(3):  # nobody looks
        clock.advance(1)
        fleet.tick()
    viewer = Viewer()
    viewer.take(fleet.snapshot())
    assert [process["user"] for process in viewer.nodes[0]["processes"]] == ["user01"]
    assert [*viewer.tables["uses"]] == [(0, 0)]
    clock.advance(1)
    fleet.tick()
    change = fleet.change()
    assert (change.nodes, change.uses.node) == ([], [])
    viewer.take(change)
    # Gone and back within a tick, in the same row: nothing of before may be left.
    fleet.remove_node("a")
    newcomer = Viewer()
    newcomer.take(fleet.snapshot())
    assert (newcomer.nodes, newcomer.tables["uses"]) == ({}, {})
    node = speaker("a")
    node.describe(gpu(0), processes=(Process(pid=2, user="user02"),), uses=table[1])
    node.sample(DeviceSample(utilization_gpu=0.5))
    fleet.tick()
    viewer.take(fleet.change())
    newcomer.take(fleet.snapshot())
    assert newcomer.tables == viewer.tables
    assert newcomer.nodes == viewer.nodes
    assert [process["user"] for process in viewer.nodes[0]["processes"]] == ["user02"]


def test_what_the_hub_says_of_a_node_is_never_an_older_word(
    fleet: Fleet, speaker: Callable[[str], Speaker]
) -> None:
    node = speaker("a")
    node.describe(gpu(0))
    fleet.tick()
    assert fleet.snapshot().nodes[0].notes == ()
    fleet.note("a", "contact", Problem(code="unreachable", message="no route to it"))
    assert [note.message for note in fleet.snapshot().nodes[0].notes] == ["no route to it"]
    node.describe(gpu(0), gpu(1))
    node.sample(*[DeviceSample()] * 2)
    inventory = fleet.snapshot().nodes[0]
    assert (len(inventory.devices), inventory.notes) == (2, ())
