"""The NVML collector: keeps the library open, knows its devices, reads them one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from ctypes import byref, c_int, c_uint, c_void_p
from pathlib import Path

import msgspec
import pynvml

from gpuherd.collect.meminfo import HostMemory, host_memory
from gpuherd.collect.nvml.device import (
    Device,
    asleep,
    device_problem,
    gpu_facts,
    slice_facts,
    unreadable_facts,
)
from gpuherd.collect.nvml.health import HealthWatch
from gpuherd.collect.nvml.library import (
    DRIVER_GONE,
    GPU_IS_LOST,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    Library,
)
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
from gpuherd.model.text import SENTENCE_LENGTH, clip

__all__ = ["NvmlCollector"]

LAYOUT_READS = 10
"""Every so many reads: are the GPUs and slices still the same, is a lost one back?"""
XID_SECONDS = 600.0
"""How long an Xid that is no fault stays shown. One that is a fault stays until the driver is opened again."""

_UNKNOWN = DeviceSample()
_MIG_MODE = "nvmlDeviceGetMigMode"


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
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``pcie_throughput`` costs 20–40 ms per GPU and read. ``sys_root`` is where sleeping GPUs are looked up."""
        self._progress = progress
        self._pcie_throughput = pcie_throughput
        self._host_memory = host_memory
        self._clock = clock
        self._monotonic = monotonic
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
            raise CollectorFailed("driver_failed", "NVML is not open")
        self._reads += 1
        if self._reads % LAYOUT_READS == 0 and self._has_new_layout(library):
            self._discover(library)
        self._running.refresh()
        xids = self._xid_problems()
        now = self._monotonic()
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
            elif row.at_rest is not None and self._sleep.is_asleep(row.gpu_index):
                samples.append(asleep(row.at_rest[0]))
                uses += row.at_rest[1]
            else:
                facts = row.facts
                samples.append(row.read(position, self._progress, uses, problems, now))
                has_new_facts = has_new_facts or row.facts is not facts
        if has_new_facts:
            self._facts = tuple(row.facts for row in self._rows)
        problems += xids
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
            found: list[Device | _Absent] = []
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
        rows_before, self._rows, self._layout = self._rows, rows, layout
        found_facts = tuple(row.facts for row in rows)
        self._facts = self._facts if found_facts == self._facts else found_facts
        gpus = [row for row in rows if isinstance(row, Device) and row.facts.kind == "gpu"]
        self._sleep.watch({gpu.gpu_index: gpu.facts.pci_bus_id for gpu in gpus})
        before, self._xid_watch = (
            self._xid_watch,
            XidWatch(library, [gpu.handle for gpu in gpus], self._progress),
        )
        if before is not None:
            # Only now, with its successor at work: what happened meanwhile is told by one of them.
            self._note_xids(before, rows_before)
            before.close()
        for gpu in gpus:
            gpu.watches_xids = gpu.handle.value in self._xid_watch.watched

    def _skipped_rows(self, gpu: DeviceFacts | None) -> list[_Absent]:
        """List a GPU that nobody may ask, with its slices, if it was known before."""
        if gpu is None:
            return []
        parts = (facts for facts in self._facts if facts.parent_uuid == gpu.uuid)
        return [_Absent(facts, _skipped_problem(facts)) for facts in (gpu, *parts)]

    def _gpu_with_slices(
        self, library: Library, handle: c_void_p, index: int
    ) -> tuple[int, list[Device | _Absent]]:
        if self._running is None:
            raise CollectorFailed("driver_failed", "NVML is not open")
        self._progress(index, _MIG_MODE)
        mode_status, is_partitioned = _mig_mode(library, handle)
        if mode_status in _NOT_THERE:
            return mode_status, []
        status, facts = gpu_facts(library, handle, index, is_partitioned=is_partitioned)
        if facts is None:
            return status, []
        known = [old for old in self._facts if old.parent_uuid == facts.uuid]
        if mode_status and known:
            is_partitioned, facts = True, msgspec.structs.replace(facts, is_partitioned=True)
        slices: list[Device] = []
        function, status = _MIG_MODE, mode_status
        if is_partitioned and not mode_status:
            function, status, slices = self._slices(library, handle, facts)
        if status in _NOT_THERE:
            return status, []
        problem = _layout_problem(library, facts, function, status) if status else None
        metrics = dict(GPU_METRICS)
        if not is_partitioned:
            metrics = {**WORK_METRICS, **metrics}
        if self._pcie_throughput:
            metrics |= PCIE_METRICS
        lists = None if is_partitioned else RunningLists(self._running, index, handle, is_whole=True)
        health = HealthWatch(library, handle, index)
        gpu = Device(
            library, handle, index, facts, metrics.values(), lists, self._host_memory, health, problem
        )
        rows: list[Device | _Absent] = [gpu, *slices]
        if problem is not None:
            # What cannot be listed now did not vanish.
            found = {row.facts.uuid for row in slices}
            lost = (old for old in known if old.uuid not in found)
            rows += (_Absent(old, msgspec.structs.replace(problem, device_uuid=old.uuid)) for old in lost)
        return 0, rows

    def _slices(self, library: Library, gpu: c_void_p, parent: DeviceFacts) -> tuple[str, int, list[Device]]:
        """Find the slices of a GPU; with a function's name and status if not all could be asked."""
        function, status, handles = _slice_handles(library, gpu)
        found: list[Device] = []
        for place, handle in handles:
            told, facts = slice_facts(library, handle, place, parent)
            if facts is None or not facts.uuid:
                if told != NOT_FOUND:  # that it is gone is an answer
                    function, status = "nvmlDeviceGetUUID", told or pynvml.NVML_ERROR_UNKNOWN
                continue
            lists = None
            if self._running is not None:
                lists = RunningLists(self._running, parent.index, handle, is_whole=False)
            found.append(
                Device(library, handle, parent.index, facts, SLICE_METRICS.values(), lists, self._host_memory)
            )
        return function, status, found

    def _has_new_layout(self, library: Library) -> bool:
        """Whether GPUs or slices came or went, or a GPU that did not answer should be tried afresh."""
        if library.device_count() != len(self._layout):
            return True
        if any(row.is_lost for row in self._rows):
            return True
        if self._xid_watch is not None and self._xid_watch.has_failed:
            return True
        for row in self._rows:
            if not isinstance(row, Device) or row.facts.kind == "slice" or row.gpu_index in self._skipped:
                continue
            if self._sleep.is_asleep(row.gpu_index):
                continue
            if row.layout_problem is not None:
                return True
            self._progress(row.gpu_index, _MIG_MODE)
            status, is_partitioned = _mig_mode(library, row.handle)
            if status:
                continue  # what is known is still read, and tells when it is gone
            slices: tuple[str, ...] = ()
            if is_partitioned:
                _, status, handles = _slice_handles(library, row.handle)
                uuids = tuple(library.text("nvmlDeviceGetUUID", handle) for _, handle in handles)
                if status or None in uuids:
                    continue
                slices = ("mig", *(uuid or "" for uuid in uuids))
            if slices != self._layout[row.gpu_index]:
                return True
        return False

    def _note_xids(self, watch: XidWatch, rows: list[Device | _Absent]) -> None:
        """Take what a watch has seen; ``rows`` are those with the handles that it was given."""
        now = self._clock()
        for address, number in watch.poll():
            row = next((row for row in rows if isinstance(row, Device) and row.handle.value == address), None)
            facts = row.facts if row is not None else None
            uuid = facts.uuid if facts else None
            if row is not None and row.health is not None:
                row.health.read_soon()
            meaning = XIDS.get(number)
            problem = Problem(
                code="xid",
                message=xid_message(number),
                device_uuid=uuid,
                is_fault=meaning is not None and meaning.is_fault and uuid is not None,
                since=now,
                xid=number,
            )
            self._xids[uuid or "", number] = (now, problem)

    def _xid_problems(self) -> list[Problem]:
        if self._xid_watch is not None:
            self._note_xids(self._xid_watch, self._rows)
        now = self._clock()
        for key, (at, problem) in list(self._xids.items()):
            if not problem.is_fault and not 0 <= now - at < XID_SECONDS:
                del self._xids[key]
        return [problem for _, problem in self._xids.values()]


def _skipped_problem(facts: DeviceFacts) -> Problem:
    return Problem(
        code="driver_hung",
        message=f"GPU {facts.index} hung or crashed the driver and is no longer read: reset it or reboot",
        device_uuid=facts.uuid,
        is_fault=True,
    )


def _slices_of(rows: list[Device | _Absent]) -> tuple[str, ...]:
    if not rows[0].facts.is_partitioned:
        return ()
    return ("mig", *(row.facts.uuid for row in rows[1:]))


_NOT_THERE = DRIVER_GONE | {GPU_IS_LOST, RESET_REQUIRED}
"""Statuses that condemn the whole GPU or driver, whichever call they answer."""


def _layout_problem(library: Library, facts: DeviceFacts, function: str, status: int) -> Problem:
    text = (
        f"how GPU {facts.index} is split into slices (MIG) cannot be read: {function} returns "
        f"{library.error_text(status)}; a reload of the driver or a reboot may help"
    )
    return Problem(code="processes_failed", message=clip(text, SENTENCE_LENGTH), device_uuid=facts.uuid)


def _mig_mode(library: Library, gpu: c_void_p) -> tuple[int, bool]:
    """Ask whether a GPU is split into slices; a status if it cannot be known."""
    if library.function(_MIG_MODE) is None:
        return 0, False  # a driver from before MIG
    current, pending = c_uint(), c_uint()
    status = library.call(_MIG_MODE, gpu, byref(current), byref(pending))
    if status == NOT_SUPPORTED and not library.number("nvmlDeviceGetMaxMigDeviceCount", gpu):
        return 0, False  # a GPU that cannot be split
    return status, not status and current.value == pynvml.NVML_DEVICE_MIG_ENABLE


def _slice_handles(library: Library, gpu: c_void_p) -> tuple[str, int, list[tuple[int, c_void_p]]]:
    """List the slices with their places; with a function's name and status if not all could be asked."""
    most, function, failure = c_uint(), "nvmlDeviceGetMaxMigDeviceCount", 0
    status = library.call(function, gpu, byref(most))
    if status:
        return function, status, []
    function = "nvmlDeviceGetMigDeviceHandleByIndex"
    found = []
    for place in range(min(most.value, 64)):
        handle = c_void_p()
        status = library.call(function, gpu, c_uint(place), byref(handle))
        if not status:
            found.append((place, handle))
        elif status != NOT_FOUND:  # there may be gaps between the slices
            failure = status
    return function, failure, found


def _cuda_version(library: Library) -> str | None:
    version = c_int()
    if library.call("nvmlSystemGetCudaDriverVersion_v2", byref(version)):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
