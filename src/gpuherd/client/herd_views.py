"""The herd as the hub tells it, as far as a terminal shows it. A newer hub may tell more; that is passed over."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from gpuherd.model.text import clip

__all__ = [
    "UNTOLD_STATE",
    "Availability",
    "Disk",
    "Gpu",
    "GpuBooking",
    "GpuFacts",
    "GpuSample",
    "Herd",
    "HostFacts",
    "HostSample",
    "Node",
    "Notice",
    "Problem",
    "UsingProcess",
]

UNTOLD_STATE = "unknown"
"""What a device is taken for whose state is not told: never for a free one."""


class Availability(Struct, frozen=True, kw_only=True, gc=False):
    """Whether a device can be had. ``state`` may be one that this client does not know yet."""

    state: str = UNTOLD_STATE
    reason: str = ""
    since: float | None = None
    """By the hub's clock, epoch seconds."""
    not_checked: tuple[str, ...] = ()


class UsingProcess(Struct, frozen=True, kw_only=True, gc=False):
    """One process on one device."""

    pid: int
    kind: str = "compute"
    user: str | None = None
    command: str | None = None
    started_at: float | None = None
    container: str | None = None
    job: str | None = None
    is_gone: bool = False
    gpu_memory_bytes: int | None = None
    utilization_sm: float | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None


class GpuBooking(Struct, frozen=True, kw_only=True, gc=False):
    """A booking at its device; ``phase`` is past, current or next."""

    id: int
    holder: str = ""
    title: str | None = None
    starts_at: int
    ends_at: int
    phase: str = "current"
    use: str | None = None


class GpuFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What a GPU or slice is."""

    uuid: str
    index: int
    name: str
    kind: str = "gpu"
    vendor: str = "nvidia"
    parent_uuid: str | None = None
    is_partitioned: bool = False
    profile: str | None = None
    memory_total_bytes: int | None = None
    memory_basis: str = "framebuffer"
    pci_bus_id: str | None = None
    compute_capability: str | None = None
    clock_sm_max_hertz: float | None = None
    power_limit_default_watts: float | None = None


class GpuSample(Struct, frozen=True, kw_only=True, gc=False):
    """What it does now; none is unknown, never zero."""

    utilization_gpu: float | None = None
    utilization_memory: float | None = None
    utilization_encoder: float | None = None
    utilization_decoder: float | None = None
    memory_used_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    fan_ratio: float | None = None
    clock_sm_hertz: float | None = None
    clock_memory_hertz: float | None = None
    performance_state: int | None = None
    throttle_reasons: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None


class Gpu(Struct, frozen=True, kw_only=True, gc=False):
    """One GPU or slice with everything known of it."""

    node_id: str
    short_name: str = ""
    facts: GpuFacts
    sample: GpuSample = GpuSample()
    availability: Availability = Availability()
    processes: tuple[UsingProcess, ...] = ()
    bookings: tuple[GpuBooking, ...] = ()
    missing_since: float | None = None
    """By the hub's clock, epoch seconds; None: its node reports it."""

    @property
    def uuid(self) -> str:
        """The key of the device everywhere."""
        return self.facts.uuid

    @property
    def state(self) -> str:
        """Its availability in a word."""
        return self.availability.state

    @property
    def users(self) -> tuple[str | None, ...]:
        """Who computes on it, each once, in the order of their processes; none stands for an unknown owner."""
        if not self.processes:
            return ()
        return tuple(dict.fromkeys([process.user for process in self.processes if process.kind == "compute"]))


class Disk(Struct, frozen=True, kw_only=True, gc=False):
    """A disk of a host."""

    mount: str = ""
    total_bytes: int | None = None


class HostFacts(Struct, frozen=True, kw_only=True, gc=False):
    """What the machine is."""

    hostname: str = ""
    os: str | None = None
    kernel: str | None = None
    cpu_model: str | None = None
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    agent_version: str | None = None
    disks: tuple[Disk, ...] = ()


class HostSample(Struct, frozen=True, kw_only=True, gc=False):
    """What the machine does now."""

    cpu_ratio: float | None = None
    load_1m: float | None = None
    memory_used_bytes: int | None = None
    uptime_seconds: float | None = None


class Problem(Struct, frozen=True, kw_only=True, gc=False):
    """Something that is wrong."""

    code: str = ""
    message: str = ""
    device_uuid: str | None = None
    is_fault: bool = False
    since: float | None = None


class Node(Struct, frozen=True, kw_only=True, gc=False):
    """One node with its devices; a node that never reported has none."""

    id: str
    name: str
    way: str = ""
    state: str = UNTOLD_STATE
    reason: str = ""
    received_at: float | None = None
    age_seconds: float | None = None
    interval_seconds: float | None = None
    clock_skew_seconds: float | None = None
    host: HostFacts | None = None
    host_sample: HostSample = HostSample()
    disks_used_bytes: tuple[int | None, ...] = ()
    devices: tuple[Gpu, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def units(self) -> tuple[Gpu, ...]:
        """The devices that someone can have: a partitioned GPU through its slices, not twice."""
        return tuple([gpu for gpu in self.devices if not gpu.facts.is_partitioned])

    @property
    def is_in_fault(self) -> bool:
        """Whether it reports, but none of its GPUs can be used."""
        units = self.units
        return self.state == "live" and (
            all(gpu.state == "fault" for gpu in units)
            if units
            else any(problem.is_fault and problem.device_uuid is None for problem in self.problems)
        )

    def place(self, gpu: Gpu) -> str:
        """Give ``gpu07/3``, of a slice ``gpu07/3.1``; of a slice whose GPU is not told, the start of its UUID."""
        return f"{self.name}/{self.place_here(gpu)}"

    def place_here(self, gpu: Gpu) -> str:
        """Give the part of its place that tells devices of one node apart: ``3``, of a slice ``3.1``."""
        if gpu.facts.parent_uuid is None:
            return str(gpu.facts.index)
        for parent in self.devices:
            if parent.uuid == gpu.facts.parent_uuid:
                return f"{parent.facts.index}.{gpu.facts.index}"
        return clip(gpu.uuid, 13)


class Notice(Struct, frozen=True, kw_only=True, gc=False):
    """Something about the whole herd that everyone who looks should know."""

    code: str = ""
    message: str = ""
    since: float | None = None


class Herd(Struct, frozen=True, kw_only=True, gc=False):
    """Everything at one moment."""

    time: float
    """By the hub's clock, epoch seconds."""
    notices: tuple[Notice, ...] = ()
    nodes: tuple[Node, ...] = ()

    def units(self) -> Iterator[tuple[Node, Gpu]]:
        """Give every device that someone can have, with its node."""
        for node in self.nodes:
            for gpu in node.devices:
                if not gpu.facts.is_partitioned:
                    yield node, gpu
