"""Whose processes are where, by the users' names as nodes report them: what people may read of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import structs

from gpuherd.fleet.changes import OwnCommands
from gpuherd.fleet.node import Node
from gpuherd.fleet.views import NodeView
from gpuherd.model.processes import ProcessTable

__all__ = ["OwnedProcesses", "with_own_commands"]

MAX_TOLD = 4096
"""Processes told to one person: a node may claim that any number is theirs."""


class OwnedProcesses:
    """An index over the process tables of all nodes. Owned by the fleet, on its event loop."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._positions: dict[str, dict[str, list[int]]] = {}
        self._tables: dict[str, ProcessTable] = {}
        self._nodes_of: dict[str, set[str]] = {}
        self._changed: set[str] = set()

    def take(self, node: Node) -> None:
        """Look at a node's process table, if it is another one."""
        if self._tables.get(node.id) is node.table:
            return
        self.forget(node.id)
        positions: dict[str, list[int]] = {}
        for position, owner in enumerate(node.owners):
            if owner is not None:
                positions.setdefault(owner, []).append(position)
        self._tables[node.id], self._positions[node.id] = node.table, positions
        for owner in positions:
            self._nodes_of.setdefault(owner, set()).add(node.id)
        self._changed.update(positions)

    def forget(self, node_id: str) -> None:
        """Drop what is known of a node."""
        self._tables.pop(node_id, None)
        owners = self._positions.pop(node_id, {})
        for owner in owners:
            nodes = self._nodes_of[owner]
            nodes.discard(node_id)
            if not nodes:
                del self._nodes_of[owner]
        self._changed.update(owners)

    def take_changed(self) -> set[str]:
        """Give the users of whom a process came or went since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def commands(self, users: Collection[str]) -> OwnCommands:
        """Give the processes of these users with their full command lines, node by node."""
        found = [
            (node_id, self._nodes[node_id].table.processes[position])
            for node_id in sorted({node_id for user in users for node_id in self._nodes_of.get(user, ())})
            for position in sorted(p for user in users for p in self._positions[node_id].get(user, ()))
        ][:MAX_TOLD]
        return OwnCommands(
            node_id=[node_id for node_id, _ in found],
            pid=[process.pid for _, process in found],
            started_at=[process.started_at for _, process in found],
            command=[process.command for _, process in found],
        )


def with_own_commands(view: NodeView, own: OwnCommands) -> NodeView:
    """Give a node with the full command lines of one's own processes in it."""
    columns = zip(own.node_id, own.pid, own.started_at, own.command, strict=True)
    commands = {(pid, started): command for node_id, pid, started, command in columns if node_id == view.id}
    if not commands:
        return view
    return structs.replace(
        view,
        devices=tuple(
            structs.replace(
                device,
                processes=tuple(
                    structs.replace(process, command=commands[process.pid, process.started_at])
                    if (process.pid, process.started_at) in commands
                    else process
                    for process in device.processes
                ),
            )
            for device in view.devices
        ),
    )
