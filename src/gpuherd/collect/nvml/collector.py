"""The NVML collector: keeps the library open, knows its devices, reads them one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from ctypes import byref, c_int, c_uint, c_void_p
from pathlib import Path

import pynvml

from gpuherd.collect.meminfo import HostMemory, host_memory
from gpuherd.collect.nvml.device import Device, device_problem, gpu_facts, slice_facts, unreadable_facts
from gpuherd.collect.nvml.library import DRIVER_GONE, Library
from gpuherd.collect.nvml.metrics import GPU_METRICS, PCIE_METRICS, SLICE_METRICS, WORK_METRICS
from gpuherd.collect.nvml.running import Running, RunningLists
from gpuherd.collect.nvml.sleep import SleepWatch
from gpuherd.collect.nvml.xid import XidWatch
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuReading,
    Progress,
    SeenUse,
    no_progress,
)
from gpuherd.collect.xids import XIDS, xid_message
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.reports import Problem

__all__ = ["NvmlCollector"]

LAYOUT_READS = 10
"""Every so many reads: are the GPUs and slices still the same, is a lost one back?"""
XID_SECONDS = 600.0
"""How long an Xid that is no fault stays shown. One that is a fault stays until the driver is opened again."""

_UNKNOWN = DeviceSample()
_ASLEEP = DeviceSample(utilization_gpu=0.0)


class _Absent:
    """A GPU or slice that is not read: it does not answer (``is_lost``), or nobody may ask it."""

    def __init__(self, facts: DeviceFacts, problem: Problem, *, is_lost: bool = False) -> None:
        self.facts = facts
        self.problem = problem
        self.is_lost = is_lost


class NvmlCollector:
    """Reads NVIDIA GPUs; see docs/collectors.md for what it does in each kind of trouble."""

    name = "nvml"

    def __init__(
        self,
        progress: Progress = no_progress,
        pcie_throughput: bool = False,
        *,
        host_memory: HostMemory = host_memory(),  # noqa: B008 - only makes a closure
        sys_root: Path = Path("/sys"),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``pcie_throughput`` costs 20–40 ms per GPU and read. ``sys_root`` is where sleeping GPUs are looked up."""
        self._progress = progress
        self._pcie_throughput = pcie_throughput
        self._host_memory = host_memory
        self._clock = clock
        self._sleep = SleepWatch(sys_root)
        self._skipped: frozenset[int] = frozenset()
        self._library: Library | None = None
        self._running: Running | None = None
        self._xid_watch: XidWatch | None = None
        self._xids: dict[tuple[str, int], tuple[float, Problem]] = {}
        self._rows: list[Device | _Absent] = []
        self._facts: tuple[DeviceFacts, ...] = ()
        self._layout: list[tuple[str, ...] | None] = []
        self._versions: tuple[str | None, str | None] = (None, None)
        self._reads = 0

    def open(self) -> None:
        """Start NVML and find the devices."""
        self.close()
        library = Library(self._progress)
        self._library = library
        try:
            self._versions = (library.text("nvmlSystemGetDriverVersion"), _cuda_version(library))
            self._running = Running(library, self._progress, self._clock)
            self._discover(library)
        except CollectorFailed as error:
            self.close()
            raise CollectorUnavailable(error.code, str(error)) from error
        if not self._layout:
            self.close()
            raise CollectorUnavailable(
                "no_gpu",
                "the NVIDIA driver runs but finds no GPU: check 'lspci | grep -i nvidia' and the kernel log",
            )

    def read(self) -> GpuReading:
        """Read every device; see ``GpuCollector.read``."""
        library = self._library
        if library is None or self._running is None:
            raise CollectorFailed("driver_failed", "NVML is not open: open it first")
        self._reads += 1
        if self._reads % LAYOUT_READS == 0 and self._has_new_layout(library):
            self._discover(library)
        self._running.refresh()
        samples: list[DeviceSample] = []
        uses: list[SeenUse] = []
        problems: list[Problem] = []
        has_new_facts = False
        for position, row in enumerate(self._rows):
            if isinstance(row, _Absent):
                samples.append(_UNKNOWN)
                problems.append(row.problem)
            elif row.gpu_index in self._skipped:
                samples.append(_UNKNOWN)
                problems.append(_skipped_problem(row.facts))
            elif self._sleep.is_asleep(row.gpu_index):
                samples.append(_ASLEEP)
            else:
                facts = row.facts
                samples.append(row.read(position, self._progress, uses, problems))
                has_new_facts = has_new_facts or row.facts is not facts
        if has_new_facts:
            self._facts = tuple(row.facts for row in self._rows)
        problems += self._xid_problems()
        return GpuReading(
            devices=self._facts,
            samples=tuple(samples),
            uses=tuple(uses),
            problems=tuple(problems),
            driver_version=self._versions[0],
            cuda_version=self._versions[1],
        )

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs alone from now on; one that was never read is left out of the list."""
        self._skipped = devices

    def close(self) -> None:
        """Stop NVML. What is known of the GPUs is kept, to name those that do not answer next time."""
        library, self._library, self._running = self._library, None, None
        if library is not None:
            self._progress(-1, "nvmlShutdown")
            if self._xid_watch is not None:
                self._xid_watch.close()
            library.close()
        self._xid_watch = None
        self._xids.clear()

    def _discover(self, library: Library) -> None:
        """Find all GPUs and slices anew."""
        known = {facts.index: facts for facts in self._facts if facts.kind == "gpu"}
        count = library.device_count()
        rows: list[Device | _Absent] = []
        layout: list[tuple[str, ...] | None] = []
        for index in range(count):
            if index in self._skipped:
                rows += self._skipped_rows(known.get(index))
                layout.append(None)
                continue
            self._progress(index, "nvmlDeviceGetHandleByIndex")
            status, handle = library.device_handle(index)
            found: list[Device] = []
            if not status:
                status, found = self._gpu_with_slices(library, handle, index)
            if status in DRIVER_GONE:
                raise library.failed(status)
            if status:
                # Known by its index, unless their number changed: then the indexes may have moved.
                facts = unreadable_facts(index, known.get(index) if count == len(known) else None)
                slices = (old for old in self._facts if old.parent_uuid == facts.uuid)
                rows += (
                    _Absent(lost, device_problem(library, lost, status), is_lost=True)
                    for lost in (facts, *slices)
                )
                layout.append(None)
            else:
                rows += found
                layout.append(_slices_of(found))
        self._rows, self._layout = rows, layout
        found_facts = tuple(row.facts for row in rows)
        self._facts = self._facts if found_facts == self._facts else found_facts
        gpus = [row for row in rows if isinstance(row, Device) and row.facts.kind == "gpu"]
        self._sleep.watch({gpu.gpu_index: gpu.facts.pci_bus_id for gpu in gpus})
        if self._xid_watch is not None:
            self._xid_watch.close()
        self._xid_watch = XidWatch(library, [gpu.handle for gpu in gpus], self._progress)

    def _skipped_rows(self, gpu: DeviceFacts | None) -> list[_Absent]:
        """List a GPU that nobody may ask, with its slices, if it was known before."""
        if gpu is None:
            return []
        parts = (facts for facts in self._facts if facts.parent_uuid == gpu.uuid)
        return [_Absent(facts, _skipped_problem(facts)) for facts in (gpu, *parts)]

    def _gpu_with_slices(self, library: Library, handle: c_void_p, index: int) -> tuple[int, list[Device]]:
        if self._running is None:
            raise CollectorFailed("driver_failed", "NVML is not open: open it first")
        self._progress(index, "nvmlDeviceGetMigMode")
        current, pending = c_uint(), c_uint()
        is_partitioned = not library.call("nvmlDeviceGetMigMode", handle, byref(current), byref(pending))
        is_partitioned = is_partitioned and current.value == pynvml.NVML_DEVICE_MIG_ENABLE
        status, facts = gpu_facts(library, handle, index, is_partitioned=is_partitioned)
        if facts is None:
            return status, []
        metrics = dict(GPU_METRICS)
        if not is_partitioned:
            metrics = {**WORK_METRICS, **metrics}
        if self._pcie_throughput:
            metrics |= PCIE_METRICS
        lists = None if is_partitioned else RunningLists(self._running, index, handle, is_whole=True)
        gpu = Device(library, handle, index, facts, metrics.values(), lists, self._host_memory)
        devices = [gpu]
        for place, slice_handle in _slice_handles(library, handle) if is_partitioned else ():
            of_slice = slice_facts(library, slice_handle, place, facts)
            if of_slice is None:
                continue
            lists = RunningLists(self._running, index, slice_handle, is_whole=False)
            devices.append(
                Device(
                    library, slice_handle, index, of_slice, SLICE_METRICS.values(), lists, self._host_memory
                )
            )
        return 0, devices

    def _has_new_layout(self, library: Library) -> bool:
        """Whether GPUs or slices came or went, or a GPU that did not answer should be tried afresh."""
        if library.device_count() != len(self._layout):
            return True
        if any(row.is_lost for row in self._rows):
            return True
        for row in self._rows:
            if not isinstance(row, Device) or row.facts.kind == "slice" or row.gpu_index in self._skipped:
                continue
            if self._sleep.is_asleep(row.gpu_index):
                continue
            self._progress(row.gpu_index, "nvmlDeviceGetMigMode")
            current, pending = c_uint(), c_uint()
            if library.call("nvmlDeviceGetMigMode", row.handle, byref(current), byref(pending)):
                continue
            slices: tuple[str, ...] = ()
            if current.value == pynvml.NVML_DEVICE_MIG_ENABLE:
                handles = _slice_handles(library, row.handle)
                slices = ("mig", *(library.text("nvmlDeviceGetUUID", handle) or "" for _, handle in handles))
            if slices != self._layout[row.gpu_index]:
                return True
        return False

    def _xid_problems(self) -> list[Problem]:
        now = self._clock()
        for address, number in self._xid_watch.poll() if self._xid_watch is not None else ():
            facts = next(
                (row.facts for row in self._rows if isinstance(row, Device) and row.handle.value == address),
                None,
            )
            uuid = facts.uuid if facts else None
            meaning = XIDS.get(number)
            problem = Problem(
                code="xid",
                message=xid_message(number),
                device_uuid=uuid,
                is_fault=meaning is not None and meaning.is_fault and uuid is not None,
                since=now,
            )
            self._xids[uuid or "", number] = (now, problem)
        for key, (at, problem) in list(self._xids.items()):
            if not problem.is_fault and not 0 <= now - at < XID_SECONDS:
                del self._xids[key]
        return [problem for _, problem in self._xids.values()]


def _skipped_problem(facts: DeviceFacts) -> Problem:
    return Problem(
        code="driver_hung",
        message=f"GPU {facts.index} hung or crashed the driver and is no longer asked: reset it or reboot",
        device_uuid=facts.uuid,
        is_fault=True,
    )


def _slices_of(devices: list[Device]) -> tuple[str, ...]:
    if not devices[0].facts.is_partitioned:
        return ()
    return ("mig", *(device.facts.uuid for device in devices[1:]))


def _slice_handles(library: Library, gpu: c_void_p) -> list[tuple[int, c_void_p]]:
    most = library.number("nvmlDeviceGetMaxMigDeviceCount", gpu) or 0
    found = []
    for place in range(min(most, 64)):
        handle = c_void_p()
        # There may be gaps between the slices.
        if not library.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu, c_uint(place), byref(handle)):
            found.append((place, handle))
    return found


def _cuda_version(library: Library) -> str | None:
    version = c_int()
    if library.call("nvmlSystemGetCudaDriverVersion_v2", byref(version)):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
