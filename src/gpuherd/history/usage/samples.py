"""What is counted: what a node showed at one moment, and whom its numbers are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gpuherd.history.batch import Uses
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import ProcessTable

__all__ = ["Accounts", "NodeSample", "Scene"]


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What the numbers of a node's samples refer to; the same object as long as facts and table are the same."""

    node_id: str
    devices: tuple[DeviceFacts, ...]
    types: tuple[str, ...]
    """Short name of each device's type."""
    table: ProcessTable
    owners: tuple[str | None, ...]
    """The users of the table's processes as the node calls them."""


class NodeSample(NamedTuple):
    """One sample of one node."""

    scene: Scene
    time: float
    """UTC epoch seconds by the hub's clock."""
    interval_seconds: float
    """How far its samples are apart, usually."""
    uses: bytes
    """Rows of the table's uses in the columns of ``wire.matrix.LAYOUT.uses``."""


class Accounts(NamedTuple):
    """What has been counted, and what is needed to go on after a restart."""

    uses: Uses
    notes: bytes
