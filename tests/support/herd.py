"""A clock that the test moves, and a node that speaks real frames without a socket."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.node import Run
from gpuherd.model.device_memory import GpuAction
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Disk, HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Sample
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import FactsFrame, Hello, TableFrame
from gpuherd.wire.matrix import LAYOUT, pack_numbers
from gpuherd.wire.reports import sample_to_frame

GIB = 2**30


class ManualClock:
    """A clock that moves when told; the wall may jump on its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall_offset = 1_790_000_000.0

    def wall(self) -> float:
        return self.now + self.wall_offset

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def gpu(index: int, **changes: object) -> DeviceFacts:
    facts = DeviceFacts(
        uuid=f"GPU-{index}", index=index, name="NVIDIA A100-SXM4-80GB", memory_total_bytes=80 * GIB
    )
    return structs.replace(facts, **changes)


IDLE = DeviceSample(utilization_gpu=0.0, memory_used_bytes=GIB // 2, temperature_celsius=30.0)
WORKING = DeviceSample(utilization_gpu=0.9, memory_used_bytes=40 * GIB, temperature_celsius=60.0)
HOLDING = DeviceSample(utilization_gpu=0.0, memory_used_bytes=40 * GIB, temperature_celsius=35.0)


class Speaker:
    """A node's side of the exchange, without a socket."""

    def __init__(self, fleet: Fleet, clock: ManualClock, node_id: str, boot_id: str = "boot-1") -> None:
        self.fleet, self.clock, self.node_id, self.boot_id = fleet, clock, node_id, boot_id
        self.seq = 0
        self.revision = 0
        self.facts = NodeFacts(host=HostFacts(hostname=node_id))
        self.table = ProcessTable()
        self.skew = 0.0
        self.run = self.connect()

    def connect(self, *, live_from_seq: int = 0, dropped: int = 0, interval_seconds: float = 1.0) -> Run:
        hello = Hello(
            boot_id=self.boot_id,
            layout=LAYOUT,
            time=self.clock.wall(),
            interval_seconds=interval_seconds,
            live_from_seq=live_from_seq,
            dropped_frames=dropped,
        )
        self.run = self.fleet.open_run(self.node_id, hello)
        return self.run

    def describe(
        self,
        *devices: DeviceFacts,
        processes: tuple[Process, ...] = (),
        uses: tuple[ProcessUse, ...] = (),
        host: Mapping[str, object] | None = None,
    ) -> None:
        """``host``: more of its facts."""
        facts = HostFacts(hostname=self.node_id, disks=(Disk(mount="/", total_bytes=100 * GIB),))
        host_facts = structs.replace(facts, **(host or {}))
        self.facts = NodeFacts(host=host_facts, devices=devices)
        self.revision += 1
        self.send_facts()
        self.run_table(processes, uses)

    def send_facts(self) -> None:
        frame = FactsFrame(seq=self.next_seq(), revision=self.revision, facts=self.facts)
        self.run.accept(frame, encode(frame))

    def run_table(self, processes: tuple[Process, ...] = (), uses: tuple[ProcessUse, ...] = ()) -> None:
        self.table = ProcessTable(processes=processes, uses=uses)
        self.revision += 1
        self.table_revision = self.revision
        frame = TableFrame(
            seq=self.next_seq(), revision=self.revision, facts_revision=self.facts_revision, table=self.table
        )
        self.run.accept(frame, encode(frame))

    @property
    def facts_revision(self) -> int:
        return self.run.facts_revision

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def sample(
        self,
        *devices: DeviceSample,
        problems: tuple[Problem, ...] = (),
        seq: int | None = None,
        interval_seconds: float | None = None,
    ) -> None:
        sample = Sample(
            time=self.clock.wall() + self.skew,
            host=HostSample(cpu_ratio=0.25, memory_used_bytes=8 * GIB),
            disks_used_bytes=(50 * GIB,) * len(self.facts.host.disks),
            devices=devices,
            processes=tuple(ProcessSample(cpu_cores=1.0, memory_bytes=GIB) for _ in self.table.processes),
            uses=tuple(UseSample(gpu_memory_bytes=10 * GIB) for _ in self.table.uses),
            problems=problems,
        )
        frame = sample_to_frame(
            sample,
            seq=self.next_seq() if seq is None else seq,
            facts_revision=self.run.facts_revision,
            table_revision=self.run.table_revision,
        )
        frame = structs.replace(frame, interval_seconds=interval_seconds)
        columns = self.run.hello.layout.devices
        if columns != LAYOUT.devices:  # as an agent of another version would send it
            cells = [getattr(device, column) for device in devices for column in columns]
            frame = structs.replace(frame, devices=pack_numbers(cells))
        self.run.accept(frame, encode(frame))


def settle(fleet: Fleet, node_id: str, uuid: str, action: GpuAction) -> list[str] | None:
    """Say something of a GPU as an admin does; give the faults that were acknowledged, None for an unknown GPU."""
    plan = fleet.memory.plan_forget if action == "forget" else fleet.plan_acknowledge
    changes = plan(node_id, uuid)
    if changes is None:
        return None
    fleet.settle(node_id, changes)
    fleet.memory.put_back(
        structs.replace(changes, notes=())
    )  # for tests that take what is written from there
    return [fault.message for fault in changes.faults.values() if fault is not None]
