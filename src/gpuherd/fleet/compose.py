"""From rows to views: numbers become named values again, NaN becomes unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np
from msgspec import Struct

from gpuherd.fleet.availability import FAULT, LIVE_NODE, REASONS, Reason
from gpuherd.fleet.booked import BookedDevices
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.device_memory import clock_time, described
from gpuherd.fleet.evidence import not_checked
from gpuherd.fleet.names import Names, natural_key
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import Array, DeviceRows, NodeRows
from gpuherd.fleet.users import Holding, users_of
from gpuherd.fleet.views import (
    DEVICE_STATES,
    NODE_STATES,
    Availability,
    DevicePlace,
    DeviceState,
    DeviceView,
    ModelTotals,
    NodeState,
    NodeView,
    ProcessView,
    Totals,
    UserView,
)
from gpuherd.model.columns import COLUMNS, Column
from gpuherd.model.device_memory import KnownDevice
from gpuherd.model.devices import DeviceFacts, DeviceSample, in_order
from gpuherd.model.hosts import HostSample
from gpuherd.model.processes import ProcessSample, UseSample
from gpuherd.wire.matrix import unpack, unpack_numbers

__all__ = ["NODE_REASONS", "Composer", "node_reason"]

S = TypeVar("S", bound=Struct)
NODE_REASONS: dict[NodeState, str] = {
    "live": "reports arrive on time",
    "stale": "its last report is late",
    "offline": "it has stopped reporting",
    "never": "known, but never reported",
}


def node_reason(node: Node, state: NodeState) -> str:
    """Say why a node is in its state: what kept us from hearing of it, if we know."""
    contact = node.notes.get("contact")
    return NODE_REASONS[state] if contact is None or state == "live" else contact.message


def _sample(cells: list[float], kind: type[S], columns: tuple[Column, ...]) -> S:
    values: dict[str, float | int] = {}
    for value, column in zip(cells, columns, strict=True):
        if column.low <= value <= column.high:  # false for NaN
            values[column.name] = int(value) if column.is_integer else value
    return kind(**values)


class Composer:
    """Builds what is shown of nodes, devices and users from the rows, at the moment it is asked."""

    def __init__(
        self,
        rows: DeviceRows,
        node_rows: NodeRows,
        nodes: Mapping[str, Node],
        models: Mapping[tuple[str, int | None], int],
        clock: Clock,
        names: Names,
        booked: BookedDevices,
    ) -> None:
        self._rows = rows
        self._node_rows = node_rows
        self._nodes = nodes
        self._models = models
        self._clock = clock
        self._names = names
        self._booked = booked

    def name(self, node: Node) -> str:
        """Give a node's shown name."""
        return self._names.node(node.id, node.name, node.hostname)

    def place(self, node: Node) -> int:
        """Give the number by which nodes are sorted before their names are looked at."""
        return self._names.place(node.id, node.name, node.list_position)

    def gpu_name(self, facts: DeviceFacts) -> str:
        """Give a device's short name."""
        return self._names.gpu(facts)

    def sorted_nodes(self) -> list[Node]:
        """Give every node in the order in which people see them."""
        return sorted(self._nodes.values(), key=lambda node: (self.place(node), natural_key(self.name(node))))

    def wall_time(self, monotonic: float) -> float | None:
        """Show a monotonic time as wall time of now, so that a jump of the clock moves all times alike."""
        if not np.isfinite(monotonic):
            return None
        return round(self._clock.wall() - (self._clock.monotonic() - float(monotonic)), 3)

    def reason(self, row: int, node: Node) -> str:
        """Say why a device is in its state; a fault is told in the node's own words."""
        code = Reason(int(self._rows.reason[row]))
        if code is Reason.FAULT:
            facts = node.devices[row - node.start]
            concerned = {facts.uuid, facts.parent_uuid, None}
            told = [p.message for p in node.problems if p.is_fault and p.device_uuid in concerned]
            return told[0] if told else REASONS[code]
        if code is Reason.MISSING:
            return self._missing(node.missing[row - node.start - node.reported_count])
        return REASONS[code]

    def _missing(self, device: KnownDevice) -> str:
        now = self._clock.wall()
        since = clock_time(device.missing_since or now, now)
        return (
            f"missing since {since}: {described(device.facts)}; look for it in the machine, or if it was taken out, "
            "forget it"
        )

    def reasons(self, rows: Array, nodes: Iterable[Node]) -> list[str]:
        """Say of many devices at once why they are in their states; ``nodes`` are those that they are of."""
        codes = self._rows.reason[rows]
        told = [REASONS[code] for code in codes.tolist()]
        faulty = np.flatnonzero((codes == Reason.FAULT) | (codes == Reason.MISSING)).tolist()
        by_row = {node.row: node for node in nodes} if faulty else {}
        for place in faulty:
            row = int(rows[place])
            told[place] = self.reason(row, by_row[int(self._rows.node[row])])
        return told

    def node(self, node: Node) -> NodeView:
        """Build one node with all its devices and processes."""
        row = node.row
        state = NODE_STATES[self._node_rows.state[row]]
        received = float(self._node_rows.received[row])
        interval, skew = float(self._node_rows.interval[row]), float(self._node_rows.skew[row])
        processes = self._processes(node)
        return NodeView(
            id=node.id,
            name=self.name(node),
            way=node.way,
            state=state,
            reason=node_reason(node, state),
            received_at=self.wall_time(received),
            age_seconds=round(self._clock.monotonic() - received, 3) if np.isfinite(received) else None,
            interval_seconds=interval if np.isfinite(interval) else None,
            clock_skew_seconds=round(skew, 3) if np.isfinite(skew) else None,
            host=None if node.facts is None else node.facts.host,
            host_sample=_sample(self._node_rows.values[row].tolist(), HostSample, COLUMNS["host"]),
            disks_used_bytes=tuple(
                None if used is None or used < 0 else int(used) for used in unpack_numbers(node.disks)
            ),
            devices=tuple(
                self._device(node, offset, tuple(processes.get(offset, ())))
                for offset in in_order(node.devices)
            ),
            problems=node.problems,
            notes=tuple(node.notes.values()),
        )

    def _device(self, node: Node, offset: int, processes: tuple[ProcessView, ...]) -> DeviceView:
        row, facts = node.start + offset, node.devices[offset]
        sample = _sample(self._rows.values[row].tolist(), DeviceSample, COLUMNS["devices"])
        return DeviceView(
            node_id=node.id,
            short_name=self._names.gpu(facts),
            facts=facts,
            sample=sample,
            availability=Availability(
                state=DEVICE_STATES[self._rows.state[row]],
                reason=self.reason(row, node),
                since=self.wall_time(float(self._rows.since[row])),
                not_checked=not_checked(facts, sample),
            ),
            processes=processes,
            bookings=self._booked.shown.get(row, ()),
            missing_since=node.missing_since(offset),
        )

    def _processes(self, node: Node) -> dict[int, list[ProcessView]]:
        table = node.table
        hosts = unpack(
            node.processes, node.layout.processes, ProcessSample, COLUMNS["processes"], len(table.processes)
        )
        uses = unpack(node.uses, node.layout.uses, UseSample, COLUMNS["uses"], len(table.uses))
        by_device: dict[int, list[ProcessView]] = {}
        for use, use_sample in zip(table.uses, uses, strict=True):
            process, host_sample = table.processes[use.process], hosts[use.process]
            by_device.setdefault(use.device, []).append(
                ProcessView(
                    pid=process.pid,
                    kind=use.kind,
                    user=process.user,
                    command=process.command,
                    started_at=process.started_at,
                    container=process.container,
                    job=process.job,
                    is_gone=process.is_gone,
                    gpu_memory_bytes=use_sample.gpu_memory_bytes,
                    utilization_sm=use_sample.utilization_sm,
                    cpu_cores=host_sample.cpu_cores,
                    memory_bytes=host_sample.memory_bytes,
                )
            )
        return by_device

    def users(self, called: Callable[[str | None], str | None]) -> tuple[UserView, ...]:
        """Gather who holds what over the whole herd. ``called`` gives what a user is called."""
        holdings = []
        for node in self._nodes.values():
            uses = unpack(node.uses, node.layout.uses, UseSample, COLUMNS["uses"], len(node.table.uses))
            for use, sample in zip(node.table.uses, uses, strict=True):
                process, device = node.table.processes[use.process], node.devices[use.device]
                holdings.append(
                    Holding(
                        user=called(process.user),
                        process=(node.id, process.pid),
                        place=DevicePlace(
                            node_id=node.id,
                            index=device.index,
                            uuid=device.uuid,
                            state=DEVICE_STATES[self._rows.state[node.start + use.device]],
                        ),
                        gpu_memory_bytes=sample.gpu_memory_bytes or 0,
                    )
                )
        return users_of(holdings)

    def totals(self) -> Totals:
        """Count nodes and devices by state, and devices by model; partitioned GPUs count through their slices."""
        rows, states = self._rows, len(DEVICE_STATES)
        counted = (rows.node >= 0) & ~rows.is_partitioned & ~rows.is_extra
        table = np.bincount(
            rows.model[counted] * states + rows.state[counted], minlength=len(self._models) * states
        ).reshape(-1, states)
        models = []
        for (name, memory), number in self._models.items():
            counts = table[number]
            if counts.any():
                models.append(ModelTotals(short_name=name, memory_total_bytes=memory, counts=_named(counts)))
        models.sort(key=lambda model: (-sum(model.counts.values()), model.short_name))
        used_nodes = self._node_rows.state[self._node_rows.is_used]
        node_counts = np.bincount(used_nodes, minlength=len(NODE_STATES)).tolist()
        return Totals(
            nodes=dict(zip(NODE_STATES, node_counts, strict=True)),
            nodes_in_fault=self._nodes_in_fault(counted),
            devices=_named(table.sum(axis=0)),
            slices=_named(np.bincount(rows.state[counted & rows.is_slice], minlength=states)),
            models=tuple(models),
        )

    def _nodes_in_fault(self, counted: Array) -> int:
        rows, nodes = self._rows, self._node_rows
        devices = np.bincount(rows.node[counted], minlength=nodes.capacity)
        faulty = np.bincount(rows.node[counted & (rows.state == FAULT)], minlength=nodes.capacity)
        is_bare_fault = nodes.is_faulty & (devices == 0)
        is_in_fault = is_bare_fault | ((devices > 0) & (devices == faulty))
        return int(np.count_nonzero(is_in_fault & (nodes.state == LIVE_NODE)))


def _named(counts: Array) -> dict[DeviceState, int]:
    return dict(zip(DEVICE_STATES, counts.tolist(), strict=True))
