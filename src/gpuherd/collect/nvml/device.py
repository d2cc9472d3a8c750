"""One GPU or slice: its facts, read when it is found, and its sample, read each tick."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ctypes import byref, c_int, c_uint, c_void_p, create_string_buffer
from typing import Any

import msgspec
import pynvml

from gpuherd.collect.meminfo import HostMemory, is_integrated
from gpuherd.collect.nvml.health import HealthWatch
from gpuherd.collect.nvml.library import (
    DRIVER_GONE,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    IMPOSSIBLE,
    NO_DATA,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    OTHER_CALL,
    RESET_REQUIRED,
    UNSUPPORTED,
    Library,
)
from gpuherd.collect.nvml.metrics import Metric, Question, bind
from gpuherd.collect.nvml.running import RunningLists
from gpuherd.collect.reading import Progress, SeenUse, failure_code
from gpuherd.model.devices import SLOWED_BY_HARDWARE, DeviceFacts, DeviceSample
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean, clip

__all__ = ["Device", "asleep", "device_problem", "gpu_facts", "slice_facts", "unreadable_facts"]

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
_NO_PERMISSION = (
    "no_permission",
    "the agent has no permission to read it: give its user, service unit or container access to /dev/nvidia*",
)
_PROCESS_REMEDIES: dict[int, str] = {
    NO_PERMISSION: (
        "the agent has no permission to list processes: run it as root, or in a container with the host's "
        "pids"
    ),
    NOT_SUPPORTED: "this driver does not list the processes of this GPU",
    NOT_FOUND: "the device is gone; the next reading will show why",
    FUNCTION_NOT_FOUND: "library and driver versions do not match: reinstall the driver or reboot",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: (
        "library and driver versions do not match: reinstall the driver or reboot"
    ),
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
        health: HealthWatch | None = None,
        layout_problem: Problem | None = None,
    ) -> None:
        """``layout_problem``: why it is not known whether, or how, the GPU is split into slices."""
        self.facts = facts
        self.gpu_index = gpu_index
        self.handle = handle
        self.is_lost = False
        self.health = health
        self.layout_problem = layout_problem
        self.watches_xids = False
        self.at_rest: tuple[DeviceSample, list[SeenUse]] | None = None
        """What holds while the GPU sleeps: to change it somebody would have to wake the GPU."""
        self._library = library
        self._running = running
        self._host_memory = host_memory
        self._uses_host_memory = False
        self._all = [
            question for metric in metrics if (question := bind(metric, library, handle)) is not None
        ]
        self._plan = list(self._all)
        self._reads = 0
        self._ecc_uncorrected: int | None = None
        """The last count that was read: it does not go down while the driver is loaded."""

    def read(
        self, position: int, progress: Progress, uses: list[SeenUse], problems: list[Problem], now: float
    ) -> DeviceSample:
        """Read everything; raises ``CollectorFailed`` only when the driver itself is gone. ``now`` is monotonic."""
        self._reads += 1
        if self._reads % PROBE_AGAIN_READS == 0:
            self._plan = list(self._all)
            if self._running is not None:
                self._running.probe_again()
        values: dict[str, Any] = {}
        failures: list[tuple[str, int]] = []
        unknown: list[str] = []
        answered = 0
        index = self.gpu_index
        for question in self._plan:
            progress(index, question.name)
            status = question.function(*question.arguments)
            if status:
                status = self._without_answer(question, status, progress, values)
            elif (impossible := question.take(values)) is not None:
                failures.append((question.name, IMPOSSIBLE))
                unknown += impossible
            if not status:
                answered += 1
            elif (question.decides and status != NOT_SUPPORTED) or status not in UNSUPPORTED:
                failures.append((question.name, status))
                unknown += question.columns
                if status == GPU_IS_LOST:
                    break  # every further call may take seconds
        self.is_lost = bool(failures) and failures[-1][1] == GPU_IS_LOST
        is_dead = bool(failures) and not answered
        seen: list[SeenUse] = []
        if self._running is not None and not self.is_lost:
            seen, failed = self._running.read(position, progress)
            uses += seen
            failures += failed
            self.is_lost = any(status == GPU_IS_LOST for _, status in failed)
            for _, status in failed:
                if status in DRIVER_GONE:
                    raise self._library.failed(status)
        if failures:
            problems.append(self._problem(failures, tuple(unknown), is_dead=is_dead))
        if self.layout_problem is not None:
            problems.append(self.layout_problem)
        told = len(problems)
        if self.health is not None and not self.is_lost:
            self._check_health(now, progress, problems)
        sample = self._sample(values)
        is_slowed = bool((sample.throttle_reasons or 0) & SLOWED_BY_HARDWARE)
        is_well = not failures and self.layout_problem is None and len(problems) == told and not is_slowed
        self.at_rest = (sample, seen) if is_well else None
        return sample

    def _check_health(self, now: float, progress: Progress, problems: list[Problem]) -> None:
        if self.health is None:
            return
        if not self.health.read(self.facts, now, progress, problems):
            return
        checks = (*self.health.checks, *(("xid",) if self.watches_xids else ()))
        if checks != self.facts.health_checks:
            self.facts = msgspec.structs.replace(self.facts, health_checks=checks)

    def _without_answer(
        self, question: Question, status: int, progress: Progress, values: dict[str, Any]
    ) -> int:
        """Try the older ways to read the metric; drop it if the device supports none. Gives the final status."""
        current = question
        while status in OTHER_CALL and current.fallback is not None:
            current = current.fallback
            progress(self.gpu_index, current.name)
            status = current.function(*current.arguments)
        if status in DRIVER_GONE:
            raise self._library.failed(status)
        if status == 0:
            self._plan = [current if asked is question else asked for asked in self._plan]
            return 0 if current.take(values) is None else IMPOSSIBLE
        if status in UNSUPPORTED and not (question.decides and status != NOT_SUPPORTED):
            self._plan = [asked for asked in self._plan if asked is not question]
            if question.name.startswith("nvmlDeviceGetMemoryInfo") and is_integrated(self.facts):
                self._uses_host_memory = True
        return 0 if status == NO_DATA and not question.decides else status

    def _sample(self, values: dict[str, Any]) -> DeviceSample:
        if self._uses_host_memory:
            # A GPU without memory of its own works in the host's.
            total, used = self._host_memory()
            values.update(memory_total_bytes=total, memory_basis="host")
            if used is not None:
                values["memory_used_bytes"] = used
        # A count that cannot be read now is still there.
        if self._ecc_uncorrected is not None:
            values.setdefault("ecc_uncorrected", self._ecc_uncorrected)
        self._ecc_uncorrected = values.get("ecc_uncorrected")
        if "memory_basis" in values:
            total, basis = values.pop("memory_total_bytes"), values.pop("memory_basis")
            if total != self.facts.memory_total_bytes or basis != self.facts.memory_basis:
                self.facts = msgspec.structs.replace(self.facts, memory_total_bytes=total, memory_basis=basis)
        return DeviceSample(**values) if values else _UNKNOWN

    def _problem(
        self, failures: list[tuple[str, int]], unknown: tuple[str, ...], *, is_dead: bool
    ) -> Problem:
        for _, status in failures:
            if status in _REMEDIES:
                return device_problem(self._library, self.facts, status)
        if is_dead:
            return device_problem(self._library, self.facts, failures[0][1])
        named = ", ".join(f"{name}: {self._library.error_text(status)}" for name, status in failures[:4])
        more = f" and {len(failures) - 4} more" if len(failures) > 4 else ""
        code = failure_code(name for name, _ in failures)
        remedy = "a reload of the driver or a reboot may help"
        if code == "processes_failed":
            status = next(status for name, status in failures if failure_code((name,)) == code)
            remedy = _PROCESS_REMEDIES.get(status, remedy)
        return Problem(
            code=code,
            message=clip(f"the driver fails to report {named}{more}; {remedy}", 512),
            device_uuid=self.facts.uuid,
            columns=tuple(dict.fromkeys(unknown)),
        )


def device_problem(library: Library, facts: DeviceFacts, status: int) -> Problem:
    """Say that a device as a whole cannot be used."""
    code, remedy = _REMEDIES.get(
        status, ("gpu_error", "look for Xid messages in the kernel log, then reset it or reboot")
    )
    if status == NO_PERMISSION:
        code, remedy = _NO_PERMISSION
    device = "GPU" if facts.kind == "gpu" else "slice"
    return Problem(
        code=code,
        message=f"{device} {facts.index} answers {library.error_text(status)}: {remedy}",
        device_uuid=facts.uuid,
        is_fault=status != NO_PERMISSION,
    )


def asleep(sample: DeviceSample) -> DeviceSample:
    """Say what holds of a GPU that sleeps, by what was read before."""
    return DeviceSample(
        utilization_gpu=0.0,
        memory_used_bytes=sample.memory_used_bytes,
        ecc_uncorrected=sample.ecc_uncorrected,
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
        serial=library.text("nvmlDeviceGetSerial", handle) or None,
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


def slice_facts(
    library: Library, handle: c_void_p, index: int, parent: DeviceFacts
) -> tuple[int, DeviceFacts | None]:
    """Read what a slice is; a status and nothing if it does not even tell its UUID."""
    uuid = create_string_buffer(96)
    status = library.call("nvmlDeviceGetUUID", handle, uuid, c_uint(len(uuid)))
    if status:
        return status, None
    name = library.text("nvmlDeviceGetName", handle)
    match = _PROFILE.search(name or "")
    return 0, DeviceFacts(
        uuid=clean(uuid.value.decode(errors="replace"), 96),
        index=index,
        name=name or parent.name,
        kind="slice",
        parent_uuid=parent.uuid,
        profile=match[1] if match else _profile_from_attributes(library, handle),
        pci_bus_id=parent.pci_bus_id,
        compute_capability=parent.compute_capability,
        gpu_instance=library.number("nvmlDeviceGetGpuInstanceId", handle),
    )


def _profile_from_attributes(library: Library, handle: c_void_p) -> str | None:
    attributes = pynvml.c_nvmlDeviceAttributes()
    if library.call("nvmlDeviceGetAttributes_v2", handle, byref(attributes)):
        return None
    gpu_slices, compute_slices = attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount
    gigabytes = round(attributes.memorySizeMB / 1024)
    part = f"{compute_slices}c." if compute_slices != gpu_slices else ""
    return f"{part}{gpu_slices}g.{gigabytes}gb"
