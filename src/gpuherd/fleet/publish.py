"""The live stream's content: what viewers have been told, and what to tell them next.

Values are rounded to what a person can see, so that noise below that is not sent. The work is done once per tick
for all viewers, and only while there are any.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuherd.fleet.changes import DeviceColumns, FleetChange, HostColumns, UseColumns
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.compose import Composer, node_reason
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DEVICE_COLUMN, HOST_COLUMN, Array, DeviceRows, NodeRows
from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES, DeviceInventory, FleetNotice, NodeInventory
from gpuherd.model.columns import COLUMNS
from gpuherd.wire.matrix import unpack_numbers

__all__ = ["Publication"]

Numbers = list[float | None]

DEVICE_STREAM = (
    "utilization_gpu",
    "utilization_memory",
    "memory_used_bytes",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "fan_ratio",
    "clock_sm_hertz",
    "performance_state",
    "throttle_reasons",
    "ecc_uncorrected",
)
HOST_STREAM = ("cpu_ratio", "load_1m", "memory_used_bytes", "swap_used_bytes", "uptime_seconds")
USE_STREAM = ("gpu_memory_bytes", "utilization_sm")
PROCESS_STREAM = ("cpu_cores", "memory_bytes")
_STEP = {"ratio": 0.01, "bytes": 2.0**20, "hertz": 1e6, "seconds": 60.0, "cores": 0.05}
"""What a viewer can tell apart, by unit; all else is rounded to whole numbers."""


def _steps(part: str, names: tuple[str, ...]) -> Array:
    units = {column.name: column.unit for column in COLUMNS[part]}
    return np.array([_STEP.get(units[name], 1.0) for name in names])


def _rounded(values: Array, steps: Array) -> Array:
    rounded: Array = np.round(np.round(values / steps) * steps, 6)
    return rounded


def _numbers(values: Array) -> Numbers:
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124 - NaN is not itself


def _differs(new: Array, old: Array) -> Array:
    """Tell the rows in which any value differs; unknown equals unknown."""
    same = (new == old) | (np.isnan(new) & np.isnan(old))
    differs: Array = ~same.all(axis=1)
    return differs


class Publication:
    """What was last told to viewers."""

    def __init__(
        self,
        rows: DeviceRows,
        node_rows: NodeRows,
        nodes: Mapping[str, Node],
        composer: Composer,
        clock: Clock,
    ) -> None:
        self._rows = rows
        self._node_rows = node_rows
        self._nodes = nodes
        self._composer = composer
        self._clock = clock
        self._tick = -1
        self.notices: tuple[FleetNotice, ...] = ()
        self._stale_inventory: dict[str, Node] = {}
        self._moved: set[str] = set()
        self._removed: list[int] = []
        self._devices = np.empty((0, len(DEVICE_STREAM) + 3))
        self._hosts = np.empty((0, len(HOST_STREAM) + 4))
        self._uses: dict[str, Array] = {}
        self._disks: dict[str, bytes] = {}

    def inventory_changed(self, node: Node) -> None:
        """Remember that a node's facts, table or problems must be told again."""
        self._stale_inventory[node.id] = node

    def devices_moved(self, node: Node) -> None:
        """Remember that a node has other rows: what was told of them before was told of other devices."""
        self._moved.add(node.id)

    def node_removed(self, node: Node) -> None:
        """Remember that a node is gone."""
        self._stale_inventory.pop(node.id, None)
        self._uses.pop(node.id, None)
        self._disks.pop(node.id, None)
        self._moved.discard(node.id)
        self._removed.append(node.row)

    def snapshot(self, tick: int) -> FleetChange:
        """Tell everything, exactly as those know it who have followed all changes.

        Devices that have moved since are left out, hence unknown, until the next tick has judged them.
        """
        if self._tick != tick:
            self.change(tick)
        nodes = list(self._nodes.values())
        is_told = self._rows.node[: len(self._devices)] >= 0
        for node in nodes:
            if node.id in self._moved:
                is_told[node.start : node.start + node.count] = False
        used = np.flatnonzero(is_told)
        use_nodes = [(node, np.arange(len(self._uses[node.id]))) for node in nodes if node.id in self._uses]
        return self._message(
            tick, None, nodes, [], used, [node for node in nodes if self._is_told(node)], use_nodes
        )

    def _is_told(self, node: Node) -> bool:
        return node.row < len(self._hosts)

    def change(self, tick: int) -> FleetChange:
        """Tell what differs from what was told before, and take it as told."""
        devices, hosts = self._current_devices(), self._current_hosts()
        changed_rows = self._compare(devices, self._devices) & (self._rows.node >= 0)
        changed_hosts = self._compare(hosts, self._hosts)
        stale, self._stale_inventory = self._stale_inventory, {}
        removed, self._removed = self._removed, []
        self._moved.clear()
        told_before, self._tick = self._tick, tick
        self._devices, self._hosts = devices, hosts
        use_nodes, host_nodes = [], []
        for node in self._nodes.values():
            positions = self._changed_uses(node, told_again=node.id in stale)
            if positions.size:
                use_nodes.append((node, positions))
            if node.id in stale:
                changed_rows[node.start : node.start + node.count] = True
            if changed_hosts[node.row] or node.id in stale or self._disks.get(node.id) != node.disks:
                self._disks[node.id] = node.disks
                host_nodes.append(node)
        return self._message(
            tick,
            told_before,
            list(stale.values()),
            removed,
            np.flatnonzero(changed_rows),
            host_nodes,
            use_nodes,
        )

    def _compare(self, new: Array, old: Array) -> Array:
        changed = np.ones(len(new), dtype=np.bool_)
        changed[: len(old)] = _differs(new[: len(old)], old)
        return changed

    def _current_devices(self) -> Array:
        rows = self._rows
        columns = [DEVICE_COLUMN[name] for name in DEVICE_STREAM]
        values = _rounded(rows.values[:, columns], _steps("devices", DEVICE_STREAM))
        return np.column_stack([values, rows.state, rows.reason, np.round(rows.since)])

    def _current_hosts(self) -> Array:
        rows = self._node_rows
        columns = [HOST_COLUMN[name] for name in HOST_STREAM]
        values = _rounded(rows.values[:, columns], _steps("host", HOST_STREAM))
        return np.column_stack([values, rows.state, rows.received, rows.interval, np.round(rows.skew)])

    def _changed_uses(self, node: Node, *, told_again: bool) -> Array:
        current = self._current_uses(node)
        before = self._uses.get(node.id)
        self._uses[node.id] = current
        if told_again or before is None or before.shape != current.shape:
            return np.arange(len(current))
        return np.flatnonzero(_differs(current, before))

    def _current_uses(self, node: Node) -> Array:
        """Give one row a use: what it takes of the device, then what its process costs the host."""
        table, layout = node.table, node.layout
        uses = _matrix(node.uses, len(table.uses), layout.uses, USE_STREAM, "uses")
        processes = _matrix(
            node.processes, len(table.processes), layout.processes, PROCESS_STREAM, "processes"
        )
        return np.column_stack([uses, processes[[use.process for use in table.uses]]])

    def _message(
        self,
        tick: int,
        after: int | None,
        nodes: list[Node],
        removed: list[int],
        device_rows: Array,
        host_nodes: list[Node],
        use_nodes: list[tuple[Node, Array]],
    ) -> FleetChange:
        return FleetChange(
            tick=tick,
            after_tick=after,
            time=self._clock.wall(),
            notices=self.notices,
            totals=self._composer.totals(),
            nodes=[self._inventory(node) for node in nodes],
            removed=removed,
            devices=self._device_columns(device_rows),
            hosts=self._host_columns(host_nodes),
            uses=self._use_columns(use_nodes),
        )

    def _inventory(self, node: Node) -> NodeInventory:
        return NodeInventory(
            row=node.row,
            id=node.id,
            name=self._composer.name(node),
            way=node.way,
            place=self._composer.place(node),
            host=None if node.facts is None else node.facts.host,
            devices=tuple(
                DeviceInventory(row=row, short_name=self._composer.gpu_name(facts), facts=facts)
                for row, facts in enumerate(node.devices, node.start)
            ),
            processes=node.table.processes,
            uses=node.table.uses,
            problems=node.problems,
            notes=tuple(node.notes.values()),
        )

    def _device_columns(self, rows: Array) -> DeviceColumns:
        block = self._devices[rows]
        by_row = {node.row: node for node in self._nodes.values()}
        owners = self._rows.node[rows].tolist()
        numbers = {name: _numbers(block[:, place]) for place, name in enumerate(DEVICE_STREAM)}
        offset = self._clock.wall() - self._clock.monotonic()
        return DeviceColumns(
            row=rows.tolist(),
            state=[DEVICE_STATES[int(code)] for code in block[:, -3]],
            reason=[
                self._composer.reason(row, by_row[owner])
                for row, owner in zip(rows.tolist(), owners, strict=True)
            ],
            since=_numbers(np.round(block[:, -1] + offset)),
            **numbers,
        )

    def _host_columns(self, nodes: list[Node]) -> HostColumns:
        block = self._hosts[[node.row for node in nodes]] if nodes else self._hosts[:0]
        states = [NODE_STATES[int(code)] for code in block[:, -4]]
        numbers = {name: _numbers(block[:, place]) for place, name in enumerate(HOST_STREAM)}
        return HostColumns(
            row=[node.row for node in nodes],
            state=states,
            reason=[node_reason(node, state) for node, state in zip(nodes, states, strict=True)],
            received_at=[self._composer.wall_time(value) for value in block[:, -3].tolist()],
            interval_seconds=_numbers(block[:, -2]),
            clock_skew_seconds=_numbers(block[:, -1]),
            disks_used_bytes=[unpack_numbers(node.disks) for node in nodes],
            **numbers,
        )

    def _use_columns(self, nodes: list[tuple[Node, Array]]) -> UseColumns:
        width = len(USE_STREAM) + len(PROCESS_STREAM)
        blocks = [self._uses[node.id][positions] for node, positions in nodes]
        block = np.concatenate(blocks) if blocks else np.empty((0, width))
        numbers = {name: _numbers(block[:, place]) for place, name in enumerate(USE_STREAM + PROCESS_STREAM)}
        return UseColumns(
            node=[node.row for node, positions in nodes for _ in range(len(positions))],
            position=[position for _, positions in nodes for position in positions.tolist()],
            **numbers,
        )


def _matrix(data: bytes, rows: int, names: tuple[str, ...], wanted: tuple[str, ...], part: str) -> Array:
    """Read a kept matrix, rounded, with the wanted columns; those the node does not send are unknown."""
    source = np.frombuffer(data, dtype="<f8").reshape(rows, len(names))
    values = np.full((rows, len(wanted)), np.nan)
    bounds = {column.name: (column.low, column.high) for column in COLUMNS[part]}
    for place, name in enumerate(wanted):
        if name in names:
            column = source[:, names.index(name)]
            low, high = bounds[name]
            with np.errstate(invalid="ignore"):
                values[:, place] = np.where((column >= low) & (column <= high), column, np.nan)
    return _rounded(values, _steps(part, wanted))
