"""The live stream's one message: what changed since the tick before, numbers as columns.

A snapshot is the same message with everything in it, so that a viewer has one way to read both.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.fleet.views import (
    DeviceBookingView,
    DeviceState,
    FleetNotice,
    NodeInventory,
    NodeState,
    Totals,
)

__all__ = [
    "DeviceBookings",
    "DeviceColumns",
    "DeviceDetailColumns",
    "DeviceStateColumns",
    "FleetChange",
    "HostColumns",
    "HostStateColumns",
    "OwnCommands",
    "UseColumns",
]

Numbers = list[float | None]


class DeviceColumns(Struct, frozen=True, kw_only=True):
    """Devices whose numbers changed: position i of every list belongs to row ``row[i]``.

    In the units in which they are rounded: half of the bytes of the whole stream are these.
    """

    row: list[int]
    utilization_gpu: Numbers
    utilization_memory: Numbers
    memory_used_mebibytes: Numbers
    temperature_celsius: Numbers
    power_watts: Numbers
    fan_ratio: Numbers
    clock_sm_megahertz: Numbers


class DeviceDetailColumns(Struct, frozen=True, kw_only=True):
    """Devices of which something changed that seldom does."""

    row: list[int]
    power_limit_watts: Numbers
    performance_state: Numbers
    throttle_reasons: Numbers
    ecc_uncorrected: Numbers


class DeviceStateColumns(Struct, frozen=True, kw_only=True):
    """Devices whose availability changed."""

    row: list[int]
    state: list[DeviceState]
    reason: list[str]
    since: Numbers


class HostColumns(Struct, frozen=True, kw_only=True):
    """Nodes whose contact or host numbers changed, by node row."""

    row: list[int]
    received_at: Numbers
    cpu_ratio: Numbers
    load_1m: Numbers
    memory_used_mebibytes: Numbers


class HostStateColumns(Struct, frozen=True, kw_only=True):
    """Nodes of which something changed that seldom does."""

    row: list[int]
    state: list[NodeState]
    reason: list[str]
    interval_seconds: Numbers
    clock_skew_seconds: Numbers
    swap_used_bytes: Numbers
    uptime_seconds: Numbers
    disks_used_bytes: list[Numbers]


class UseColumns(Struct, frozen=True, kw_only=True):
    """Process numbers that changed: ``position[i]`` is the place in the uses of node row ``node[i]``."""

    node: list[int]
    position: list[int]
    gpu_memory_bytes: Numbers
    utilization_sm: Numbers
    cpu_cores: Numbers
    memory_bytes: Numbers


class DeviceBookings(Struct, frozen=True, kw_only=True):
    """All bookings that are to be shown at one device; often none any more."""

    row: int
    bookings: tuple[DeviceBookingView, ...]


class FleetChange(Struct, frozen=True, kw_only=True):
    """One message of the live stream. ``after_tick`` is the tick it builds on; none in a snapshot."""

    tick: int
    after_tick: Annotated[int | None, Meta(description="Missing a tick? Ask for a new snapshot.")]
    time: Annotated[float, Meta(description="Hub time; ages are counted from it.")]
    tick_seconds: Annotated[float, Meta(description="How long until the next message is to be expected.")]
    notices: Annotated[tuple[FleetNotice, ...], Meta(description="All that are in force.")]
    totals: Totals
    nodes: list[NodeInventory]
    removed: Annotated[list[int], Meta(description="Node rows that are gone.")]
    devices: DeviceColumns
    device_details: DeviceDetailColumns
    device_states: DeviceStateColumns
    device_bookings: Annotated[list[DeviceBookings], Meta(description="Devices whose bookings changed.")]
    hosts: HostColumns
    host_states: HostStateColumns
    uses: UseColumns


class OwnCommands(Struct, frozen=True, kw_only=True):
    """All processes of the viewer itself, with full command lines: position i of every list belongs to one process.

    A process is known by its node, pid and start.
    """

    node_id: list[str]
    pid: list[int]
    started_at: Numbers
    command: list[str | None]
