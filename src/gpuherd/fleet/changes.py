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
    """Devices whose numbers have changed: position i of every list belongs to row ``row[i]``. Values are in the
    units to which they are rounded, because they make up half of the stream.
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
    """Devices with changes in values that rarely change."""

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
    """Nodes whose contact or host metrics have changed, by node row."""

    row: list[int]
    received_at: Numbers
    cpu_ratio: Numbers
    load_1m: Numbers
    memory_used_mebibytes: Numbers


class HostStateColumns(Struct, frozen=True, kw_only=True):
    """Nodes with changes in values that rarely change."""

    row: list[int]
    state: list[NodeState]
    reason: list[str]
    interval_seconds: Numbers
    clock_skew_seconds: Numbers
    swap_used_bytes: Numbers
    uptime_seconds: Numbers
    disks_used_bytes: list[Numbers]


class UseColumns(Struct, frozen=True, kw_only=True):
    """Process metrics that have changed: ``position[i]`` is the position in the uses of node row ``node[i]``."""

    node: list[int]
    position: list[int]
    gpu_memory_bytes: Numbers
    utilization_sm: Numbers
    cpu_cores: Numbers
    memory_bytes: Numbers


class DeviceBookings(Struct, frozen=True, kw_only=True):
    """All bookings to show at one device; the list can be empty."""

    row: int
    bookings: tuple[DeviceBookingView, ...]


class FleetChange(Struct, frozen=True, kw_only=True):
    """One message of the live stream. ``after_tick`` is the tick it builds on; null in a snapshot."""

    tick: int
    after_tick: Annotated[int | None, Meta(description="If you have missed a tick, request a new snapshot.")]
    time: Annotated[float, Meta(description="Hub time; ages refer to it.")]
    tick_seconds: Annotated[float, Meta(description="Time until the next message.")]
    notices: Annotated[tuple[FleetNotice, ...], Meta(description="All current ones.")]
    totals: Totals
    nodes: list[NodeInventory]
    removed: Annotated[list[int], Meta(description="Node rows that were removed.")]
    devices: DeviceColumns
    device_details: DeviceDetailColumns
    device_states: DeviceStateColumns
    device_bookings: Annotated[list[DeviceBookings], Meta(description="Devices whose bookings changed.")]
    hosts: HostColumns
    host_states: HostStateColumns
    uses: UseColumns


class OwnCommands(Struct, frozen=True, kw_only=True):
    """All processes of the viewer, with full command lines: position i of every list belongs to one process. A
    process is identified by its node, pid and start.
    """

    node_id: list[str]
    pid: list[int]
    started_at: Numbers
    command: list[str | None]
