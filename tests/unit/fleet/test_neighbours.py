"""Whatever one node sends, everyone still sees the herd, and the hub's memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import structs

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.node import Run
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.errors import Refused
from gpuherd.model.hosts import Disk, HostFacts
from gpuherd.model.processes import Process, ProcessTable, ProcessUse
from gpuherd.model.reports import NodeFacts
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import FactsFrame, Hello, Layout, SampleFrame, TableFrame
from gpuherd.wire.matrix import CELL_BYTES, LAYOUT
from support.herd import IDLE, Speaker, gpu

TWO_GPUS = (gpu(0), gpu(1))


def table_of(count: int) -> ProcessTable:
    return ProcessTable(
        processes=tuple(Process(pid=pid) for pid in range(1, count + 1)),
        uses=tuple(ProcessUse(process=position, device=0) for position in range(count)),
    )


class Liar:
    """A node that fits each sample to what it has just said, whatever it said before."""

    def __init__(self, fleet: Fleet) -> None:
        fleet.add_node("liar", "liar")
        self.fleet = fleet
        self.seq = 0
        self.run = self.connect(LAYOUT)

    def connect(self, layout: Layout) -> Run:
        self.layout = layout
        hello = Hello(boot_id="boot", layout=layout, time=0, interval_seconds=1)
        self.run = self.fleet.open_run("liar", hello)
        return self.run

    def say(self, devices: tuple[DeviceFacts, ...], table: ProcessTable, revision: int = 1) -> None:
        facts = NodeFacts(host=HostFacts(hostname="liar"), devices=devices)

        def cells(names: tuple[str, ...], rows: int) -> bytes:
            return bytes(CELL_BYTES * len(names) * rows)

        frames = (
            FactsFrame(seq=self.seq, revision=revision, facts=facts),
            TableFrame(seq=self.seq + 1, revision=revision, facts_revision=revision, table=table),
            SampleFrame(
                seq=self.seq + 2,
                time=0,
                facts_revision=revision,
                table_revision=revision,
                host=cells(self.layout.host, 1),
                devices=cells(self.layout.devices, len(devices)),
                processes=cells(self.layout.processes, len(table.processes)),
                uses=cells(self.layout.uses, len(table.uses)),
            ),
        )
        self.seq += len(frames)
        for frame in frames:
            self.run.accept(frame, encode(frame))


@pytest.fixture
def liar(fleet: Fleet, speaker: Callable[[str], Speaker]) -> Liar:
    honest = speaker("honest")
    honest.describe(gpu(7))
    honest.sample(IDLE)
    return Liar(fleet)


def assert_everyone_sees(fleet: Fleet, *, liar_devices: int, liar_uses: int) -> None:
    fleet.tick()
    change = fleet.change()
    assert {node.id for node in change.nodes} == {"honest", "liar"}
    inventory = next(node for node in change.nodes if node.id == "liar")
    assert (len(inventory.devices), len(inventory.uses)) == (liar_devices, liar_uses)
    assert change.uses.node.count(inventory.row) == liar_uses
    for face in (change, fleet.snapshot(), fleet.view(), fleet.users(), fleet.totals()):
        assert msgspec.json.encode(face)


@pytest.mark.parametrize(("devices", "uses"), [(TWO_GPUS[:1], 3), (TWO_GPUS, 1), (TWO_GPUS, 3)])
def test_a_revision_may_be_used_again_for_other_content(
    fleet: Fleet, liar: Liar, devices: tuple[DeviceFacts, ...], uses: int
) -> None:
    liar.say(TWO_GPUS[:1], table_of(1))
    liar.connect(LAYOUT)
    liar.say(devices, table_of(uses))
    assert_everyone_sees(fleet, liar_devices=len(devices), liar_uses=uses)


@pytest.mark.parametrize(
    "layout",
    [
        structs.replace(LAYOUT, uses=("utilization_sm", "new", "newer")),
        structs.replace(LAYOUT, processes=(), uses=()),
        Layout(host=(), devices=(), processes=(), uses=()),
    ],
    ids=["other columns", "no process columns", "no columns"],
)
def test_a_run_may_go_on_with_another_layout(fleet: Fleet, liar: Liar, layout: Layout) -> None:
    liar.say(TWO_GPUS, table_of(2))
    liar.connect(layout)
    liar.say(TWO_GPUS, table_of(2))
    assert_everyone_sees(fleet, liar_devices=2, liar_uses=2)


def test_a_node_that_keeps_changing_its_size_does_not_use_rows_up(fleet: Fleet, liar: Liar) -> None:
    devices = tuple(gpu(index) for index in range(16))
    for revision in range(16 * 20):
        liar.say(devices[: 16 - revision % 16], ProcessTable(), revision)
    rows = {device.row for node in fleet.snapshot().nodes for device in node.devices}
    assert len(rows) == 1 + 16, "those that are missing are listed"
    liar.say(devices, ProcessTable(), 16 * 20)
    rows = {device.row for node in fleet.snapshot().nodes for device in node.devices}
    assert len(rows) == 1 + 16
    assert max(rows) < 64


def test_a_node_that_keeps_changing_its_models_is_counted_right(fleet: Fleet, liar: Liar) -> None:
    for revision in range(200):
        liar.say(tuple(gpu(i, name=f"X{revision} {i}") for i in range(2)), ProcessTable(), revision)
    fleet.tick()
    totals = fleet.totals()
    assert [model.short_name for model in totals.models] == ["A100 80GB", "X199 0", "X199 1"]
    assert [sum(model.counts.values()) for model in totals.models] == [1, 1, 1]
    assert len(fleet._models) <= 200  # a leak has no other face


def test_more_disks_than_a_report_may_have_are_refused(fleet: Fleet, liar: Liar) -> None:
    disks = tuple(Disk(mount=f"/{number}", total_bytes=1) for number in range(65))
    facts = FactsFrame(seq=0, revision=1, facts=NodeFacts(host=HostFacts(hostname="liar", disks=disks)))
    with pytest.raises(Refused, match="65 disks exceed the limit of 64"):
        liar.run.accept(facts, encode(facts))
    assert liar.run.facts is None
