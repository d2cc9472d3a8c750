"""The live stream's content: what viewers have been told, and what to tell them next.

Values are rounded to what a person can see, so that noise below that is not sent. What seldom changes is compared and
sent apart from what always does. The work is done once per tick for all viewers, and only while there are any.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuherd.fleet.booked import BookedDevices
from gpuherd.fleet.changes import (
    DeviceBookings,
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
    differs,
    named_numbers,
    numbers,
    visible,
)
from gpuherd.fleet.told_uses import UseReader
from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES, DeviceInventory, FleetNotice, NodeInventory
from gpuherd.wire.matrix import unpack_numbers

__all__ = ["Publication"]


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
        booked: BookedDevices,
        clock: Clock,
        tick_seconds: float,
    ) -> None:
        self._rows = rows
        self._node_rows = node_rows
        self._nodes = nodes
        self._composer = composer
        self._booked = booked
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._tick = -1
        self.notices: tuple[FleetNotice, ...] = ()
        self._stale_inventory: dict[str, Node] = {}
        self._moved: set[str] = set()
        self._removed: list[int] = []
        self._told: _Told | None = None
        self._reader = UseReader()
        self._uses = self._reader.read(())
        self._disks: dict[str, bytes] = {}
        self._inventories: dict[str, NodeInventory] = {}
        """Kept while nothing in them changes: to make all of them takes longer than the rest of a snapshot."""

    def inventory_changed(self, node: Node) -> None:
        """Remember that a node's facts, table or problems must be told again."""
        self._stale_inventory[node.id] = node
        self._inventories.pop(node.id, None)

    def devices_moved(self, node: Node) -> None:
        """Remember that a node has other rows: what was told of them before was told of other devices."""
        self._moved.add(node.id)

    def node_removed(self, node: Node) -> None:
        """Remember that a node is gone."""
        self._stale_inventory.pop(node.id, None)
        self._inventories.pop(node.id, None)
        self._uses = self._uses.without(node.id)
        self._reader.forget(node.id)
        self._disks.pop(node.id, None)
        self._moved.discard(node.id)
        self._removed.append(node.row)

    def snapshot(self, tick: int) -> FleetChange:
        """Tell everything, exactly as those know it who have followed all changes.

        Devices that have moved since are left out, hence unknown, until the next tick has judged them.
        """
        told = self._told
        if self._tick != tick or told is None:
            told = self._take(tick)
        nodes = list(self._nodes.values())
        is_told = self._rows.node[: len(told.devices)] >= 0
        for node in nodes:
            if node.id in self._moved:
                is_told[node.start : node.start + node.count] = False
        used = np.flatnonzero(is_told)
        hosts = [node for node in nodes if node.row < len(told.hosts)]
        booked = [row for row in self._booked.shown if row < len(is_told) and is_told[row]]
        return self._message(
            tick, None, nodes, [], told, (used, used, used), (hosts, hosts), slice(None), booked
        )

    def _take(self, tick: int) -> _Told:
        """Take everything as told, without the message about it: for the first who looks."""
        self._tick = tick
        self._told = told = self._current()
        self._uses = self._reader.read(self._nodes.values())
        self._disks = {node.id: node.disks for node in self._nodes.values()}
        self._stale_inventory.clear()
        self._removed.clear()
        self._moved.clear()
        self._booked.take_changed()
        return told

    def change(self, tick: int) -> FleetChange:
        """Tell what differs from what was told before, and take it as told."""
        before, told = self._told or _Told(*[_NOTHING] * 5), self._current()
        used = self._rows.node >= 0
        devices, details, states = (
            differs(new, old) & used
            for new, old in (
                (told.devices, before.devices),
                (told.details, before.details),
                (told.states, before.states),
            )
        )
        host_rows = differs(told.hosts, before.hosts)
        host_state_rows = differs(told.host_states, before.host_states)
        stale, self._stale_inventory = self._stale_inventory, {}
        removed, self._removed = self._removed, []
        self._moved.clear()
        told_before, self._tick = self._tick, tick
        self._told = told
        uses_before, self._uses = self._uses, self._reader.read(self._nodes.values())
        uses = self._uses.changed(uses_before, stale)
        hosts, host_states, booked = [], [], self._booked.take_changed()
        for node in self._nodes.values():
            is_stale = node.id in stale
            if is_stale:
                for rows in (devices, details, states):
                    rows[node.start : node.start + node.count] = True
                own_rows = range(node.start, node.start + node.count)
                booked.update(row for row in own_rows if row in self._booked.shown)
            if host_rows[node.row] or is_stale:
                hosts.append(node)
            if host_state_rows[node.row] or is_stale or self._disks.get(node.id) != node.disks:
                self._disks[node.id] = node.disks
                host_states.append(node)
        changed = (np.flatnonzero(devices), np.flatnonzero(details), np.flatnonzero(states))
        return self._message(
            tick,
            told_before,
            list(stale.values()),
            removed,
            told,
            changed,
            (hosts, host_states),
            uses,
            [row for row in sorted(booked) if used[row]],
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

    def _message(
        self,
        tick: int,
        after: int | None,
        nodes: list[Node],
        removed: list[int],
        told: _Told,
        device_rows: tuple[Array, Array, Array],
        host_nodes: tuple[list[Node], list[Node]],
        uses: Array | slice,
        booked: list[int],
    ) -> FleetChange:
        devices, details, states = device_rows
        return FleetChange(
            tick=tick,
            after_tick=after,
            time=self._clock.wall(),
            tick_seconds=self._tick_seconds,
            notices=self.notices,
            totals=self._composer.totals(),
            nodes=[self.inventory(node) for node in nodes],
            removed=removed,
            devices=DeviceColumns(row=devices.tolist(), **named_numbers(told.devices[devices], DEVICES)),
            device_details=DeviceDetailColumns(
                row=details.tolist(), **named_numbers(told.details[details], DETAILS)
            ),
            device_states=self._device_states(told, states),
            device_bookings=[
                DeviceBookings(row=row, bookings=self._booked.shown.get(row, ())) for row in booked
            ],
            hosts=self._hosts(told, host_nodes[0]),
            host_states=self._host_states(told, host_nodes[1]),
            uses=self._use_columns(uses),
        )

    def inventory(self, node: Node) -> NodeInventory:
        """Give all of a node that is not a number: the same object while nothing of it changes."""
        kept = self._inventories.get(node.id)
        if kept is None:
            kept = self._inventories[node.id] = self._make_inventory(node)
        return kept

    def _make_inventory(self, node: Node) -> NodeInventory:
        return NodeInventory(
            row=node.row,
            id=node.id,
            name=self._composer.name(node),
            way=node.way,
            place=self._composer.place(node),
            host=None if node.facts is None else node.facts.host,
            devices=tuple(
                DeviceInventory(
                    row=row,
                    short_name=self._composer.gpu_name(facts),
                    facts=facts,
                    missing_since=node.missing_since(row - node.start),
                )
                for row, facts in enumerate(node.devices, node.start)
            ),
            processes=node.table.processes,
            uses=node.table.uses,
            problems=node.problems,
            notes=tuple(node.notes.values()),
        )

    def _device_states(self, told: _Told, rows: Array) -> DeviceStateColumns:
        block = told.states[rows]
        reasons = self._composer.reasons(rows, self._nodes.values())
        offset = self._clock.wall() - self._clock.monotonic()
        return DeviceStateColumns(
            row=rows.tolist(),
            state=[DEVICE_STATES[code] for code in block[:, 0].astype(np.int64).tolist()],
            reason=reasons,
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

    def _use_columns(self, rows: Array | slice) -> UseColumns:
        uses = self._uses
        return UseColumns(
            node=uses.node_rows[rows].tolist(),
            position=uses.positions[rows].tolist(),
            **named_numbers(uses.values[rows], USES + PROCESSES),
        )
