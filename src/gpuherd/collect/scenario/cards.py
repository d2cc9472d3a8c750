"""The parts of a scenario: GPUs, slices, processes, faults. Field names are the keys of the file."""

from __future__ import annotations

import fnmatch
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gpuherd.collect.scenario.waves import Metric
from gpuherd.model.hosts import HostFacts

__all__ = [
    "Fault",
    "Latency",
    "MigSlice",
    "Scenario",
    "ScheduledXid",
    "SimulatedGpu",
    "SimulatedHost",
    "SimulatedProcess",
]

MAX_GPUS = 64
MAX_SLICES = 64

Text = Annotated[str, Meta(max_length=4096)]
Whole = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Seconds = Annotated[float, Meta(ge=-1e11, le=1e11)]
GpuIndex = Annotated[int, Meta(ge=0, lt=MAX_GPUS)]


class _Part(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A typo in a scenario must not pass for "not supported"."""


class SimulatedProcess(_Part, frozen=True, kw_only=True):
    """A process on a GPU or slice: a named fake (``user``, ``command``, …) or, without these, a real local pid."""

    pid: Annotated[int, Meta(ge=1, le=2**32 - 2)]
    type: Literal["compute", "graphics", "compute+graphics"] = "compute"
    memory_used_bytes: Metric = None
    sm_percent: Metric = None
    memory_percent: Metric = None
    encoder_percent: Metric = None
    decoder_percent: Metric = None
    gpu_instance: Whole | None = None
    compute_instance: Whole | None = None
    alive_from: Seconds | None = field(name="from", default=None)
    alive_until: Seconds | None = field(name="until", default=None)
    user: Text | None = None
    command: Text | None = None
    started_at: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    age_seconds: Annotated[float, Meta(ge=0, le=1e10)] | None = None
    host_cpu_percent: Metric = None
    host_memory_bytes: Metric = None
    container: Text | None = None
    job: Text | None = None

    @property
    def is_fake(self) -> bool:
        """Whether the scenario itself says who this is."""
        return self.user is not None or self.command is not None

    def is_alive(self, t: float) -> bool:
        """Whether it runs ``t`` seconds into the scenario."""
        return (self.alive_from is None or self.alive_from <= t) and (
            self.alive_until is None or t < self.alive_until
        )


class MigSlice(_Part, frozen=True, kw_only=True):
    """A slice of a GPU in MIG mode."""

    uuid: Annotated[str, Meta(min_length=1, max_length=95)]
    profile: Annotated[str, Meta(pattern=r"^(\d+c\.)?\d+g\.\d+gb", max_length=40)]
    gpu_instance: Whole
    compute_instance: Whole
    memory_total_bytes: Metric = None
    memory_reserved_bytes: Metric = None
    memory_used_bytes: Metric = None
    bar1_total_bytes: Metric = None
    bar1_used_bytes: Metric = None
    processes: Annotated[tuple[SimulatedProcess, ...], Meta(max_length=4096)] = ()


Brand = Literal[
    "unknown",
    "quadro",
    "tesla",
    "nvs",
    "grid",
    "geforce",
    "titan",
    "quadro_rtx",
    "nvidia_rtx",
    "nvidia",
    "geforce_rtx",
    "titan_rtx",
]
Architecture = Literal[
    "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"
]


class SimulatedGpu(_Part, frozen=True, kw_only=True):
    """A card. Absent, ``None``: its driver answers "not supported"."""

    uuid: Annotated[str, Meta(min_length=1, max_length=95)]
    name: Annotated[str, Meta(max_length=95)]
    serial: Annotated[str, Meta(max_length=29)] | None = None
    vbios_version: Annotated[str, Meta(max_length=31)] | None = None
    brand: Brand | None = None
    architecture: Architecture | None = None
    compute_capability: Annotated[str, Meta(pattern=r"^\d+\.\d+$")] | None = None
    compute_mode: Literal["default", "exclusive_process", "prohibited"] | None = None
    pci_bus_id: Annotated[str, Meta(pattern=r"^[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.[0-7]$")] | None = None
    pci_device_id: Whole | None = None
    pci_subsystem_id: Whole | None = None
    minor_number: Whole | None = None
    persistence_mode: bool | None = None
    display_active: bool | None = None
    display_mode: bool | None = None
    ecc_mode: bool | None = None
    mig_mode: bool | None = None
    mig_slices_max: Whole | None = None

    memory_total_bytes: Metric = None
    memory_reserved_bytes: Metric = None
    memory_used_bytes: Metric = None
    bar1_total_bytes: Metric = None
    bar1_used_bytes: Metric = None
    utilization_gpu_percent: Metric = None
    utilization_memory_percent: Metric = None
    utilization_encoder_percent: Metric = None
    utilization_decoder_percent: Metric = None
    temperature_celsius: Metric = None
    temperature_memory_celsius: Metric = None
    temperature_slowdown_celsius: Metric = None
    temperature_shutdown_celsius: Metric = None
    power_watts: Metric = None
    power_limit_watts: Metric = None
    power_limit_default_watts: Metric = None
    power_limit_min_watts: Metric = None
    power_limit_max_watts: Metric = None
    energy_joules: Metric = None
    fan_percent: Metric = None
    clock_graphics_mhz: Metric = None
    clock_sm_mhz: Metric = None
    clock_memory_mhz: Metric = None
    clock_video_mhz: Metric = None
    clock_graphics_max_mhz: Metric = None
    clock_sm_max_mhz: Metric = None
    clock_memory_max_mhz: Metric = None
    clock_video_max_mhz: Metric = None
    performance_state: Metric = None
    throttle_reasons: Metric = None
    ecc_corrected_volatile: Metric = None
    ecc_uncorrected_volatile: Metric = None
    ecc_corrected_aggregate: Metric = None
    ecc_uncorrected_aggregate: Metric = None
    remapped_rows_corrected: Metric = None
    remapped_rows_uncorrected: Metric = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failed: bool | None = None
    retired_pages_pending: bool | None = None
    recovery_action: Metric = None
    pcie_tx_bytes_per_second: Metric = None
    pcie_rx_bytes_per_second: Metric = None
    pcie_replay_count: Metric = None
    pcie_link_generation: Metric = None
    pcie_link_width: Metric = None
    pcie_link_generation_max: Metric = None
    pcie_link_width_max: Metric = None

    processes: Annotated[tuple[SimulatedProcess, ...], Meta(max_length=4096)] = ()
    mig_slices: Annotated[tuple[MigSlice, ...], Meta(max_length=MAX_SLICES)] = ()


class _Entry(_Part, frozen=True, kw_only=True):
    """Something about calls: which functions (shell pattern over NVML's symbols), and of which GPU."""

    function: Annotated[str, Meta(min_length=1)]
    gpu: GpuIndex | None = None

    def concerns(self, function: str, gpu: int | None) -> bool:
        """An entry with a GPU does not concern calls that name none."""
        return (self.gpu is None or self.gpu == gpu) and fnmatch.fnmatchcase(function, self.function)


class Fault(_Entry, frozen=True, kw_only=True):
    """A call that goes wrong: an NVML error number, a hang, a hang with the library's lock held, a crash."""

    effect: Annotated[int, Meta(ge=1, le=999)] | Literal["hang", "hang_locked", "crash"]
    active_from: Seconds | None = field(name="from", default=None)
    active_until: Seconds | None = field(name="until", default=None)

    def is_active(self, t: float) -> bool:
        """Whether it strikes ``t`` seconds into the scenario."""
        return (self.active_from is None or self.active_from <= t) and (
            self.active_until is None or t < self.active_until
        )


class Latency(_Entry, frozen=True, kw_only=True):
    """A call that takes its time; all that match add up."""

    seconds: Annotated[float, Meta(ge=0, le=3600)]


class ScheduledXid(_Part, frozen=True, kw_only=True):
    """A driver error event, delivered ``at`` that second."""

    gpu: GpuIndex
    at: Seconds
    xid: Whole


class SimulatedHost(_Part, frozen=True, kw_only=True):
    """The machine around the cards."""

    facts: HostFacts
    cpu_percent: Metric = None
    load_1m: Metric = None
    memory_used_bytes: Metric = None


class Scenario(_Part, frozen=True, kw_only=True):
    """A whole node: versions, cards, and what goes wrong when."""

    driver_version: Annotated[str, Meta(max_length=79)]
    description: Text | None = None
    cuda_version: Annotated[str, Meta(pattern=r"^\d+\.\d+$")] | None = None
    nvml_version: Annotated[str, Meta(max_length=79)] | None = None
    epoch: Seconds | None = None
    frozen_time: Seconds | None = None
    host: SimulatedHost | None = None
    gpus: Annotated[tuple[SimulatedGpu, ...], Meta(max_length=MAX_GPUS)] = ()
    faults: Annotated[tuple[Fault, ...], Meta(max_length=1024)] = ()
    latencies: Annotated[tuple[Latency, ...], Meta(max_length=1024)] = ()
    xids: Annotated[tuple[ScheduledXid, ...], Meta(max_length=65_536)] = ()

    def time(self, now: float, started: float) -> float:
        """Seconds into the scenario at Unix time ``now`` for a reader that began at ``started``."""
        if self.frozen_time is not None:
            return float(self.frozen_time)
        return now - (started if self.epoch is None else self.epoch)
