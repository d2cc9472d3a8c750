"""The live stream's content: what viewers have been told, and what to tell them next.

Values are rounded to what a person can see, so that noise below that is not sent. What seldom changes is compared and
sent apart from what always does. The work is done once per tick for all viewers, and only while there are any.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuherd.fleet.changes import (
    DeviceColumns,
    DeviceDetailColumns,
    DeviceStateColumns,
    FleetChange,
    HostColumns,
    HostStateColumns,
    UseColumns,
)
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.compose import Composer, node_reason
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import Array, DeviceRows, NodeRows
from gpuherd.fleet.stream_columns import (
    DETAILS,
    DEVICES,
    HOST_DETAILS,
    HOSTS,
    PROCESSES,
    USES,
    Numbers,
    named_numbers,
    numbers,
    visible,
    visible_matrix,
)
from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES, DeviceInventory, FleetNotice, NodeInventory
from gpuherd.wire.matrix import unpack_numbers

__all__ = ["Publication"]


def _differs(new: Array, old: Array) -> Array:
    """Tell the rows in which any value differs from what was told; those never told differ."""
    differs = np.ones(len(new), dtype=np.bool_)
    if not len(old):
        return differs
    same = (new[: len(old)] == old) | (np.isnan(new[: len(old)]) & np.isnan(old))
    differs[: len(old)] = ~same.all(axis=1)
    return differs


class _Told:
    """What was told of all devices and hosts, one matrix a part of the message."""

    def __init__(
        self, devices: Array, details: Array, states: Array, hosts: Array, host_states: Array
    ) -> None:
        self.devices = devices
        self.details = details
        self.states = states
        self.hosts = hosts
        self.host_states = host_states


_NOTHING = np.empty((0, 0))


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
        self._told: _Told | None = None
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
        if self._tick != tick or self._told is None:
            self.change(tick)
        told = self._told
        assert told is not None  # noqa: S101 - change has just set it
        nodes = list(self._nodes.values())
        is_told = self._rows.node[: len(told.devices)] >= 0
        for node in nodes:
            if node.id in self._moved:
                is_told[node.start : node.start + node.count] = False
        used = np.flatnonzero(is_told)
        hosts = [node for node in nodes if node.row < len(told.hosts)]
        uses = [(node, np.arange(len(self._uses[node.id]))) for node in nodes if node.id in self._uses]
        return self._message(tick, None, nodes, [], told, (used, used, used), (hosts, hosts), uses)

    def change(self, tick: int) -> FleetChange:
        """Tell what differs from what was told before, and take it as told."""
        before, told = self._told or _Told(*[_NOTHING] * 5), self._current()
        used = self._rows.node >= 0
        devices, details, states = (
            _differs(new, old) & used
            for new, old in (
                (told.devices, before.devices),
                (told.details, before.details),
                (told.states, before.states),
            )
        )
        host_rows = _differs(told.hosts, before.hosts)
        host_state_rows = _differs(told.host_states, before.host_states)
        stale, self._stale_inventory = self._stale_inventory, {}
        removed, self._removed = self._removed, []
        self._moved.clear()
        told_before, self._tick = self._tick, tick
        self._told = told
        hosts, host_states, uses = [], [], []
        for node in self._nodes.values():
            is_stale = node.id in stale
            positions = self._changed_uses(node, told_again=is_stale)
            if positions.size:
                uses.append((node, positions))
            if is_stale:
                for rows in (devices, details, states):
                    rows[node.start : node.start + node.count] = True
            if host_rows[node.row] or is_stale:
                hosts.append(node)
            if host_state_rows[node.row] or is_stale or self._disks.get(node.id) != node.disks:
                self._disks[node.id] = node.disks
                host_states.append(node)
        changed = (np.flatnonzero(devices), np.flatnonzero(details), np.flatnonzero(states))
        return self._message(
            tick, told_before, list(stale.values()), removed, told, changed, (hosts, host_states), uses
        )

    def _current(self) -> _Told:
        rows, hosts = self._rows, self._node_rows
        return _Told(
            visible(rows.values, DEVICES),
            visible(rows.values, DETAILS),
            np.column_stack([rows.state, rows.reason, np.round(rows.since)]),
            np.column_stack([hosts.received, visible(hosts.values, HOSTS)]),
            np.column_stack(
                [hosts.state, hosts.interval, np.round(hosts.skew), visible(hosts.values, HOST_DETAILS)]
            ),
        )

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
        uses = visible_matrix(node.uses, len(table.uses), layout.uses, USES)
        processes = visible_matrix(node.processes, len(table.processes), layout.processes, PROCESSES)
        return np.column_stack([uses, processes[[use.process for use in table.uses]]])

    def _message(
        self,
        tick: int,
        after: int | None,
        nodes: list[Node],
        removed: list[int],
        told: _Told,
        device_rows: tuple[Array, Array, Array],
        host_nodes: tuple[list[Node], list[Node]],
        use_nodes: list[tuple[Node, Array]],
    ) -> FleetChange:
        devices, details, states = device_rows
        return FleetChange(
            tick=tick,
            after_tick=after,
            time=self._clock.wall(),
            notices=self.notices,
            totals=self._composer.totals(),
            nodes=[self._inventory(node) for node in nodes],
            removed=removed,
            devices=DeviceColumns(row=devices.tolist(), **named_numbers(told.devices[devices], DEVICES)),
            device_details=DeviceDetailColumns(
                row=details.tolist(), **named_numbers(told.details[details], DETAILS)
            ),
            device_states=self._device_states(told, states),
            hosts=self._hosts(told, host_nodes[0]),
            host_states=self._host_states(told, host_nodes[1]),
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

    def _device_states(self, told: _Told, rows: Array) -> DeviceStateColumns:
        block = told.states[rows]
        by_row = {node.row: node for node in self._nodes.values()}
        owners = self._rows.node[rows].tolist()
        offset = self._clock.wall() - self._clock.monotonic()
        return DeviceStateColumns(
            row=rows.tolist(),
            state=[DEVICE_STATES[int(code)] for code in block[:, 0]],
            reason=[
                self._composer.reason(row, by_row[owner])
                for row, owner in zip(rows.tolist(), owners, strict=True)
            ],
            since=numbers(np.round(block[:, 2] + offset), is_whole=True),
        )

    def _hosts(self, told: _Told, nodes: list[Node]) -> HostColumns:
        rows = [node.row for node in nodes]
        block = told.hosts[rows] if rows else told.hosts[:0]
        return HostColumns(
            row=rows,
            received_at=[self._composer.wall_time(value) for value in block[:, 0].tolist()],
            **named_numbers(block[:, 1:], HOSTS),
        )

    def _host_states(self, told: _Told, nodes: list[Node]) -> HostStateColumns:
        rows = [node.row for node in nodes]
        block = told.host_states[rows] if rows else told.host_states[:0]
        states = [NODE_STATES[int(code)] for code in block[:, 0]]
        disks: list[Numbers] = [unpack_numbers(node.disks) for node in nodes]
        return HostStateColumns(
            row=rows,
            state=states,
            reason=[node_reason(node, state) for node, state in zip(nodes, states, strict=True)],
            interval_seconds=numbers(block[:, 1]),
            clock_skew_seconds=numbers(block[:, 2], is_whole=True),
            disks_used_bytes=disks,
            **named_numbers(block[:, 3:], HOST_DETAILS),
        )

    def _use_columns(self, nodes: list[tuple[Node, Array]]) -> UseColumns:
        blocks = [self._uses[node.id][positions] for node, positions in nodes]
        block = np.concatenate(blocks) if blocks else np.empty((0, len(USES) + len(PROCESSES)))
        return UseColumns(
            node=[node.row for node, positions in nodes for _ in range(len(positions))],
            position=[position for _, positions in nodes for position in positions.tolist()],
            **named_numbers(block, USES + PROCESSES),
        )
