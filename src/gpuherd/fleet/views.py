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
    """Whether a device is available: its state, the reason, and since when."""

    state: DeviceState
    reason: str
    since: Annotated[float | None, Meta(description="Hub time, UTC epoch seconds.")]
    not_checked: Annotated[
        tuple[str, ...],
        Meta(
            description="Hardware checks that could not be read, and therefore do not prevent *free*: "
            "slowdown, ecc, row_remap, page_retirement, recovery_action, xid."
        ),
    ] = ()


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
    """A booking of a device: the current one, the next one, or one that ended in the last three days."""

    id: int
    holder: Annotated[str, Meta(description="Holder; for the public, a pseudonym.")]
    title: Annotated[str | None, Meta(description="Null: not visible to the viewer.")]
    starts_at: EpochSeconds
    ends_at: EpochSeconds
    phase: BookingPhase
    use: Annotated[
        BookingUse | None,
        Meta(description="How the device is used during the booking; null before and after it."),
    ] = None


MissingSince = Annotated[
    float | None,
    Meta(
        description=(
            "Hub time (UTC epoch seconds) since which its node no longer reports the device; null while it "
            "does."
        )
    ),
]


class DeviceView(Struct, frozen=True, kw_only=True):
    """One GPU or slice with everything known about it."""

    node_id: str
    short_name: Annotated[str, Meta(description="Product name without common words.")]
    facts: DeviceFacts
    sample: DeviceSample
    availability: Availability
    processes: tuple[ProcessView, ...]
    bookings: Annotated[tuple[DeviceBookingView, ...], Meta(description="In the order of their times.")] = ()
    missing_since: MissingSince = None


class NodeView(Struct, frozen=True, kw_only=True):
    """One node with its devices; ``host`` is null until its first report."""

    id: str
    name: Annotated[str, Meta(description="Display name.")]
    way: Annotated[NodeWay, Meta(description="Connection: how its reports reach the hub.")]
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
    problems: Annotated[
        tuple[Problem, ...], Meta(description="Problems that the node reports, with node times.")
    ]
    notes: Annotated[
        tuple[Problem, ...], Meta(description="The hub's remarks about the node, with hub times.")
    ]


class ModelTotals(Struct, frozen=True, kw_only=True):
    """How many devices of one model are in which state."""

    short_name: str
    memory_total_bytes: int | None
    counts: dict[DeviceState, int]


class Totals(Struct, frozen=True, kw_only=True):
    """Totals of the herd. A split GPU is counted as its slices, not twice."""

    nodes: dict[NodeState, int]
    nodes_in_fault: Annotated[
        int,
        Meta(
            description="Live nodes without a usable GPU: the driver hangs, or all are missing or in fault."
        ),
    ] = 0
    devices: Annotated[dict[DeviceState, int], Meta(description="GPUs and slices together.")]
    slices: Annotated[dict[DeviceState, int], Meta(description="Those of `devices` that are slices (MIG).")]
    models: tuple[ModelTotals, ...]


class FleetView(Struct, frozen=True, kw_only=True):
    """Everything, as nested objects: for scripts. The page uses the stream."""

    time: Annotated[
        float, Meta(description="When the hub last updated all states: hub time, UTC epoch seconds.")
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
    """What one user holds now; a null user stands for processes whose owner is unknown."""

    user: str | None
    devices: tuple[DevicePlace, ...]
    processes: int
    gpu_memory_bytes: int
    busy_devices: int
    held_devices: int


class FleetNotice(Struct, frozen=True, kw_only=True):
    """Something about the whole herd that every viewer should know."""

    code: str
    message: str
    since: Annotated[float | None, Meta(description="Hub time, UTC epoch seconds.")] = None


class DeviceInventory(Struct, frozen=True, kw_only=True):
    """A device in the live stream: its facts and the row of its numbers."""

    row: int
    short_name: str
    facts: DeviceFacts
    missing_since: MissingSince = None


class NodeInventory(Struct, frozen=True, kw_only=True):
    """A node in the live stream: everything that is not a number. Sent again when any of it changes."""

    row: int
    id: str
    name: str
    way: NodeWay
    place: Annotated[int, Meta(description="Nodes are sorted by this, then by name.")]
    host: HostFacts | None
    devices: tuple[DeviceInventory, ...]
    processes: tuple[Process, ...]
    uses: tuple[ProcessUse, ...]
    problems: Annotated[
        tuple[Problem, ...], Meta(description="Problems that the node reports, with node times.")
    ]
    notes: Annotated[
        tuple[Problem, ...], Meta(description="The hub's remarks about the node, with hub times.")
    ]
