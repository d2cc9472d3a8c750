"""The herd at a glance: what is free and who has what, as columns.

A fraction of what everything takes as nested objects: no command lines, no facts that a look does not show, numbers as
finely as a person can tell them apart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.fleet.views import DeviceBookingView, DeviceState, FleetNotice, NodeState, Totals
from gpuherd.model.devices import DeviceKind, MemoryBasis
from gpuherd.model.reports import Problem

__all__ = [
    "Glance",
    "GlanceBookings",
    "GlanceDevices",
    "GlanceModel",
    "GlanceNodes",
    "GlanceProblem",
    "GlanceProcesses",
]

Numbers = list[float | None]


class GlanceModel(Struct, frozen=True, kw_only=True):
    """A model that some of the devices have."""

    short_name: Annotated[str, Meta(description="Product name without common words.")]
    name: Annotated[str, Meta(description="Product name as reported by the driver.")]
    vendor: str
    kind: DeviceKind
    is_partitioned: Annotated[bool, Meta(description="MIG is on: the slices do the work.")]
    profile: Annotated[str | None, Meta(description="MIG profile of a slice, such as 1g.10gb.")]
    memory_total_bytes: int | None
    memory_basis: MemoryBasis


class GlanceNodes(Struct, frozen=True, kw_only=True):
    """All nodes in display order: position i of every list belongs to one node."""

    id: list[str]
    name: Annotated[list[str], Meta(description="Display names.")]
    hostname: Annotated[list[str | None], Meta(description="Host names; null before the first report.")]
    state: list[NodeState]
    reason: list[str]
    age_seconds: Annotated[Numbers, Meta(description="Age of the last report; null if there was none.")]
    device_count: Annotated[
        list[int], Meta(description="Number of the node's entries in ``devices``, which are consecutive.")
    ]


class GlanceDevices(Struct, frozen=True, kw_only=True):
    """All devices, node by node: position i of every list belongs to one device."""

    uuid: list[str]
    model: Annotated[list[int], Meta(description="Positions in ``models``.")]
    index: list[int]
    parent_uuid: Annotated[list[str | None], Meta(description="GPU of a slice.")]
    state: list[DeviceState]
    reason: list[str]
    since: Annotated[Numbers, Meta(description="Hub time, UTC epoch seconds.")]
    utilization_gpu: Numbers
    memory_used_mebibytes: Numbers
    temperature_celsius: Numbers
    power_watts: Numbers


class GlanceProcesses(Struct, frozen=True, kw_only=True):
    """All compute processes: position i of every list belongs to one process on one device."""

    device: Annotated[list[int], Meta(description="Positions in ``devices``.")]
    pid: list[int]
    user: list[str | None]
    started_at: Annotated[Numbers, Meta(description="UTC epoch seconds by the node's clock.")]
    gpu_memory_mebibytes: Numbers


class GlanceBookings(Struct, frozen=True, kw_only=True):
    """The current and the next booking of a device."""

    device: Annotated[int, Meta(description="Position in ``devices``.")]
    bookings: tuple[DeviceBookingView, ...]


class GlanceProblem(Struct, frozen=True, kw_only=True):
    """Problems that a node reports."""

    node: Annotated[int, Meta(description="Position in ``nodes``.")]
    problem: Problem


class Glance(Struct, frozen=True, kw_only=True):
    """What is free, and who holds what, in the whole herd. ``GET /fleet`` returns everything."""

    time: Annotated[
        float, Meta(description="When the hub last updated all states: hub time, UTC epoch seconds.")
    ]
    tick: int
    notices: tuple[FleetNotice, ...]
    totals: Totals
    models: list[GlanceModel]
    nodes: GlanceNodes
    devices: GlanceDevices
    processes: GlanceProcesses
    bookings: list[GlanceBookings]
    problems: list[GlanceProblem]
