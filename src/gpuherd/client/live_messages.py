"""The live stream's messages, read leniently: more than is known is passed over, what is missing is unknown."""

from __future__ import annotations

from msgspec import Struct

from gpuherd.client.herd_views import GpuBooking, GpuFacts, HostFacts, Notice, Problem

__all__ = [
    "BookingsTold",
    "GpuColumns",
    "GpuDetailColumns",
    "GpuInventory",
    "GpuStateColumns",
    "HerdChange",
    "HostColumns",
    "HostStateColumns",
    "Inventory",
    "OwnProcesses",
    "ProcessFacts",
    "Totals",
    "Use",
    "UseColumns",
]

Numbers = list[float | None]


class GpuColumns(Struct, frozen=True, kw_only=True):
    """GPUs whose numbers changed: position i of every list belongs to row ``row[i]``."""

    row: list[int] = []
    utilization_gpu: Numbers = []
    utilization_memory: Numbers = []
    memory_used_mebibytes: Numbers = []
    temperature_celsius: Numbers = []
    power_watts: Numbers = []
    fan_ratio: Numbers = []
    clock_sm_megahertz: Numbers = []


class GpuDetailColumns(Struct, frozen=True, kw_only=True):
    """GPUs of which something changed that seldom does."""

    row: list[int] = []
    power_limit_watts: Numbers = []
    performance_state: Numbers = []
    throttle_reasons: Numbers = []
    ecc_uncorrected: Numbers = []


class GpuStateColumns(Struct, frozen=True, kw_only=True):
    """GPUs whose availability changed. A state may be one that this client does not know yet."""

    row: list[int] = []
    state: list[str] = []
    reason: list[str] = []
    since: Numbers = []


class HostColumns(Struct, frozen=True, kw_only=True):
    """Nodes whose contact or host numbers changed, by node row."""

    row: list[int] = []
    received_at: Numbers = []
    cpu_ratio: Numbers = []
    load_1m: Numbers = []
    memory_used_mebibytes: Numbers = []


class HostStateColumns(Struct, frozen=True, kw_only=True):
    """Nodes of which something changed that seldom does."""

    row: list[int] = []
    state: list[str] = []
    reason: list[str] = []
    interval_seconds: Numbers = []
    uptime_seconds: Numbers = []
    clock_skew_seconds: Numbers = []


class UseColumns(Struct, frozen=True, kw_only=True):
    """Process numbers that changed: ``position[i]`` is the place in the uses of node row ``node[i]``."""

    node: list[int] = []
    position: list[int] = []
    gpu_memory_bytes: Numbers = []
    utilization_sm: Numbers = []
    cpu_cores: Numbers = []
    memory_bytes: Numbers = []


class GpuInventory(Struct, frozen=True, kw_only=True):
    """A GPU or slice, and the row under which its numbers arrive."""

    row: int
    short_name: str = ""
    facts: GpuFacts


class ProcessFacts(Struct, frozen=True, kw_only=True):
    """A process on some GPU of a node."""

    pid: int
    started_at: float | None = None
    user: str | None = None
    command: str | None = None
    container: str | None = None
    job: str | None = None
    is_gone: bool = False


class Use(Struct, frozen=True, kw_only=True):
    """One process on one GPU; both by their position in the node's lists."""

    process: int
    device: int
    kind: str = "compute"


class Inventory(Struct, frozen=True, kw_only=True):
    """A node: all that is not a number."""

    row: int
    id: str
    name: str
    way: str = ""
    place: int = 0
    host: HostFacts | None = None
    devices: tuple[GpuInventory, ...] = ()
    processes: tuple[ProcessFacts, ...] = ()
    uses: tuple[Use, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


class BookingsTold(Struct, frozen=True, kw_only=True):
    """All bookings that are to be shown at one GPU; often none any more."""

    row: int
    bookings: tuple[GpuBooking, ...] = ()


class Totals(Struct, frozen=True, kw_only=True):
    """How many are in which state. A partitioned GPU is counted through its slices."""

    nodes: dict[str, int] = {}
    nodes_in_fault: int = 0
    devices: dict[str, int] = {}
    slices: dict[str, int] = {}
    """Those of ``devices`` that are slices."""


class HerdChange(Struct, frozen=True, kw_only=True):
    """One message. ``after_tick`` is the tick it builds on; none in a snapshot."""

    tick: int
    after_tick: int | None = None
    time: float
    """By the hub's clock, epoch seconds."""
    tick_seconds: float = 1.0
    notices: tuple[Notice, ...] = ()
    totals: Totals = Totals()
    nodes: list[Inventory] = []
    removed: list[int] = []
    devices: GpuColumns = GpuColumns()
    device_details: GpuDetailColumns = GpuDetailColumns()
    device_states: GpuStateColumns = GpuStateColumns()
    device_bookings: list[BookingsTold] = []
    hosts: HostColumns = HostColumns()
    host_states: HostStateColumns = HostStateColumns()
    uses: UseColumns = UseColumns()


class OwnProcesses(Struct, frozen=True, kw_only=True):
    """All processes of whoever looks, with full command lines: position i of every list belongs to one process."""

    node_id: list[str] = []
    pid: list[int] = []
    started_at: Numbers = []
    command: list[str | None] = []
