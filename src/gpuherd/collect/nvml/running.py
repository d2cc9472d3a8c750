"""Who runs on a device: the driver's process lists and what each process uses."""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import byref, c_char, c_uint, c_ulonglong, c_void_p
from operator import itemgetter
from typing import Any

import pynvml

from gpuherd.collect.nvml.library import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNSUPPORTED,
    Library,
    NvmlFunction,
)
from gpuherd.collect.reading import Progress, SeenUse
from gpuherd.model.processes import UseKind

__all__ = ["Running", "RunningLists"]

_FIRST_ROOM = 64
_MOST_ROOM = 65_536
_NOT_AVAILABLE = 2**53
"""Memory from here on is one of NVML's "not available" values."""
_WITH_INSTANCES = struct.Struct("=I4xQII")
_WITH_PROTECTED_MEMORY = struct.Struct("=I4xQIIQ")
"""Drivers 535.43 to 535.54 wrote these in their ``_v3`` lists; the others write the smaller ones."""
_WITHOUT_INSTANCES = struct.Struct("=I4xQ")
_UNTOUCHED = 0xA5
"""What a buffer is filled with, to see how far the driver wrote."""
_UTILIZATION = struct.Struct("=I4xQIIII")
_WINDOW_MICROSECONDS = 1_000_000
"""Utilisation is asked for the last second, so that the driver's buffer is never empty while work is done."""


class Listing:
    """One kind of list. The driver's newest layout is used; drivers before 510 have only older ones.

    The size of an entry in a ``_v3`` list is seen when the first list comes that is not empty.
    """

    def __init__(self, library: Library, function: str, kind: UseKind) -> None:
        self.kind: UseKind = kind
        self.name = function
        self._versions: list[tuple[NvmlFunction, struct.Struct | None]] = []
        for suffix, layout in (("_v3", None), ("_v2", _WITH_INSTANCES), ("", _WITHOUT_INSTANCES)):
            found = library.function(function + suffix)
            if found is not None:
                self._versions.append((found, layout))
        self._version = 0
        self._count = c_uint()
        self._count_at = byref(self._count)
        self._make_room(_FIRST_ROOM)

    def _make_room(self, room: int) -> None:
        self._room = room
        self._buffer = (c_char * (room * _WITH_PROTECTED_MEMORY.size))()
        self._view = memoryview(self._buffer).cast("B")
        self._view[:] = bytes((_UNTOUCHED,)) * len(self._view)

    def read(self, handle: c_void_p) -> tuple[int, list[tuple[Any, ...]]]:
        """Ask once; gives the status and rows that begin with pid and memory, those of a list that was cut too."""
        while self._version < len(self._versions):
            function, layout = self._versions[self._version]
            self._count.value = self._room
            status = function(handle, self._count_at, self._buffer)
            if status == 0:
                count = min(self._count.value, self._room)
                if not count:
                    return 0, []
                if layout is None:
                    layout = self._seen_layout(count)
                    self._versions[self._version] = (function, layout)
                is_cut = self._count.value > self._room
                rows = list(layout.iter_unpack(self._view[: count * layout.size]))
                return INSUFFICIENT_SIZE if is_cut else 0, rows
            if status == INSUFFICIENT_SIZE and self._room < _MOST_ROOM:
                self._make_room(min(max(self._count.value, self._room) * 2, _MOST_ROOM))
            elif status == FUNCTION_NOT_FOUND:
                self._version += 1  # the stub of a newer library over an older driver
            else:
                return status, []
        self._version = 0  # none at all is more than the driver's age: all are tried again
        return FUNCTION_NOT_FOUND, []

    def _seen_layout(self, count: int) -> struct.Struct:
        behind = self._view[count * _WITH_INSTANCES.size : count * _WITH_PROTECTED_MEMORY.size]
        return _WITH_INSTANCES if all(byte == _UNTOUCHED for byte in behind) else _WITH_PROTECTED_MEMORY


class Running:
    """Reads the processes of a device; one for all devices, as its buffers are only used within a call."""

    def __init__(self, library: Library, progress: Progress, clock: Callable[[], float]) -> None:
        self._progress = progress
        self._clock = clock
        self.compute = Listing(library, "nvmlDeviceGetComputeRunningProcesses", "compute")
        self.graphics = Listing(library, "nvmlDeviceGetGraphicsRunningProcesses", "graphics")
        self.mps = Listing(library, "nvmlDeviceGetMPSComputeRunningProcesses", "compute")
        self._utilization = library.function("nvmlDeviceGetProcessUtilization")
        self._since = c_ulonglong()
        self._count = c_uint()
        self._count_at = byref(self._count)
        self._make_room(_FIRST_ROOM)

    def _make_room(self, room: int) -> None:
        self._room = room
        self._samples = (c_char * (_UTILIZATION.size * room))()
        self._view = memoryview(self._samples).cast("B")

    def refresh(self) -> None:
        """Begin a tick."""
        self._since.value = max(0, int(self._clock() * 1e6) - _WINDOW_MICROSECONDS)

    def utilization(self, handle: c_void_p) -> tuple[int, dict[int, float]]:
        """Ask for the share of the SMs by pid. The driver leaves out those that did nothing."""
        if self._utilization is None:
            return pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, {}
        while True:
            self._count.value = self._room
            status = self._utilization(handle, self._samples, self._count_at, self._since)
            if status != INSUFFICIENT_SIZE or self._room >= _MOST_ROOM:
                break
            self._make_room(min(max(self._count.value, self._room) * 2, _MOST_ROOM))
        if status:
            return (0, {}) if status == NOT_FOUND else (status, {})
        rows = _UTILIZATION.iter_unpack(self._view[: min(self._count.value, self._room) * _UTILIZATION.size])
        # By time, so that of several samples of a process the newest stays.
        return 0, {row[0]: row[2] / 100 for row in sorted(rows, key=_sampled_at) if row[2] <= 100}


_sampled_at = itemgetter(1)


class RunningLists:
    """The lists that one device supports; remembers those it does not."""

    def __init__(self, running: Running, gpu_index: int, handle: c_void_p, *, is_whole: bool) -> None:
        self._running = running
        self._gpu_index = gpu_index
        self._handle = handle
        self._is_whole = is_whole
        self.probe_again()

    def probe_again(self) -> None:
        """Forget what was not supported."""
        self._has_graphics = self._has_mps = True
        self._has_utilization = self._is_whole

    def read(self, position: int, progress: Progress) -> tuple[list[SeenUse], list[tuple[str, int]]]:
        """List the processes on a device, with the calls that failed and their status."""
        running, index, handle = self._running, self._gpu_index, self._handle
        memory: dict[int, tuple[int, UseKind]] = {}
        failures: list[tuple[str, int]] = []
        # Without this list nobody can say that a device is free: whatever it answers, it is asked again.
        self._list(running.compute, memory, failures, progress)
        if memory and self._has_mps:
            # Clients of an MPS server; the server itself is among the compute processes.
            self._has_mps = self._list(running.mps, memory, failures, progress, may_lack=UNSUPPORTED)
        if self._has_graphics:
            self._has_graphics = self._list(
                running.graphics, memory, failures, progress, may_lack=frozenset({NOT_SUPPORTED})
            )
        if not memory:
            return [], failures
        shares: dict[int, float] | None = None
        if self._has_utilization:
            progress(index, "nvmlDeviceGetProcessUtilization")
            status, shares = running.utilization(handle)
            if status:
                shares = None
                if status in UNSUPPORTED:
                    self._has_utilization = False
                else:
                    failures.append(("nvmlDeviceGetProcessUtilization", status))
        uses = [
            SeenUse(
                device=position,
                pid=pid,
                kind=kind,
                gpu_memory_bytes=used if used < _NOT_AVAILABLE else None,
                utilization_sm=None if shares is None else shares.get(pid, 0.0),
            )
            for pid, (used, kind) in memory.items()
        ]
        return uses, failures

    def _list(
        self,
        listing: Listing,
        memory: dict[int, tuple[int, UseKind]],
        failures: list[tuple[str, int]],
        progress: Progress,
        *,
        may_lack: frozenset[int] = frozenset(),
    ) -> bool:
        """Read a list; ``False`` if the device lacks it, which only some statuses mean."""
        progress(self._gpu_index, listing.name)
        status, rows = listing.read(self._handle)
        if status:
            if status in may_lack:
                return False
            failures.append((listing.name, status))
        for row in rows:
            pid, used = row[0], row[1]
            known = memory.get(pid)
            # A process may be on several lists: the first names its kind, the largest known figure counts.
            if known is None:
                memory[pid] = (used, listing.kind)
            elif known[0] < used < _NOT_AVAILABLE or known[0] >= _NOT_AVAILABLE:
                memory[pid] = (used, known[1])
        return True
