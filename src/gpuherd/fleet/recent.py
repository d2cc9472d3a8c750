"""The last minutes of every device and host, for charts that are not empty when they are opened.

A ring in memory: 15 minutes, one moment each 5 seconds, in 32 bits. 8,000 devices on 1,000 nodes take 30 to 40 MB, and
a moment costs under a millisecond. Nothing of it is kept over a restart. NaN is unknown, and also what stands where a
node was not live: a gap stays a gap.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from gpuherd.fleet.clock import Clock
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DEVICE_COLUMN, HOST_COLUMN, Array, DeviceRows, Floats, NodeRows
from gpuherd.fleet.stream_columns import STEP, Numbers, numbers
from gpuherd.fleet.views import NODE_STATES
from gpuherd.model.columns import COLUMNS

__all__ = [
    "INTERVAL_SECONDS",
    "MAX_DEVICES_TOLD",
    "MOMENTS",
    "Recent",
    "RecentDevice",
    "RecentHost",
    "RecentView",
]

INTERVAL_SECONDS = 5.0
MOMENTS = 180
MAX_DEVICES_TOLD = 64
"""In one answer: some 400 kB. No machine has more GPUs, but one may say so."""

SPARE_PART = 4
"""A moment that has to become wider gets a quarter more than it needs."""

_LIVE = NODE_STATES.index("live")


class RecentDevice(Struct, frozen=True):
    """One device's last minutes; each list is as long as the view's ``times``."""

    utilization_gpu: Numbers
    memory_used_bytes: Numbers
    temperature_celsius: Numbers
    power_watts: Numbers
    clock_sm_hertz: Numbers


class RecentHost(Struct, frozen=True):
    """The host's last minutes; each list is as long as the view's ``times``."""

    cpu_ratio: Numbers
    memory_used_bytes: Numbers


class RecentView(Struct, frozen=True, kw_only=True):
    """Metrics of a node in the last minutes, oldest first. Null: unknown, or the node was not live."""

    node_id: str
    interval_seconds: Annotated[float, Meta(description="Usual time between two points.")]
    times: Annotated[list[float], Meta(description="UTC epoch seconds by the hub's clock.")]
    host: RecentHost
    devices: Annotated[
        dict[str, RecentDevice],
        Meta(description=f"By the device's uuid; at most {MAX_DEVICES_TOLD} of them."),
    ]


class DevicePast(NamedTuple):
    """What is remembered of some devices."""

    places: dict[str, int]
    """By uuid, the device's place in the block."""
    block: NDArray[np.float32]
    """Moments × columns × devices."""


class _Ring:
    """Moments, each columns × rows. A moment is written as a whole, rows of one owner are read and forgotten.

    Each moment has an array of its own, as wide as the herd was then: a herd that grows copies nothing.
    """

    def __init__(self, part: str, names: tuple[str, ...], places: dict[str, int]) -> None:
        units = {column.name: column.unit for column in COLUMNS[part]}
        self._names = names
        self._steps = [STEP.get(units[name], 1.0) for name in names]
        self._places = [places[name] for name in names]
        self._moments: list[NDArray[np.float32]] = [self._unknown(0)] * MOMENTS

    def _unknown(self, width: int) -> NDArray[np.float32]:
        return np.full((len(self._names), width), np.nan, dtype=np.float32)

    @property
    def size_bytes(self) -> int:
        return sum(values.nbytes for values in self._moments)

    def record(self, moment: int, values: Floats, is_live: Array) -> None:
        columns = values[: len(is_live), self._places].T.astype(np.float32)
        self._moments[moment] = np.where(is_live, columns, np.float32(np.nan))

    def forget(self, start: int, count: int) -> None:
        for values in self._moments if count else ():
            values[:, start : start + count] = np.nan

    def past(self, row: int) -> NDArray[np.float32]:
        """Copy all moments of a row: moments × columns."""
        unknown = self._unknown(1)[:, 0]
        return np.stack([v[:, row] if row < v.shape[1] else unknown for v in self._moments])

    def take(self, start: int, count: int) -> NDArray[np.float32]:
        """Copy all moments of some rows, moments × columns × rows, and forget them."""
        block = np.full((MOMENTS, len(self._names), count), np.nan, dtype=np.float32)
        for moment, values in enumerate(self._moments):
            there = values[:, start : start + count]
            block[moment, :, : there.shape[1]] = there
        self.forget(start, count)
        return block

    def put(self, rows: list[int], block: NDArray[np.float32]) -> None:
        """Write moments × columns × rows into these rows. All rows at once: a moment is as wide as the herd."""
        end = max(rows, default=-1) + 1
        for moment, values in enumerate(self._moments):
            if np.isnan(block[moment]).all():
                continue
            if end > values.shape[1]:
                # With some room: otherwise a node whose devices change all the time would copy it each time.
                more = self._unknown(end + end // SPARE_PART - values.shape[1])
                values = self._moments[moment] = np.hstack((values, more))  # noqa: PLW2901
            values[:, rows] = block[moment]

    def named(self, row: int, order: Array) -> dict[str, Numbers]:
        """Give a row's columns in the order of ``order``, as finely as a chart can show."""
        block = self.past(row)[order].astype(np.float64)
        return {
            name: numbers(np.round(np.round(block[:, place] / step) * step, 6), is_whole=step >= 1)
            for place, (name, step) in enumerate(zip(self._names, self._steps, strict=True))
        }


class Recent:
    """Remembers what the rows said, moment by moment. Owned by the fleet, on its event loop."""

    def __init__(self, rows: DeviceRows, node_rows: NodeRows, clock: Clock) -> None:
        self._rows = rows
        self._node_rows = node_rows
        self._clock = clock
        self._devices = _Ring("devices", RecentDevice.__struct_fields__, DEVICE_COLUMN)
        self._hosts = _Ring("host", RecentHost.__struct_fields__, HOST_COLUMN)
        self._times: Floats = np.full(MOMENTS, np.nan)
        self._next = 0
        self._recorded = -math.inf

    @property
    def size_bytes(self) -> int:
        """Tell how much memory the rings take."""
        return self._devices.size_bytes + self._hosts.size_bytes

    def record(self) -> None:
        """Remember this moment, if one is due; to be called at every tick, after the nodes' states were judged."""
        now = self._clock.monotonic()
        due = now // INTERVAL_SECONDS
        if due <= self._recorded:
            return
        self._recorded = due
        rows, nodes = self._rows, self._node_rows
        node_live = nodes.state == _LIVE
        owner = rows.node[: rows.used]
        self._devices.record(self._next, rows.values, (owner >= 0) & node_live[owner])
        self._hosts.record(self._next, nodes.values, node_live[: nodes.used])
        self._times[self._next] = now
        self._next = (self._next + 1) % MOMENTS

    def forget(self, node: Node) -> None:
        """Forget a node whose rows go to others."""
        self._devices.forget(node.start, node.count)
        self._hosts.forget(node.row, 1)

    def take_devices(self, node: Node) -> DevicePast:
        """Take the past of a node's devices out of their rows, which go to others."""
        places = {device.uuid: place for place, device in enumerate(node.devices)}
        return DevicePast(places, self._devices.take(node.start, node.count))

    def put_devices(self, node: Node, past: DevicePast) -> None:
        """Give the devices of a node that are still there their past back, wherever their rows are now."""
        kept = [
            (row, past.places[device.uuid])
            for row, device in enumerate(node.devices, node.start)
            if device.uuid in past.places
        ]
        self._devices.put([row for row, _ in kept], past.block[:, :, [place for _, place in kept]])

    def node(self, node: Node, uuids: Collection[str] | None = None) -> RecentView:
        """Give what is remembered of a node's host and of its devices, or of those named."""
        wall, now = self._clock.wall(), self._clock.monotonic()
        order = np.roll(np.arange(MOMENTS), -self._next)
        order = order[now - self._times[order] <= MOMENTS * INTERVAL_SECONDS]  # false for NaN
        wanted = [
            (row, device.uuid)
            for row, device in enumerate(node.devices, node.start)
            if uuids is None or device.uuid in uuids
        ]
        return RecentView(
            node_id=node.id,
            interval_seconds=INTERVAL_SECONDS,
            times=np.round(self._times[order] + (wall - now), 1).tolist(),
            host=RecentHost(**self._hosts.named(node.row, order)),
            devices={
                uuid: RecentDevice(**self._devices.named(row, order))
                for row, uuid in wanted[:MAX_DEVICES_TOLD]
            },
        )
