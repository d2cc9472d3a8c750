"""The herd at one moment, as ``GET /fleet`` or this machine alone tells it, put into the live stream's form."""

from __future__ import annotations

from collections import Counter

from gpuherd.client.herd_views import Gpu, Herd, Node
from gpuherd.client.live_messages import (
    BookingsTold,
    GpuColumns,
    GpuDetailColumns,
    GpuInventory,
    GpuStateColumns,
    HerdChange,
    HostColumns,
    HostStateColumns,
    Inventory,
    ProcessFacts,
    Totals,
    Use,
    UseColumns,
)

__all__ = ["Pictures"]

MEBIBYTE = 2.0**20
MEGAHERTZ = 1e6


class Pictures:
    """Turns one picture after the other into snapshots in which everything keeps its row."""

    def __init__(self) -> None:
        self._tick = 0
        self._node_rows: dict[str, int] = {}
        self._gpu_rows: dict[tuple[str, str], int] = {}

    def snapshot(self, herd: Herd, every_seconds: float) -> HerdChange:
        """Give a picture as a message; the next one is to be expected in ``every_seconds``."""
        self._tick += 1
        self._give_rows(herd)
        nodes = [(self._node_rows[node.id], node) for node in herd.nodes]
        gpus = [(self._gpu_rows[node.id, gpu.uuid], gpu) for node in herd.nodes for gpu in node.devices]
        return HerdChange(
            tick=self._tick,
            time=herd.time,
            tick_seconds=every_seconds,
            notices=herd.notices,
            totals=Totals(
                nodes=dict(Counter(node.state for node in herd.nodes)),
                nodes_in_fault=sum(node.is_in_fault for node in herd.nodes),
                devices=dict(Counter(gpu.state for _, gpu in herd.units())),
                slices=dict(Counter(gpu.state for _, gpu in herd.units() if gpu.facts.kind == "slice")),
            ),
            nodes=[self._inventory(row, place, node) for place, (row, node) in enumerate(nodes)],
            devices=_numbers(gpus),
            device_details=_details(gpus),
            device_states=GpuStateColumns(
                row=[row for row, _ in gpus],
                state=[gpu.state for _, gpu in gpus],
                reason=[gpu.availability.reason for _, gpu in gpus],
                since=[gpu.availability.since for _, gpu in gpus],
            ),
            device_bookings=[
                BookingsTold(row=row, bookings=gpu.bookings) for row, gpu in gpus if gpu.bookings
            ],
            hosts=_hosts(nodes),
            host_states=_host_states(nodes),
            uses=_uses(nodes),
        )

    def _give_rows(self, herd: Herd) -> None:
        """Number what is new; all anew once most of the numbers are of what is gone."""
        gpus = sum(len(node.devices) for node in herd.nodes)
        if len(self._gpu_rows) > 2 * gpus + 64 or len(self._node_rows) > 2 * len(herd.nodes) + 64:
            self._gpu_rows.clear()
            self._node_rows.clear()
        for node in herd.nodes:
            self._node_rows.setdefault(node.id, len(self._node_rows))
            for gpu in node.devices:
                self._gpu_rows.setdefault((node.id, gpu.uuid), len(self._gpu_rows))

    def _inventory(self, row: int, place: int, node: Node) -> Inventory:
        processes: dict[tuple[int, float | None], int] = {}
        facts: list[ProcessFacts] = []
        uses: list[Use] = []
        for position, gpu in enumerate(node.devices):
            for process in gpu.processes:
                key = (process.pid, process.started_at)
                if key not in processes:
                    processes[key] = len(facts)
                    facts.append(
                        ProcessFacts(
                            pid=process.pid,
                            started_at=process.started_at,
                            user=process.user,
                            command=process.command,
                            container=process.container,
                            job=process.job,
                            is_gone=process.is_gone,
                        )
                    )
                uses.append(Use(process=processes[key], device=position, kind=process.kind))
        return Inventory(
            row=row,
            id=node.id,
            name=node.name,
            way=node.way,
            place=place,
            host=node.host,
            devices=tuple(
                GpuInventory(
                    row=self._gpu_rows[node.id, gpu.uuid], short_name=gpu.short_name, facts=gpu.facts
                )
                for gpu in node.devices
            ),
            processes=tuple(facts),
            uses=tuple(uses),
            problems=node.problems,
            notes=node.notes,
        )


def _numbers(gpus: list[tuple[int, Gpu]]) -> GpuColumns:
    samples = [gpu.sample for _, gpu in gpus]
    return GpuColumns(
        row=[row for row, _ in gpus],
        utilization_gpu=[sample.utilization_gpu for sample in samples],
        utilization_memory=[sample.utilization_memory for sample in samples],
        memory_used_mebibytes=[_per(sample.memory_used_bytes, MEBIBYTE) for sample in samples],
        temperature_celsius=[sample.temperature_celsius for sample in samples],
        power_watts=[sample.power_watts for sample in samples],
        fan_ratio=[sample.fan_ratio for sample in samples],
        clock_sm_megahertz=[_per(sample.clock_sm_hertz, MEGAHERTZ) for sample in samples],
    )


def _details(gpus: list[tuple[int, Gpu]]) -> GpuDetailColumns:
    samples = [gpu.sample for _, gpu in gpus]
    return GpuDetailColumns(
        row=[row for row, _ in gpus],
        power_limit_watts=[sample.power_limit_watts for sample in samples],
        performance_state=[sample.performance_state for sample in samples],
        throttle_reasons=[sample.throttle_reasons for sample in samples],
        ecc_uncorrected=[sample.ecc_uncorrected for sample in samples],
    )


def _hosts(nodes: list[tuple[int, Node]]) -> HostColumns:
    samples = [node.host_sample for _, node in nodes]
    return HostColumns(
        row=[row for row, _ in nodes],
        received_at=[node.received_at for _, node in nodes],
        cpu_ratio=[sample.cpu_ratio for sample in samples],
        load_1m=[sample.load_1m for sample in samples],
        memory_used_mebibytes=[_per(sample.memory_used_bytes, MEBIBYTE) for sample in samples],
    )


def _host_states(nodes: list[tuple[int, Node]]) -> HostStateColumns:
    return HostStateColumns(
        row=[row for row, _ in nodes],
        state=[node.state for _, node in nodes],
        reason=[node.reason for _, node in nodes],
        interval_seconds=[node.interval_seconds for _, node in nodes],
        uptime_seconds=[node.host_sample.uptime_seconds for _, node in nodes],
        clock_skew_seconds=[node.clock_skew_seconds for _, node in nodes],
    )


def _uses(nodes: list[tuple[int, Node]]) -> UseColumns:
    told = [
        (row, position, process)
        for row, node in nodes
        for position, process in enumerate(process for gpu in node.devices for process in gpu.processes)
    ]
    return UseColumns(
        node=[row for row, _, _ in told],
        position=[position for _, position, _ in told],
        gpu_memory_bytes=[process.gpu_memory_bytes for _, _, process in told],
        utilization_sm=[process.utilization_sm for _, _, process in told],
        cpu_cores=[process.cpu_cores for _, _, process in told],
        memory_bytes=[process.memory_bytes for _, _, process in told],
    )


def _per(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
