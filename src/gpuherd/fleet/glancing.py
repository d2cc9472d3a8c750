"""Puts a glance at the herd together, for one privacy class.

What a class is shown of a node that is not a number is kept while it stays the same; all numbers are taken at once.
All of it passes the class's face as in the stream, so that a glance holds nothing that the stream does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from gpuherd.fleet.booked import BookedDevices
from gpuherd.fleet.changes import DeviceBookings, DeviceStateColumns, HostStateColumns
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.compose import Composer, node_reason
from gpuherd.fleet.glance import (
    GlanceBookings,
    GlanceDevices,
    GlanceModel,
    GlanceNodes,
    GlanceProblem,
    GlanceProcesses,
)
from gpuherd.fleet.names import natural_key
from gpuherd.fleet.node import Node
from gpuherd.fleet.privacy import Face
from gpuherd.fleet.rows import Array, DeviceRows, NodeRows
from gpuherd.fleet.stream_columns import (
    DEVICES,
    MEBIBYTE,
    USES,
    StreamColumn,
    named_numbers,
    numbers,
    visible,
    visible_matrix,
)
from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES, DeviceInventory, NodeInventory

__all__ = ["GlanceParts", "Glancer"]

_SHOWN = {"utilization_gpu", "memory_used_mebibytes", "temperature_celsius", "power_watts"}
_SOURCES = tuple(column for column in DEVICES if column.name in _SHOWN)
_NUMBERS = tuple(column._replace(place=place) for place, column in enumerate(_SOURCES))
_MEMORY: tuple[StreamColumn, ...] = tuple(column for column in USES if column.name == "gpu_memory_bytes")
MAX_KEPT_MODELS = 4096
"""Nodes may report any number of names."""


class GlanceParts(NamedTuple):
    """What a glance tells of nodes, and of what is on them."""

    models: list[GlanceModel]
    nodes: GlanceNodes
    devices: GlanceDevices
    processes: GlanceProcesses
    bookings: list[GlanceBookings]
    problems: list[GlanceProblem]


class _Piece:
    """What a class is shown of one node, but for what changes from tick to tick."""

    def __init__(
        self,
        inventory: NodeInventory,
        shown: NodeInventory,
        model_of: Callable[[DeviceInventory], GlanceModel],
    ) -> None:
        """``inventory``: what ``shown`` was made of; as long as that is the same, so is this."""
        self.inventory = inventory
        self.name, self.problems = shown.name, shown.problems
        self.hostname = None if shown.host is None else shown.host.hostname
        self.sort_key = (shown.place, natural_key(shown.name))
        self.models = [model_of(device) for device in shown.devices]
        self.uuids = [device.facts.uuid for device in shown.devices]
        self.indexes = [device.facts.index for device in shown.devices]
        self.parents = [device.facts.parent_uuid for device in shown.devices]
        self.is_computing = [use.kind == "compute" for use in shown.uses]
        uses = [use for use in shown.uses if use.kind == "compute"]
        processes = [shown.processes[use.process] for use in uses]
        self.devices = [use.device for use in uses]
        self.pids = [process.pid for process in processes]
        self.users = [process.user for process in processes]
        self.starts = [
            None if process.started_at is None else round(process.started_at) for process in processes
        ]


class Glancer:
    """Puts the glances of one class together. Owned by the fleet, on its event loop."""

    def __init__(
        self,
        face: Face,
        rows: DeviceRows,
        node_rows: NodeRows,
        nodes: Mapping[str, Node],
        booked: BookedDevices,
        composer: Composer,
        inventory_of: Callable[[Node], NodeInventory],
        clock: Clock,
    ) -> None:
        self.face = face
        self._rows = rows
        self._node_rows = node_rows
        self._nodes = nodes
        self._booked = booked
        self._composer = composer
        self._inventory_of = inventory_of
        self._clock = clock
        self._pieces: dict[str, _Piece] = {}
        self._models: dict[GlanceModel, GlanceModel] = {}

    def prepare(self) -> Iterator[None]:
        """Look at every node whose processes or facts have changed, one a step: the first time takes a while."""
        for node in [*self._nodes.values()]:
            if self._nodes.get(node.id) is not node:
                continue  # gone since, or another by the same name
            piece = self._pieces.get(node.id)
            if piece is None or piece.inventory is not self._inventory_of(node):
                self._piece(node)
                yield

    def parts(self) -> GlanceParts:
        """Take everything as it is now."""
        if len(self._pieces) > len(self._nodes):
            self._pieces = {
                node_id: piece for node_id, piece in self._pieces.items() if node_id in self._nodes
            }
        seen = [(self._piece(node), node) for node in self._nodes.values()]
        seen.sort(key=lambda pair: pair[0].sort_key)
        pieces, nodes = [piece for piece, _ in seen], [node for _, node in seen]
        counts = np.array([node.count for node in nodes], dtype=np.int64)
        firsts = np.cumsum(counts) - counts
        starts = np.array([node.start for node in nodes], dtype=np.int64)
        rows = np.repeat(starts - firsts, counts) + np.arange(counts.sum())
        # By identity: to compare thousands of models field by field takes as long as all the rest.
        models = {id(model): model for piece in pieces for model in piece.models}
        places = {number: place for place, number in enumerate(models)}
        numbered = [places[id(model)] for piece in pieces for model in piece.models]
        return GlanceParts(
            models=[*models.values()],
            nodes=self._glance_nodes(pieces, nodes),
            devices=self._glance_devices(pieces, nodes, rows, numbered),
            processes=_glance_processes(pieces, nodes, firsts.tolist()),
            bookings=self._glance_bookings(rows),
            problems=[
                GlanceProblem(node=place, problem=problem)
                for place, piece in enumerate(pieces)
                for problem in piece.problems
            ],
        )

    def _piece(self, node: Node) -> _Piece:
        inventory, piece = self._inventory_of(node), self._pieces.get(node.id)
        if piece is None or piece.inventory is not inventory:
            piece = self._pieces[node.id] = _Piece(inventory, self.face.inventory(inventory), self._model)
        return piece

    def _model(self, device: DeviceInventory) -> GlanceModel:
        """Give a device's model: the same object for all devices alike."""
        facts = device.facts
        model = GlanceModel(
            short_name=device.short_name,
            name=facts.name,
            vendor=facts.vendor,
            kind=facts.kind,
            is_partitioned=facts.is_partitioned,
            profile=facts.profile,
            memory_total_bytes=facts.memory_total_bytes,
            memory_basis=facts.memory_basis,
        )
        if len(self._models) >= MAX_KEPT_MODELS:
            self._models.clear()  # then some are told twice, which harms nobody
        return self._models.setdefault(model, model)

    def _glance_nodes(self, pieces: list[_Piece], nodes: list[Node]) -> GlanceNodes:
        rows = [node.row for node in nodes]
        states = [NODE_STATES[code] for code in self._node_rows.state[rows].tolist()]
        told = self.face.host_states(
            HostStateColumns(
                row=rows,
                state=states,
                reason=[node_reason(node, state) for node, state in zip(nodes, states, strict=True)],
                interval_seconds=[],
                clock_skew_seconds=[],
                swap_used_bytes=[],
                uptime_seconds=[],
                disks_used_bytes=[],
            )
        )
        received = self._node_rows.received[rows]
        ages = np.where(np.isfinite(received), self._clock.monotonic() - received, np.nan)
        return GlanceNodes(
            id=[node.id for node in nodes],
            name=[piece.name for piece in pieces],
            hostname=[piece.hostname for piece in pieces],
            state=told.state,
            reason=told.reason,
            age_seconds=numbers(np.round(ages, 1)),
            device_count=[node.count for node in nodes],
        )

    def _glance_devices(
        self, pieces: list[_Piece], nodes: list[Node], rows: Array, models: list[int]
    ) -> GlanceDevices:
        offset = self._clock.wall() - self._clock.monotonic()
        told = self.face.device_states(
            DeviceStateColumns(
                row=rows.tolist(),
                state=[DEVICE_STATES[code] for code in self._rows.state[rows].tolist()],
                reason=self._composer.reasons(rows, nodes),
                since=numbers(np.round(self._rows.since[rows] + offset), is_whole=True),
            )
        )
        return GlanceDevices(
            uuid=list(chain.from_iterable(piece.uuids for piece in pieces)),
            model=models,
            index=list(chain.from_iterable(piece.indexes for piece in pieces)),
            parent_uuid=list(chain.from_iterable(piece.parents for piece in pieces)),
            state=told.state,
            reason=told.reason,
            since=told.since,
            **named_numbers(self._numbers(rows), _NUMBERS),
        )

    def _numbers(self, rows: Array) -> Array:
        values = self._rows.values[rows[:, np.newaxis], [column.place for column in _SOURCES]]
        lows, highs = (np.array([getattr(c, edge) for c in _SOURCES]) for edge in ("low", "high"))
        with np.errstate(invalid="ignore"):  # what came since the last tick has not been checked yet
            return visible(np.where((values >= lows) & (values <= highs), values, np.nan), _NUMBERS)

    def _glance_bookings(self, rows: Array) -> list[GlanceBookings]:
        if not self._booked.shown:
            return []
        places = {row: place for place, row in enumerate(rows.tolist())}
        found = []
        for row, bookings in self._booked.shown.items():
            ahead = tuple(booking for booking in bookings if booking.phase != "past")
            if ahead and row in places:
                shown = self.face.bookings(DeviceBookings(row=row, bookings=ahead))
                found.append(GlanceBookings(device=places[row], bookings=shown.bookings))
        return found


def _glance_processes(pieces: list[_Piece], nodes: list[Node], firsts: list[int]) -> GlanceProcesses:
    is_computing = np.array([flag for piece in pieces for flag in piece.is_computing], dtype=np.bool_)
    memory = _memory_bytes(nodes)[is_computing] / MEBIBYTE
    return GlanceProcesses(
        device=[
            first + device for first, piece in zip(firsts, pieces, strict=True) for device in piece.devices
        ],
        pid=list(chain.from_iterable(piece.pids for piece in pieces)),
        user=list(chain.from_iterable(piece.users for piece in pieces)),
        started_at=list(chain.from_iterable(piece.starts for piece in pieces)),
        gpu_memory_mebibytes=numbers(memory, is_whole=True),
    )


def _memory_bytes(nodes: list[Node]) -> Array:
    """Give the memory of all uses of these nodes, in their order."""
    blocks = [np.empty((0, 1))]
    # Nodes of one version have their columns in common; hardly ever is there more than one.
    for names, group in groupby(nodes, key=lambda node: node.layout.uses):
        alike = [*group]
        count = sum(len(node.table.uses) for node in alike)
        blocks.append(visible_matrix(b"".join(node.uses for node in alike), count, names, _MEMORY))
    joined: Array = np.concatenate(blocks)[:, 0]
    return joined
