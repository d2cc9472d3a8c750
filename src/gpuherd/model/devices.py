"""GPUs and MIG slices: what they are (facts) and what they do right now (samples)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntFlag
from typing import Annotated, Literal, Protocol, get_args

from msgspec import Meta, Struct

from gpuherd.model.text import Identifier, Label
from gpuherd.model.units import Bytes, BytesPerSecond, Celsius, Count, Hertz, Joules, Level, Ratio, Watts

__all__ = [
    "DEVICE_STATES",
    "HEALTH_CHECKS",
    "SLOWED_BY_HARDWARE",
    "DeviceFacts",
    "DeviceKind",
    "DeviceSample",
    "DeviceState",
    "HealthCheck",
    "MemoryBasis",
    "ThrottleReason",
    "in_order",
    "is_worldwide",
]

# Ids that a vendor gives to one card in the world; those made up for tools that tell none are not compared.
_WORLDWIDE = re.compile(
    r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|GPU-[0-9a-f]{16}", re.IGNORECASE
)

DeviceKind = Literal["gpu", "slice"]
MemoryBasis = Literal["framebuffer", "framebuffer_with_reserved", "host"]
HealthCheck = Literal["slowdown", "ecc", "row_remap", "page_retirement", "recovery_action", "xid"]
HEALTH_CHECKS: tuple[HealthCheck, ...] = get_args(HealthCheck)
"""What a source may be able to read of a device's health. What it cannot read does not count against the device."""
DeviceState = Literal["free", "busy", "held", "booked", "fault", "stale", "offline", "unknown"]
DEVICE_STATES: tuple[DeviceState, ...] = (
    "free",
    "busy",
    "held",
    "booked",
    "fault",
    "stale",
    "offline",
    "unknown",
)
"""In the order of their codes, which are kept on disk: new ones come last."""


class ThrottleReason(IntFlag):
    """Why a device runs below its clocks; the vendor's own bits are mapped onto these."""

    IDLE = 1
    APPLICATION_CLOCKS = 2
    POWER_CAP = 4
    HARDWARE_SLOWDOWN = 8
    SYNC_BOOST = 16
    SOFTWARE_THERMAL = 32
    HARDWARE_THERMAL = 64
    POWER_BRAKE = 128
    DISPLAY_CLOCKS = 256
    OTHER = 512


SLOWED_BY_HARDWARE = (
    ThrottleReason.HARDWARE_SLOWDOWN | ThrottleReason.HARDWARE_THERMAL | ThrottleReason.POWER_BRAKE
)
"""The reasons for which an idle device is a fault."""


class DeviceFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inventory of a GPU or slice. It changes only with the machine or its MIG layout."""

    uuid: Annotated[Identifier, Meta(description="The vendor's unique id; identifies the device everywhere.")]
    index: Annotated[
        int,
        Meta(
            ge=0,
            le=4096,
            description="Position in the driver's order; for a slice, its position within the GPU.",
        ),
    ]
    name: Annotated[Label, Meta(description="Product name as reported by the driver.")]
    kind: Annotated[DeviceKind, Meta(description="A whole GPU or a MIG slice of one.")] = "gpu"
    vendor: Annotated[Label, Meta(description="nvidia, amd, intel or simulated.")] = "nvidia"
    parent_uuid: Annotated[Identifier | None, Meta(description="GPU of a slice.")] = None
    is_partitioned: Annotated[
        bool, Meta(description="MIG is on: the slices do the work, not this device.")
    ] = False
    profile: Annotated[Label | None, Meta(description="MIG profile of a slice, such as 1g.10gb.")] = None
    memory_total_bytes: Annotated[Bytes | None, Meta(description="Memory that the device can use.")] = None
    memory_basis: Annotated[
        MemoryBasis,
        Meta(
            description="What the memory values include: the framebuffer; the framebuffer with the driver's reserve "
            "(old drivers); or the host's memory on unified-memory machines."
        ),
    ] = "framebuffer"
    pci_bus_id: Annotated[Label | None, Meta(description="PCI address, such as 00000000:3B:00.0.")] = None
    compute_capability: Annotated[Label | None, Meta(description="CUDA compute capability, such as 9.0.")] = (
        None
    )
    clock_sm_max_hertz: Annotated[Hertz | None, Meta(description="Highest SM clock.")] = None
    power_limit_default_watts: Annotated[Watts | None, Meta(description="Default power limit.")] = None
    serial: Annotated[Label | None, Meta(description="Serial number of the board.")] = None
    gpu_instance: Annotated[
        Level | None,
        Meta(
            description="GPU instance of a slice. Slices of one GPU with the same number share their memory, so the "
            "memory values are those of all of them together."
        ),
    ] = None
    health_checks: Annotated[
        tuple[Label, ...],
        Meta(
            max_length=32,
            description="Health checks that this device supports: slowdown, ecc, row_remap, "
            "page_retirement, recovery_action, xid; newer agents may add more. Checks that are not listed "
            "were not made.",
        ),
    ] = ()


class DeviceSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Metrics of a device at one moment."""

    utilization_gpu: Annotated[
        Ratio | None, Meta(description="Share of the last period in which a kernel ran.")
    ] = None
    utilization_memory: Annotated[
        Ratio | None, Meta(description="Share of the last period in which memory was read or written.")
    ] = None
    utilization_encoder: Annotated[Ratio | None, Meta(description="Utilisation of the video encoder.")] = None
    utilization_decoder: Annotated[Ratio | None, Meta(description="Utilisation of the video decoder.")] = None
    memory_used_bytes: Annotated[Bytes | None, Meta(description="Memory allocated.")] = None
    memory_reserved_bytes: Annotated[
        Bytes | None, Meta(description="Memory reserved by driver and firmware.")
    ] = None
    temperature_celsius: Annotated[Celsius | None, Meta(description="Core temperature.")] = None
    power_watts: Annotated[Watts | None, Meta(description="Power drawn.")] = None
    power_limit_watts: Annotated[Watts | None, Meta(description="Current power limit.")] = None
    fan_ratio: Annotated[Ratio | None, Meta(description="Fan speed as a share of its maximum.")] = None
    clock_sm_hertz: Annotated[Hertz | None, Meta(description="SM clock.")] = None
    clock_memory_hertz: Annotated[Hertz | None, Meta(description="Memory clock.")] = None
    performance_state: Annotated[Level | None, Meta(description="0 is the fastest; NVIDIA writes it P0.")] = (
        None
    )
    throttle_reasons: Annotated[
        Level | None, Meta(description="Sum of ThrottleReason flags; 0 is no throttling.")
    ] = None
    ecc_corrected: Annotated[
        Count | None, Meta(description="Corrected ECC errors since the driver was loaded.")
    ] = None
    ecc_uncorrected: Annotated[
        Count | None, Meta(description="Uncorrected ECC errors since the driver was loaded.")
    ] = None
    energy_joules: Annotated[Joules | None, Meta(description="Energy used since the driver was loaded.")] = (
        None
    )
    pcie_receive_bytes_per_second: Annotated[
        BytesPerSecond | None,
        Meta(description="PCIe throughput to the device (off by default: expensive to read)."),
    ] = None
    pcie_send_bytes_per_second: Annotated[
        BytesPerSecond | None,
        Meta(description="PCIe throughput from the device (off by default: expensive to read)."),
    ] = None


def is_worldwide(uuid: str) -> bool:
    """Whether a vendor gives this id to one card in the world."""
    return _WORLDWIDE.fullmatch(uuid) is not None


class _Placed(Protocol):
    @property
    def uuid(self) -> str: ...

    @property
    def index(self) -> int: ...

    @property
    def parent_uuid(self) -> str | None: ...


def in_order(devices: Sequence[_Placed]) -> list[int]:
    """Give the positions of a node's devices by index, each GPU followed by its slices.

    Missing GPUs are at the end of the list. Each goes before the GPU that has its index now, because the driver numbers
    only the GPUs that are present.
    """
    gpus = {device.uuid: (device.index, -position) for position, device in enumerate(devices)}

    def rank(position: int) -> tuple[tuple[int, int], bool, int]:
        device = devices[position]
        if device.parent_uuid is None:
            return gpus[device.uuid], False, 0
        return gpus.get(device.parent_uuid, gpus[device.uuid]), True, device.index

    return sorted(range(len(devices)), key=rank)
