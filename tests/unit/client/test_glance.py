"""A herd made of a glance is shown as the whole herd is: the same lines, for every privacy class."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from gpuherd.cli import free, users
from gpuherd.cli.herd_lines import brief_lines
from gpuherd.cli.showing import Screen
from gpuherd.cli.status import status_lines
from gpuherd.client.errors import HubSilent
from gpuherd.client.glance import Glance
from gpuherd.client.herd_views import Herd
from gpuherd.client.hub import HubClient
from gpuherd.client.line import HubLine, HubUrl
from gpuherd.client.wanted import Wish
from gpuherd.fleet.fleet import Fleet
from gpuherd.model.bookings import DeviceBookingFacts, DeviceRef
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.people import PrivacyClass
from gpuherd.model.processes import Process, ProcessSample, ProcessUse, UseSample
from gpuherd.model.reports import Problem, Sample
from gpuherd.wire.frames import Hello
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wire.reports import sample_to_frame
from support.herd import GIB, HOLDING, IDLE, WORKING, ManualClock, Speaker, gpu

CLASSES: tuple[PrivacyClass, ...] = ("public", "member", "admin")
HOUR = 3600


def _slice(index: int, parent: str, uuid: str) -> DeviceFacts:
    return gpu(
        index, uuid=uuid, kind="slice", parent_uuid=parent, profile="1g.10gb", memory_total_bytes=2**33
    )


def _booking(number: int, node_id: str, uuid: str, starts: float, ends: float) -> DeviceBookingFacts:
    return DeviceBookingFacts(
        device=DeviceRef(node_id, uuid),
        booking_id=number,
        holder="Cleo",
        title="ablation",
        starts_at=int(starts),
        ends_at=int(ends),
        linux_names=frozenset({"cleo"}),
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fleet(clock: ManualClock) -> Fleet:
    """Every state, slices, several users, an old agent, a node that never reported."""
    fleet = Fleet(clock=clock)
    for node_id in ("n10", "n2", "n3", "old", "silent", "never"):
        fleet.add_node(node_id, node_id)
    silent = Speaker(fleet, clock, "silent")
    silent.describe(gpu(0), processes=(Process(pid=9, user="eve"),), uses=(ProcessUse(process=0, device=0),))
    silent.sample(WORKING)
    fleet.tick()
    clock.advance(2 * HOUR)
    mixed = Speaker(fleet, clock, "n2")
    mixed.describe(
        *(gpu(index) for index in range(4)),
        gpu(4, is_partitioned=True),
        _slice(0, "GPU-4", "MIG-0"),
        _slice(1, "GPU-4", "MIG-1"),
        _slice(2, "GPU-4", "MIG-2"),
        processes=(
            Process(pid=1, user="ada", command="python a.py", started_at=clock.wall() - 3 * HOUR),
            Process(pid=2, user="bob", started_at=clock.wall() - 5 * HOUR),
            Process(pid=3, user=None),
            Process(pid=4, user="gdm"),
        ),
        uses=(
            ProcessUse(process=3, device=0, kind="graphics"),
            ProcessUse(process=1, device=1),
            ProcessUse(process=0, device=0),
            ProcessUse(process=1, device=0),
            ProcessUse(process=2, device=6),
        ),
    )
    lost = Problem(code="gpu_lost", message="it has fallen off", device_uuid="GPU-3", is_fault=True)
    blind = Problem(code="host_failed", message="the disks cannot be read")
    unknown = DeviceSample(temperature_celsius=41.0)
    mixed.sample(WORKING, WORKING, IDLE, WORKING, WORKING, IDLE, WORKING, unknown, problems=(lost, blind))
    booked = Speaker(fleet, clock, "n10")
    booked.describe(gpu(0, name="NVIDIA L40S"), gpu(1))
    booked.sample(IDLE, HOLDING)
    # An older agent, whose columns stand in another order.
    old = Speaker(fleet, clock, "old")
    layout = structs.replace(LAYOUT, uses=LAYOUT.uses[::-1])
    old.run = fleet.open_run(
        "old", Hello(boot_id="b", layout=layout, time=clock.wall(), interval_seconds=1.0)
    )
    old.describe(gpu(0), processes=(Process(pid=5, user="ada"),), uses=(ProcessUse(process=0, device=0),))
    sample = Sample(
        time=clock.wall(),
        devices=(WORKING,),
        disks_used_bytes=(1,),
        processes=(ProcessSample(),),
        uses=(UseSample(gpu_memory_bytes=7 * GIB),),
    )
    frame = sample_to_frame(
        sample, seq=9, facts_revision=old.run.facts_revision, table_revision=old.run.table_revision
    )
    uses = np.frombuffer(frame.uses)[::-1].tobytes()
    old.run.accept(structs.replace(frame, uses=uses), b"")
    Speaker(fleet, clock, "n3").describe()
    now = clock.wall()
    fleet.set_bookings(
        [
            _booking(1, "n10", "GPU-0", now - HOUR, now + HOUR),
            _booking(2, "n10", "GPU-0", now + 2 * HOUR, now + 3 * HOUR),
            _booking(3, "n2", "GPU-2", now - 3 * HOUR, now - HOUR),
            _booking(4, "n2", "GPU-2", now + HOUR, now + 2 * HOUR),
        ]
    )
    fleet.tick()
    return fleet


def _whole(fleet: Fleet, privacy: PrivacyClass) -> Herd:
    face = fleet.face(privacy)
    view = fleet.frame(face, tuple(face.node(node) for node in fleet.nodes()))
    return msgspec.json.decode(msgspec.json.encode(view), type=Herd)


def _glanced(fleet: Fleet, privacy: PrivacyClass) -> Herd:
    return msgspec.json.decode(msgspec.json.encode(fleet.glance(privacy)), type=Glance).herd()


def _free_lines(herd: Herd) -> list[str]:
    units = [*herd.units()]
    available = [pair for pair in units if pair[1].state == "free"]
    wish = Wish(count=100)
    return [
        *free._free_lines(herd, units, available, Screen()),
        *free._taken_lines(herd, units, wish, Screen()),
        str(free._told(herd, units, available, wish)),
    ]


FACES: dict[str, Callable[[Herd], list[str]]] = {
    "rows": lambda herd: status_lines(herd, Screen(width=200, height=0, colours=256)),
    "brief": lambda herd: brief_lines(herd, Screen()),
    "users": lambda herd: users._lines(herd, users.holders_of(herd), Screen()),
    "users as JSON": lambda herd: [str(holder.told(0)) for holder in users.holders_of(herd)],
    "free": _free_lines,
}


@pytest.mark.parametrize("privacy", CLASSES)
@pytest.mark.parametrize("face", FACES)
def test_a_glance_shows_what_the_whole_herd_shows(fleet: Fleet, privacy: PrivacyClass, face: str) -> None:
    whole, glanced = FACES[face](_whole(fleet, privacy)), FACES[face](_glanced(fleet, privacy))
    assert glanced == whole
    assert len("".join(whole)) > 100, "there is something to compare"


def test_it_goes_on_to_be_so(fleet: Fleet, clock: ManualClock) -> None:
    def check() -> None:
        for privacy in CLASSES:
            for face in FACES.values():
                assert face(_glanced(fleet, privacy)) == face(_whole(fleet, privacy))

    check()
    node = Speaker(fleet, clock, "n3", "boot-2")
    node.describe(gpu(0), processes=(Process(pid=1, user="dan"),), uses=(ProcessUse(process=0, device=0),))
    node.sample(WORKING)
    check()
    fleet.tick()
    check()
    node.run_table((Process(pid=2, user="fay"),), (ProcessUse(process=0, device=0),))
    node.sample(WORKING)
    fleet.remove_node("n2")
    fleet.add_node("n1", "n1")
    check()
    fleet.tick()
    check()
    assert [each.name for each in _glanced(fleet, "member").nodes] == [
        "n1",
        "n3",
        "n10",
        "never",
        "old",
        "silent",
    ]
    assert _glanced(fleet, "member").nodes[1].devices[0].users == ("fay",)
    node.sample(DeviceSample(utilization_gpu=1e300, power_watts=-5.0))  # not judged yet
    sample = _glanced(fleet, "member").nodes[1].devices[0].sample
    assert (sample.utilization_gpu, sample.power_watts) == (None, None)


def test_only_what_a_look_needs_is_in_it(fleet: Fleet) -> None:
    node = next(node for node in _glanced(fleet, "admin").nodes if node.id == "n2")
    assert [process.pid for process in node.devices[0].processes] == [1, 2], "those that compute"
    assert node.devices[0].processes[0].command is None
    assert [booking.phase for booking in node.devices[2].bookings] == ["next"]
    assert node.host is not None
    assert node.host.hostname == "n2"


@pytest.mark.parametrize(
    "break_it",
    [
        lambda told: told["devices"]["state"].pop(),
        lambda told: told["devices"]["model"].__setitem__(0, 99),
        lambda told: told["nodes"]["device_count"].__setitem__(0, 99),
        lambda told: told["nodes"]["device_count"].__setitem__(0, -1),
        lambda told: told["processes"]["user"].append("eve"),
        lambda told: told["devices"]["model"].__setitem__(0, -1),
        lambda told: told["processes"]["device"].__setitem__(0, 99),
        lambda told: told["bookings"][0].__setitem__("device", 99),
        lambda told: told["problems"][0].__setitem__("node", -1),
        lambda told: told["devices"]["memory_used_mebibytes"].__setitem__(0, 1e308),
        lambda told: told["nodes"].pop("id"),
        lambda told: told.pop("time"),
    ],
)
def test_columns_that_do_not_fit_are_no_herd(fleet: Fleet, break_it: Callable[[Any], object]) -> None:
    told = msgspec.json.decode(msgspec.json.encode(fleet.glance("member")))
    break_it(told)

    class Line(HubLine):
        def ask(self, *_: object, **__: object) -> bytes:
            return msgspec.json.encode(told)

    with pytest.raises(HubSilent, match=re.escape("not like a gpuherd hub of this version")):
        HubClient(Line(HubUrl.parse("http://127.0.0.1:1"))).glance()
