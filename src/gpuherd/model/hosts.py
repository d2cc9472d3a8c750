"""The machine around the GPUs: what it is (facts) and what it does right now (samples)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.text import Identifier, Label
from gpuherd.model.units import Bytes, Count, Load, Ratio, Seconds, Timestamp

__all__ = ["Address", "Disk", "HostFacts", "HostSample", "cpu_level"]


class Address(Struct, frozen=True):
    """An address of a network interface that is up."""

    interface: Label
    ip: Label


class Disk(Struct, frozen=True, kw_only=True):
    """A mounted file system."""

    mount: Label
    total_bytes: Bytes


class HostFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inventory of the machine; sent when it changes."""

    hostname: Annotated[Label, Meta(description="Host name; shown, but never used as the node's identity.")]
    os: Annotated[Label | None, Meta(description="Distribution and release.")] = None
    kernel: Annotated[Label | None, Meta(description="Kernel release.")] = None
    architecture: Annotated[Label | None, Meta(description="Machine type, such as x86_64.")] = None
    cpu_model: Annotated[Label | None, Meta(description="CPU model.")] = None
    cpu_count: Annotated[Count | None, Meta(description="Logical CPUs.")] = None
    memory_total_bytes: Annotated[Bytes | None, Meta(description="Main memory.")] = None
    swap_total_bytes: Annotated[Bytes | None, Meta(description="Swap space.")] = None
    booted_at: Annotated[Timestamp | None, Meta(description="When the machine started.")] = None
    boot_id: Annotated[
        Identifier | None,
        Meta(description="The kernel's id of this boot; setting the clock does not change it."),
    ] = None
    driver_version: Annotated[Label | None, Meta(description="GPU driver version.")] = None
    cuda_version: Annotated[
        Label | None, Meta(description="Newest CUDA version that the driver supports.")
    ] = None
    agent_version: Annotated[Label | None, Meta(description="gpuherd version of the agent.")] = None
    addresses: tuple[Address, ...] = ()
    disks: tuple[Disk, ...] = ()


class HostSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Metrics of the machine at one moment."""

    cpu_ratio: Annotated[Ratio | None, Meta(description="Share of all CPUs in use.")] = None
    load_1m: Annotated[Load | None, Meta(description="Load average over one minute.")] = None
    load_5m: Annotated[Load | None, Meta(description="Load average over five minutes.")] = None
    load_15m: Annotated[Load | None, Meta(description="Load average over fifteen minutes.")] = None
    memory_used_bytes: Annotated[Bytes | None, Meta(description="Main memory that is not available.")] = None
    swap_used_bytes: Annotated[Bytes | None, Meta(description="Swap in use.")] = None
    uptime_seconds: Annotated[Seconds | None, Meta(description="Time since the machine started.")] = None


def cpu_level(cpu_ratio: float | None, load_1m: float | None, cpu_count: int | None) -> float | None:
    """Return how busy the CPUs are; without a measured share load per CPU, which may be more than 1."""
    if cpu_ratio is not None or load_1m is None or not cpu_count:
        return cpu_ratio
    return load_1m / cpu_count
