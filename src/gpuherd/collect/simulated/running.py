"""Processes of a simulated device, as the driver's lists would show them."""

from __future__ import annotations

from collections.abc import Iterable

from gpuherd.collect.reading import SeenUse
from gpuherd.collect.scenario import SimulatedProcess, quantised, value_at
from gpuherd.model.processes import Process, ProcessSample, UseKind
from gpuherd.model.text import COMMAND_LENGTH, clean

__all__ = ["uses_at"]


def uses_at(
    processes: Iterable[SimulatedProcess], position: int, t: float, epoch: float, *, has_utilization: bool
) -> list[SeenUse]:
    """List who is on the device at ``position``; ``has_utilization``: the driver tells the share of the SMs."""
    alive = [process for process in processes if process.is_alive(t)]
    found: dict[int, SeenUse] = {}
    # Compute processes come first in the driver's lists; one that is on both counts as compute.
    for process in sorted(alive, key=lambda process: "compute" not in process.type):
        kind: UseKind = "compute" if "compute" in process.type else "graphics"
        memory = value_at(process.memory_used_bytes, t)
        share = value_at(process.sm_percent, t)
        # The driver leaves out those that did nothing.
        percent = 0 if share is None else quantised(share)
        found.setdefault(
            process.pid,
            SeenUse(
                device=position,
                pid=process.pid,
                kind=kind,
                gpu_memory_bytes=None if memory is None else quantised(memory),
                utilization_sm=(percent / 100 if percent <= 100 else 0.0) if has_utilization else None,
                process=_identity(process, epoch) if process.is_fake else None,
                process_sample=_cost(process, t) if process.is_fake else None,
            ),
        )
    return list(found.values())


def _identity(process: SimulatedProcess, epoch: float) -> Process:
    started_at = process.started_at
    if started_at is None and process.age_seconds is not None:
        started_at = max(0.0, epoch - process.age_seconds)
    return Process(
        pid=process.pid,
        started_at=started_at,
        user=None if process.user is None else clean(process.user),
        command=None if process.command is None else clean(process.command, COMMAND_LENGTH),
        container=None if process.container is None else clean(process.container),
        job=None if process.job is None else clean(process.job),
    )


def _cost(process: SimulatedProcess, t: float) -> ProcessSample:
    percent, memory = value_at(process.host_cpu_percent, t), value_at(process.host_memory_bytes, t)
    return ProcessSample(
        cpu_cores=None if percent is None else max(0.0, percent / 100),
        memory_bytes=None if memory is None else quantised(memory),
    )
