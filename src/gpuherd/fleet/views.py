"""What every face of the product shows: nodes, devices, processes, users and totals as API structs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.bookings import BookingUse, EpochSeconds
from gpuherd.model.devices import DEVICE_STATES, DeviceFacts, DeviceSample, DeviceState
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessUse, UseKind
from gpuherd.model.reports import Problem
from gpuherd.model.targets import NodeWay

__all__ = [
    "DEVICE_STATES",
    "NODE_STATES",
    "Availability",
    "BookingPhase",
    "DeviceBookingView",
    "DeviceInventory",
    "DevicePlace",
    "DeviceState",
    "DeviceView",
    "FleetNotice",
    "FleetView",
    "ModelTotals",
    "NodeInventory",
    "NodeState",
    "NodeView",
    "ProcessView",
    "Totals",
    "UserView",
]

NodeState = Literal["live", "stale", "offline", "never"]
NODE_STATES: tuple[NodeState, ...] = ("live", "stale", "offline", "never")


class Availability(Struct, frozen=True, kw_only=True):
    """Whether a device can be had: one state, why, and since when."""

    state: DeviceState
    reason: str
    since: Annotated[float | None, Meta(description="Hub time, UTC epoch seconds.")]


class ProcessView(Struct, frozen=True, kw_only=True):
    """One process on one device."""

    pid: int
    kind: UseKind
    user: str | None
    command: str | None
    started_at: Annotated[float | None, Meta(description="UTC epoch seconds by the node's clock.")]
    container: str | None
    job: str | None
    is_gone: bool
    gpu_memory_bytes: int | None
    utilization_sm: float | None
    cpu_cores: float | None
    memory_bytes: int | None


BookingPhase = Literal["past", "current", "next"]


class DeviceBookingView(Struct, frozen=True, kw_only=True):
    """A booking at its device: the one that runs, the one after it, or one that ended in the last two days."""

    id: int
    holder: Annotated[str, Meta(description="Who has it; to the public, a pseudonym.")]
    title: Annotated[str | None, Meta(description="None: not told to who asks.")]
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    phase: BookingPhase
    use: Annotated[
        BookingUse | None,
        Meta(description="What happens on the device during the booking; none before and after it."),
    ] = None


class DeviceView(Struct, frozen=True, kw_only=True):
    """One GPU or slice with everything known of it."""

    node_id: str
    short_name: Annotated[str, Meta(description="The product name without the words everyone leaves out.")]
    facts: DeviceFacts
    sample: DeviceSample
    availability: Availability
    processes: tuple[ProcessView, ...]
    bookings: Annotated[tuple[DeviceBookingView, ...], Meta(description="In the order of their times.")] = ()


class NodeView(Struct, frozen=True, kw_only=True):
    """One node with its devices; ``host`` is none until its first report."""

    id: str
    name: Annotated[str, Meta(description="The shown name.")]
    way: Annotated[NodeWay, Meta(description="How its reports reach the hub.")]
    state: NodeState
    reason: str
    received_at: Annotated[float | None, Meta(description="Hub time of the last live report.")]
    age_seconds: float | None
    interval_seconds: float | None
    clock_skew_seconds: Annotated[
        float | None, Meta(description="How far the node's clock is ahead of the hub's.")
    ]
    host: HostFacts | None
    host_sample: HostSample
    disks_used_bytes: tuple[int | None, ...]
    devices: tuple[DeviceView, ...]
    problems: Annotated[tuple[Problem, ...], Meta(description="What the node says is wrong; its own times.")]
    notes: Annotated[
        tuple[Problem, ...], Meta(description="What the hub has to say of the node; the hub's times.")
    ]


class ModelTotals(Struct, frozen=True, kw_only=True):
    """How many devices of one model are in which state."""

    short_name: str
    memory_total_bytes: int | None
    counts: dict[DeviceState, int]


class Totals(Struct, frozen=True, kw_only=True):
    """The herd in numbers. A partitioned GPU is counted through its slices, not twice."""

    nodes: dict[NodeState, int]
    devices: dict[DeviceState, int]
    models: tuple[ModelTotals, ...]


class FleetView(Struct, frozen=True, kw_only=True):
    """Everything, as nested objects: for scripts. The page uses the stream."""

    time: Annotated[
        float, Meta(description="When the hub last judged the herd: its own time, UTC epoch seconds.")
    ]
    tick: int
    notices: tuple[FleetNotice, ...]
    totals: Totals
    nodes: tuple[NodeView, ...]


class DevicePlace(Struct, frozen=True, kw_only=True):
    """A device by where it is."""

    node_id: str
    index: int
    uuid: str
    state: DeviceState


class UserView(Struct, frozen=True, kw_only=True):
    """What one user holds right now; user ``None`` gathers the processes whose owner is unknown."""

    user: str | None
    devices: tuple[DevicePlace, ...]
    processes: int
    gpu_memory_bytes: int
    busy_devices: int
    held_devices: int


class FleetNotice(Struct, frozen=True, kw_only=True):
    """Something about the whole herd that everyone who looks should know."""

    code: str
    message: str
    since: Annotated[float | None, Meta(description="Hub time, UTC epoch seconds.")] = None


class DeviceInventory(Struct, frozen=True, kw_only=True):
    """A device in the live stream: its facts and the row under which its numbers arrive."""

    row: int
    short_name: str
    facts: DeviceFacts


class NodeInventory(Struct, frozen=True, kw_only=True):
    """A node in the live stream: all that is not a number. Sent again whenever any of it changes."""

    row: int
    id: str
    name: str
    way: NodeWay
    place: Annotated[int, Meta(description="Nodes are sorted by this, then by name.")]
    host: HostFacts | None
    devices: tuple[DeviceInventory, ...]
    processes: tuple[Process, ...]
    uses: tuple[ProcessUse, ...]
    problems: Annotated[tuple[Problem, ...], Meta(description="What the node says is wrong; its own times.")]
    notes: Annotated[
        tuple[Problem, ...], Meta(description="What the hub has to say of the node; the hub's times.")
    ]
