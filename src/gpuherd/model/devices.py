"""GPUs and MIG slices: what they are (facts) and what they do right now (samples)."""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Identifier, Label
from gpuherd.model.units import Bytes, BytesPerSecond, Celsius, Count, Hertz, Joules, Level, Ratio, Watts

__all__ = [
    "DEVICE_STATES",
    "DeviceFacts",
    "DeviceKind",
    "DeviceSample",
    "DeviceState",
    "MemoryBasis",
    "ThrottleReason",
]

DeviceKind = Literal["gpu", "slice"]
MemoryBasis = Literal["framebuffer", "framebuffer_with_reserved", "host"]
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


class DeviceFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a GPU or slice is; changes only when the machine or its MIG layout is changed."""

    uuid: Annotated[Identifier, Meta(description="The vendor's unique id; the key of the device everywhere.")]
    index: Annotated[
        int,
        Meta(
            ge=0,
            le=4096,
            description="Position in the driver's order; of a slice, the position in its parent.",
        ),
    ]
    name: Annotated[Label, Meta(description="The product name as the driver gives it.")]
    kind: Annotated[DeviceKind, Meta(description="A whole GPU or a MIG slice of one.")] = "gpu"
    vendor: Annotated[Label, Meta(description="nvidia, amd, intel or simulated.")] = "nvidia"
    parent_uuid: Annotated[Identifier | None, Meta(description="Of a slice, the GPU it is cut from.")] = None
    is_partitioned: Annotated[
        bool, Meta(description="MIG is on: the work is done by the slices, not by this row.")
    ] = False
    profile: Annotated[Label | None, Meta(description="Of a slice, its MIG profile, such as 1g.10gb.")] = None
    memory_total_bytes: Annotated[Bytes | None, Meta(description="Memory that the device can use.")] = None
    memory_basis: Annotated[
        MemoryBasis,
        Meta(
            description="What the memory figures count: framebuffer; framebuffer with the driver's reserve included "
            "(old drivers); or the host's memory on unified-memory machines."
        ),
    ] = "framebuffer"
    pci_bus_id: Annotated[Label | None, Meta(description="PCI address, such as 00000000:3B:00.0.")] = None
    compute_capability: Annotated[Label | None, Meta(description="CUDA compute capability, such as 9.0.")] = (
        None
    )
    clock_sm_max_hertz: Annotated[Hertz | None, Meta(description="Highest SM clock.")] = None
    power_limit_default_watts: Annotated[Watts | None, Meta(description="Power limit as shipped.")] = None


class DeviceSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a device does at one moment."""

    utilization_gpu: Annotated[
        Ratio | None, Meta(description="Share of the last period in which a kernel ran.")
    ] = None
    utilization_memory: Annotated[
        Ratio | None, Meta(description="Share of the last period in which memory was read or written.")
    ] = None
    utilization_encoder: Annotated[Ratio | None, Meta(description="Use of the video encoder.")] = None
    utilization_decoder: Annotated[Ratio | None, Meta(description="Use of the video decoder.")] = None
    memory_used_bytes: Annotated[Bytes | None, Meta(description="Memory allocated.")] = None
    memory_reserved_bytes: Annotated[
        Bytes | None, Meta(description="Memory kept by driver and firmware.")
    ] = None
    temperature_celsius: Annotated[Celsius | None, Meta(description="Core temperature.")] = None
    power_watts: Annotated[Watts | None, Meta(description="Power drawn.")] = None
    power_limit_watts: Annotated[Watts | None, Meta(description="Power limit in force.")] = None
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
        Meta(description="PCIe traffic to the device (off by default: costly to read)."),
    ] = None
    pcie_send_bytes_per_second: Annotated[
        BytesPerSecond | None,
        Meta(description="PCIe traffic from the device (off by default: costly to read)."),
    ] = None
