"""What a GPU collector is: it opens, reads everything once, closes. The caller does deadlines and timing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, UseKind
from gpuherd.model.reports import Problem
from gpuherd.model.text import SENTENCE_LENGTH, clean, clip

__all__ = [
    "CollectorFailed",
    "CollectorUnavailable",
    "GpuCollector",
    "GpuReading",
    "HostReader",
    "ProcessReader",
    "Progress",
    "SeenUse",
    "failure_code",
    "impossible_values",
    "no_progress",
]


class CollectorUnavailable(Unavailable):
    """A collector cannot work here; ``code`` is the problem's stable name (``Problem.code``)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CollectorFailed(Failed):
    """A collector that worked could read nothing at all; ``code`` is the problem's stable name."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SeenUse(Struct, frozen=True, kw_only=True):
    """A process that a collector saw on a device, by pid.

    Who the pid is gets looked up on the node (``processes.py``), unless the collector knows it itself
    (``process``: simulated fakes, tools that print the owner).
    """

    device: int
    pid: int
    kind: UseKind = "compute"
    gpu_memory_bytes: int | None = None
    utilization_sm: float | None = None
    process: Process | None = None
    process_sample: ProcessSample | None = None


class GpuReading(Struct, frozen=True, kw_only=True):
    """One complete look at a node's devices; ``samples`` is aligned with ``devices``.

    ``devices`` is the same object as long as nothing changed, so that the caller can compare by identity first.
    A device that cannot be read stays in the list with what is known of it, and a problem says why.
    """

    devices: tuple[DeviceFacts, ...] = ()
    samples: tuple[DeviceSample, ...] = ()
    uses: tuple[SeenUse, ...] = ()
    problems: tuple[Problem, ...] = ()
    driver_version: str | None = None
    cuda_version: str | None = None


class Progress(Protocol):
    """Told before each call that might hang or crash, so that a watcher outside knows what was being asked."""

    def __call__(self, device: int, call: str) -> None:
        """``device`` is the driver's GPU index, or -1 for calls that concern no single GPU."""


def failure_code(functions: Iterable[str]) -> str:
    """Name the problem of a device that answers, but not these calls.

    Not knowing the processes is told apart: without them nobody can say that a device is free.
    """
    return "processes_failed" if any("RunningProcesses" in name for name in functions) else "metric_failed"


def impossible_values(tool: str, facts: DeviceFacts, said: Mapping[str, object]) -> list[Problem]:
    """Say which numbers that decide, by column, a tool gave as something that cannot be."""
    if not said:
        return []
    words = ", ".join(f"{column} {clean(str(word), 40) or 'nothing'}" for column, word in said.items())
    return [
        Problem(
            code="metric_failed",
            message=clip(
                f"{tool} reports impossible values: {words}; a reload of the driver may help", SENTENCE_LENGTH
            ),
            device_uuid=facts.uuid,
            columns=tuple(said),
        )
    ]


def no_progress(device: int, call: str) -> None:
    """Nobody is watching."""


class GpuCollector(Protocol):
    """A way to read GPUs. Methods are synchronous and may hang: they run where they can be abandoned."""

    name: str

    def open(self) -> None:
        """Get ready; raises ``Unavailable`` with reason and remedy where this way does not work here."""

    def read(self) -> GpuReading:
        """Look once at everything. A failing GPU or metric becomes a problem, never an exception;
        ``Failed`` only when nothing at all could be read (the caller closes and opens again)."""

    def skip(self, devices: frozenset[int]) -> None:
        """Do not touch these GPUs (driver's index) from now on: they hung or crashed the driver before."""

    def close(self) -> None:
        """Let go of everything; may be called at any time, also twice."""


class ProcessReader(Protocol):
    """A way to know who a pid is."""

    @property
    def hidden(self) -> str | None:
        """Why other users' processes cannot be seen, and what to do; ``None`` if they can."""

    def look_up(self, pids: Iterable[int]) -> Mapping[int, tuple[Process, ProcessSample]]:
        """Say who these pids are now; the same ``Process`` object while nothing about it changed."""

    def close(self) -> None:
        """Let go of everything."""


class HostReader(Protocol):
    """A way to read the machine around the GPUs."""

    def facts(self) -> HostFacts:
        """Say what the machine is; the same object as long as nothing changed."""

    def sample(self) -> HostSample:
        """Say what the machine does now."""

    def disks_used_bytes(self) -> tuple[int | None, ...]:
        """Say how full the disks of the facts are, in their order."""

    def close(self) -> None:
        """Let go of everything."""
