"""The same GPU on two nodes: one machine listed twice, or one host's data under another's name."""

from __future__ import annotations

from collections.abc import Mapping

from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DeviceRows, NodeRows
from gpuherd.fleet.views import NODE_STATES
from gpuherd.model.devices import is_worldwide
from gpuherd.model.reports import Problem

__all__ = ["Duplicates"]

_HEARD = (NODE_STATES.index("live"), NODE_STATES.index("stale"))
"""A node that is late by seconds still has the card."""


class Duplicates:
    """An index of the nodes that report each GPU. Owned by the fleet, on its event loop."""

    def __init__(self, nodes: Mapping[str, Node], rows: DeviceRows, node_rows: NodeRows) -> None:
        self._nodes = nodes
        self._rows = rows
        self._node_rows = node_rows
        self._reporters: dict[str, list[str]] = {}
        """By uuid, in the order in which they came."""
        self._uuids: dict[str, frozenset[str]] = {}
        self._shared: set[str] = set()
        self._is_marked = False
        self.problems: dict[str, Problem] = {}
        """What to say of nodes of which a GPU is also another's, as of the last tick."""

    def take(self, node: Node) -> None:
        """Look at a node's devices, which may be others than before."""
        devices = () if node.facts is None else node.facts.devices
        self._replace(node.id, frozenset(device.uuid for device in devices if is_worldwide(device.uuid)))

    def is_reported(self, uuid: str) -> bool:
        """Whether a node that is heard from reports this GPU."""
        reporters = self._reporters.get(uuid, ())
        return any(self._node_rows.state[self._nodes[node_id].row] in _HEARD for node_id in reporters)

    def forget(self, node_id: str) -> None:
        """Drop what is known of a node."""
        self._replace(node_id, frozenset())

    def _replace(self, node_id: str, uuids: frozenset[str]) -> None:
        before = self._uuids.pop(node_id, frozenset())
        if uuids:
            self._uuids[node_id] = uuids
        for uuid in before - uuids:
            reporters = self._reporters[uuid]
            reporters.remove(node_id)
            if len(reporters) < 2:
                self._shared.discard(uuid)
            if not reporters:
                del self._reporters[uuid]
        for uuid in uuids - before:
            reporters = self._reporters.setdefault(uuid, [])
            reporters.append(node_id)
            if len(reporters) > 1:
                self._shared.add(uuid)

    def mark(self) -> None:
        """Write into the rows which devices another live node reports too, and which of them are not counted."""
        rows = self._rows
        if self._is_marked:
            rows.is_duplicate[:] = rows.is_extra[:] = False
        self._is_marked = bool(self._shared)
        self.problems = {}
        rows_of: dict[str, dict[str, list[int]]] = {}
        for uuid in sorted(self._shared):
            nodes = [self._nodes[node_id] for node_id in self._reporters[uuid]]
            nodes.sort(key=lambda node: self._node_rows.state[node.row] not in _HEARD)
            heard = [node for node in nodes if self._node_rows.state[node.row] in _HEARD]
            for place, node in enumerate(nodes):
                if node.id not in rows_of:
                    rows_of[node.id] = _rows_of(node)
                own = rows_of[node.id].get(uuid, [])
                if place > 0:
                    rows.is_extra[own] = True
                if len(heard) > 1 and place < len(heard):
                    rows.is_duplicate[own] = True
                    self.problems.setdefault(node.id, _problem(uuid, heard[1 if place == 0 else 0]))


def _rows_of(node: Node) -> dict[str, list[int]]:
    """Return the rows of a node's devices by uuid; slices also by that of their GPU. Once: a node may have hundreds."""
    found: dict[str, list[int]] = {}
    for row, device in enumerate(node.devices, node.start):
        found.setdefault(device.uuid, []).append(row)
        if device.parent_uuid is not None:
            found.setdefault(device.parent_uuid, []).append(row)
    return found


def _problem(uuid: str, other: Node) -> Problem:
    return Problem(
        code="same_gpu",
        message=f"{uuid} is also reported by {other.id}: one machine is listed twice, or one of them "
        "forwards the other's data; keep one",
    )
