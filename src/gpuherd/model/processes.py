"""Processes on GPUs: who they are (facts), which devices they use, and what they cost right now (samples)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Command, Label
from gpuherd.model.units import Bytes, Load, Ratio, Timestamp

__all__ = ["Process", "ProcessSample", "ProcessTable", "ProcessUse", "UseKind", "UseSample"]

UseKind = Literal["compute", "graphics"]


class Process(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process, identified by pid and start time: a pid alone is reused."""

    pid: Annotated[int, Meta(ge=0, le=2**32, description="Process id in the host's namespace.")]
    started_at: Annotated[Timestamp | None, Meta(description="When it started.")] = None
    user: Annotated[Label | None, Meta(description="Owner; null if unknown.")] = None
    command: Annotated[
        Command | None, Meta(description="Command line, secrets removed on the node, shortened.")
    ] = None
    container: Annotated[Label | None, Meta(description="Container it runs in.")] = None
    job: Annotated[Label | None, Meta(description="Batch job it belongs to.")] = None
    is_gone: Annotated[
        bool,
        Meta(description="The driver still lists it, the operating system does not (or it is a zombie)."),
    ] = False


class ProcessUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One process on one device; both by their position in the table and the device list."""

    process: Annotated[int, Meta(ge=0, le=65_535, description="Position in the process table.")]
    device: Annotated[int, Meta(ge=0, le=65_535, description="Position in the device list.")]
    kind: Annotated[UseKind, Meta(description="Compute work or graphics.")] = "compute"


class ProcessTable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All processes on a node's devices; sent when it changes."""

    processes: Annotated[tuple[Process, ...], Meta(max_length=4096)] = ()
    uses: Annotated[tuple[ProcessUse, ...], Meta(max_length=8192)] = ()
    omitted: Annotated[
        int, Meta(ge=0, le=2**32, description="Number of processes left out because there were too many.")
    ] = 0


class ProcessSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CPU and memory of the host that a process uses at one moment."""

    cpu_cores: Annotated[Load | None, Meta(description="CPU in use; 1.0 is one core.")] = None
    memory_bytes: Annotated[Bytes | None, Meta(description="Resident main memory.")] = None


class UseSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a process uses on one device at one moment."""

    gpu_memory_bytes: Annotated[Bytes | None, Meta(description="Device memory held.")] = None
    utilization_sm: Annotated[
        Ratio | None, Meta(description="Share of the SMs' time, if the driver reports it.")
    ] = None
