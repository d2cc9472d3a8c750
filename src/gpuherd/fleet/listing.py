"""The herd as a list of devices to choose from: what each is, where, and whether it can be had now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DeviceRows
from gpuherd.fleet.views import DEVICE_STATES, DeviceState
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.devices import DeviceFacts

__all__ = ["ListedDevice", "Naming", "list_devices"]


class ListedDevice(Struct, frozen=True, kw_only=True):
    """One device as of the last tick."""

    ref: DeviceRef
    node_name: str
    short_name: str
    full_name: str
    index: int
    parent_uuid: str | None
    parent_index: int | None
    """Of a slice, its GPU."""
    is_partitioned: bool
    """MIG is on: it is had through its slices."""
    memory_total_bytes: int | None
    state: DeviceState
    users: frozenset[str]
    """Whose compute processes are on it, as nodes call them; as far as it is known."""
    is_dropped: bool = False
    """Its node drops files, which bear the node's name."""


class Naming(Protocol):
    """What nodes and devices are called, and in which order nodes come."""

    def name(self, node: Node) -> str:
        """Give a node's shown name."""

    def gpu_name(self, facts: DeviceFacts) -> str:
        """Give a device's short name."""

    def sorted_nodes(self) -> Iterable[Node]:
        """Give every node in the order in which people see them."""


def list_devices(naming: Naming, rows: DeviceRows) -> tuple[ListedDevice, ...]:
    """List every device of every node, in the order in which people see them."""
    listed = []
    for node in naming.sorted_nodes():
        if not node.count:
            continue
        name = naming.name(node)
        users: dict[int, set[str]] = {}
        for use in node.table.uses:
            user = node.owners[use.process]
            if user is not None and use.kind == "compute":
                users.setdefault(use.device, set()).add(user)
        indexes = {facts.uuid: facts.index for facts in node.devices}
        states = rows.state[node.start : node.start + node.count].tolist()
        for offset, facts in enumerate(
            node.devices[: node.reported_count]
        ):  # what is missing cannot be booked
            parent = facts.parent_uuid
            listed.append(
                ListedDevice(
                    ref=DeviceRef(node.id, facts.uuid),
                    node_name=name,
                    short_name=naming.gpu_name(facts),
                    full_name=facts.name,
                    index=facts.index,
                    parent_uuid=parent,
                    parent_index=None if parent is None else indexes.get(parent),
                    is_partitioned=facts.is_partitioned,
                    memory_total_bytes=facts.memory_total_bytes,
                    state=DEVICE_STATES[states[offset]],
                    users=frozenset(users.get(offset, ())),
                    is_dropped=node.way == "file",
                )
            )
    return tuple(listed)
