"""What accounting is made from: who was on which device of a node at a moment, and what the devices did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats, SeriesKey, Uses
from gpuherd.model.processes import UseKind

__all__ = ["Accountant", "Holder", "Moment", "Occupancy"]


class Holder(NamedTuple):
    """Whose a process on a device is."""

    user: str | None
    """As the node calls it; none is unknown."""
    container: str | None
    job: str | None
    command: str | None
    """Scrubbed on the node."""
    kind: UseKind
    pid: int
    started_at: float | None
    """By the node's clock."""


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy:
    """Who is on which device of a node. The same object serves all moments until facts or processes change."""

    node_id: str
    devices: tuple[SeriesKey, ...]
    memory_total: Floats
    """Of each device, bytes; NaN if unknown or it says nothing about use."""
    weight: Floats
    """Of each device, its share of a GPU: 1 for a whole one, of a slice its share of the GPU's memory."""
    is_partitioned: NDArray[np.bool_]
    """Of each device: its slices do the work, and are in ``devices`` themselves."""
    device: NDArray[np.int32]
    """Of each use, the position of its device."""
    holders: tuple[Holder, ...]
    """Of each use, whose it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One sample of a node, with bounds applied; NaN is unknown."""

    occupancy: Occupancy
    time: float
    """UTC epoch seconds by the hub's clock."""
    seconds: float
    """How long before ``time`` it stands for: since the sample before it in its run. After a gap one interval."""
    interval_seconds: float
    is_live: bool
    utilization_gpu: Floats
    """Of each device; so are the next two."""
    power_watts: Floats
    energy_joules: Floats
    """A counter: since the driver was loaded."""
    gpu_memory_bytes: Floats
    """Of each use."""


class Accountant(Protocol):
    """Who counts use. In the writer's thread."""

    def count(self, moments: list[Moment]) -> Uses:
        """Give what stays have grown by.

        Each moment comes once. Those of one run come in order, late ones of other runs between them. Moments without
        any process do not come at all.
        """
