"""One GPU or slice: its facts, read when it is found, and its sample, read each tick."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ctypes import byref, c_int, c_uint, c_void_p, create_string_buffer
from typing import Any

import msgspec
import pynvml

from gpuherd.collect.meminfo import HostMemory
from gpuherd.collect.nvml.library import (
    DRIVER_GONE,
    GPU_IS_LOST,
    NO_DATA,
    RESET_REQUIRED,
    UNSUPPORTED,
    Library,
)
from gpuherd.collect.nvml.metrics import Metric, Question, bind
from gpuherd.collect.nvml.running import RunningLists
from gpuherd.collect.reading import Progress, SeenUse, failure_code
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean, clip

__all__ = ["Device", "device_problem", "gpu_facts", "slice_facts", "unreadable_facts"]

PROBE_AGAIN_READS = 60
"""After so many reads, metrics that were not supported are asked for once more."""

_UNKNOWN = DeviceSample()
_REMEDIES: dict[int, tuple[str, str]] = {
    GPU_IS_LOST: (
        "gpu_lost",
        "it has fallen off the bus; reboot, and check its power and seating if it comes back",
    ),
    RESET_REQUIRED: ("reset_required", "stop its processes and run 'nvidia-smi --gpu-reset', or reboot"),
}


class Device:
    """A GPU or MIG slice that could be opened. Whatever goes wrong with it stays with it."""

    def __init__(
        self,
        library: Library,
        handle: c_void_p,
        gpu_index: int,
        facts: DeviceFacts,
        metrics: Iterable[Metric],
        running: RunningLists | None,
        host_memory: HostMemory,
    ) -> None:
        self.facts = facts
        self.gpu_index = gpu_index
        self.handle = handle
        self.is_lost = False
        self._library = library
        self._running = running
        self._host_memory = host_memory
        self._uses_host_memory = False
        self._all = [
            question for metric in metrics if (question := bind(metric, library, handle)) is not None
        ]
        self._plan = list(self._all)
        self._reads = 0

    def read(
        self, position: int, progress: Progress, uses: list[SeenUse], problems: list[Problem]
    ) -> DeviceSample:
        """Read everything; raises ``CollectorFailed`` only when the driver itself is gone."""
        self._reads += 1
        if self._reads % PROBE_AGAIN_READS == 0:
            self._plan = list(self._all)
            if self._running is not None:
                self._running.probe_again()
        values: dict[str, Any] = {}
        failures: list[tuple[str, int]] = []
        answered = 0
        index = self.gpu_index
        for question in self._plan:
            progress(index, question.name)
            status = question.function(*question.arguments)
            if status:
                status = self._without_answer(question, status, progress, values)
            else:
                question.take(values)
            if not status:
                answered += 1
            elif status not in UNSUPPORTED:
                failures.append((question.name, status))
                if status == GPU_IS_LOST:
                    break  # every further call may take seconds
        self.is_lost = bool(failures) and failures[-1][1] == GPU_IS_LOST
        if self._running is not None and not self.is_lost:
            seen, failed = self._running.read(position, progress)
            uses += seen
            failures += failed
            self.is_lost = any(status == GPU_IS_LOST for _, status in failed)
            for _, status in failed:
                if status in DRIVER_GONE:
                    raise self._library.failed(status)
        if failures:
            problems.append(self._problem(failures, answered))
        return self._sample(values)

    def _without_answer(
        self, question: Question, status: int, progress: Progress, values: dict[str, Any]
    ) -> int:
        """Try the older ways to read the metric; drop it if the device supports none. Gives the final status."""
        current = question
        while status in UNSUPPORTED and current.fallback is not None:
            current = current.fallback
            progress(self.gpu_index, current.name)
            status = current.function(*current.arguments)
        if status in DRIVER_GONE:
            raise self._library.failed(status)
        if status == 0:
            current.take(values)
            self._plan = [current if asked is question else asked for asked in self._plan]
        elif status in UNSUPPORTED:
            self._plan = [asked for asked in self._plan if asked is not question]
            if question.name.startswith("nvmlDeviceGetMemoryInfo") and self.facts.kind == "gpu":
                self._uses_host_memory = status == pynvml.NVML_ERROR_NOT_SUPPORTED
        return 0 if status == NO_DATA else status

    def _sample(self, values: dict[str, Any]) -> DeviceSample:
        if self._uses_host_memory:
            # A GPU without memory of its own works in the host's.
            total, used = self._host_memory()
            values.update(memory_total_bytes=total, memory_basis="host")
            if used is not None:
                values["memory_used_bytes"] = used
        if "memory_basis" in values:
            total, basis = values.pop("memory_total_bytes"), values.pop("memory_basis")
            if total != self.facts.memory_total_bytes or basis != self.facts.memory_basis:
                self.facts = msgspec.structs.replace(self.facts, memory_total_bytes=total, memory_basis=basis)
        return DeviceSample(**values) if values else _UNKNOWN

    def _problem(self, failures: list[tuple[str, int]], answered: int) -> Problem:
        for _, status in failures:
            if status in _REMEDIES:
                return device_problem(self._library, self.facts, status)
        if not answered:
            return device_problem(self._library, self.facts, failures[0][1])
        named = ", ".join(f"{name}: {self._library.error_text(status)}" for name, status in failures[:4])
        more = f" and {len(failures) - 4} more" if len(failures) > 4 else ""
        return Problem(
            code=failure_code(name for name, _ in failures),
            message=clip(
                f"the driver fails to answer {named}{more}; a reload of the driver or a reboot may help", 512
            ),
            device_uuid=self.facts.uuid,
        )


def device_problem(library: Library, facts: DeviceFacts, status: int) -> Problem:
    """Say that a device as a whole cannot be used."""
    code, remedy = _REMEDIES.get(
        status, ("gpu_error", "look for Xid messages in the kernel log, then reset it or reboot")
    )
    device = "GPU" if facts.kind == "gpu" else "slice"
    return Problem(
        code=code,
        message=f"{device} {facts.index} answers {library.error_text(status)}: {remedy}",
        device_uuid=facts.uuid,
        is_fault=True,
    )


def gpu_facts(
    library: Library, handle: c_void_p, index: int, *, is_partitioned: bool
) -> tuple[int, DeviceFacts | None]:
    """Read what a GPU is; a status and nothing if it does not even tell its UUID."""
    uuid = create_string_buffer(96)
    status = library.call("nvmlDeviceGetUUID", handle, uuid, c_uint(len(uuid)))
    if status:
        return status, None
    major, minor = c_int(), c_int()
    has_capability = not library.call(
        "nvmlDeviceGetCudaComputeCapability", handle, byref(major), byref(minor)
    )
    clock = library.number("nvmlDeviceGetMaxClockInfo", handle, c_int(pynvml.NVML_CLOCK_SM))
    limit = library.number("nvmlDeviceGetPowerManagementDefaultLimit", handle)
    facts = DeviceFacts(
        uuid=clean(uuid.value.decode(errors="replace"), 96) or f"gpu-{index}-without-uuid",
        index=index,
        name=library.text("nvmlDeviceGetName", handle) or "NVIDIA GPU",
        is_partitioned=is_partitioned,
        pci_bus_id=_pci_bus_id(library, handle),
        compute_capability=f"{major.value}.{minor.value}" if has_capability else None,
        clock_sm_max_hertz=clock * 1e6 if clock is not None and clock <= 1_000_000 else None,
        power_limit_default_watts=limit / 1000 if limit is not None and limit <= 100_000_000 else None,
    )
    return 0, facts


def unreadable_facts(index: int, remembered: DeviceFacts | None) -> DeviceFacts:
    """Describe a GPU that does not answer: as it was known before, else by its place only."""
    return remembered or DeviceFacts(uuid=f"gpu-{index}-without-uuid", index=index, name="NVIDIA GPU")


def _pci_bus_id(library: Library, handle: c_void_p) -> str | None:
    info = pynvml.nvmlPciInfo_t()
    if library.call("nvmlDeviceGetPciInfo_v3", handle, byref(info)):
        return None
    bus_id: str | bytes = info.busId
    return clean(bus_id if isinstance(bus_id, str) else bus_id.decode(errors="replace"))


_PROFILE = re.compile(r"\bMIG ((?:\d+c\.)?\d+g\.\d+gb\S*)")


def slice_facts(library: Library, handle: c_void_p, index: int, parent: DeviceFacts) -> DeviceFacts | None:
    """Read what a slice is; nothing if it went away meanwhile."""
    uuid = library.text("nvmlDeviceGetUUID", handle)
    if not uuid:
        return None
    name = library.text("nvmlDeviceGetName", handle)
    match = _PROFILE.search(name or "")
    return DeviceFacts(
        uuid=uuid,
        index=index,
        name=name or parent.name,
        kind="slice",
        parent_uuid=parent.uuid,
        profile=match[1] if match else _profile_from_attributes(library, handle),
        pci_bus_id=parent.pci_bus_id,
        compute_capability=parent.compute_capability,
    )


def _profile_from_attributes(library: Library, handle: c_void_p) -> str | None:
    attributes = pynvml.c_nvmlDeviceAttributes()
    if library.call("nvmlDeviceGetAttributes_v2", handle, byref(attributes)):
        return None
    gpu_slices, compute_slices = attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount
    gigabytes = round(attributes.memorySizeMB / 1024)
    part = f"{compute_slices}c." if compute_slices != gpu_slices else ""
    return f"{part}{gpu_slices}g.{gigabytes}gb"
