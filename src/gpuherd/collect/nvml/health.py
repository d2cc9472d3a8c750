"""A GPU's health registers: row remapping, page retirement, recovery action. Slow to change, so read rarely."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint, c_void_p

import pynvml

from gpuherd.collect.health import recovery_problem, remap_problems, retirement_problems
from gpuherd.collect.nvml.library import Library
from gpuherd.collect.reading import Progress
from gpuherd.model.devices import DeviceFacts, HealthCheck
from gpuherd.model.reports import Problem

__all__ = ["HealthWatch"]

HEALTH_SECONDS = 10.0
"""How old what is said may be. After an Xid it is read at once."""


class HealthWatch:
    """Reads the registers of one GPU; those that it does not have, or that fail, are not checked."""

    def __init__(self, library: Library, handle: c_void_p, gpu_index: int) -> None:
        self.checks: tuple[HealthCheck, ...] = ()
        """What could be read the last time."""
        self._library = library
        self._handle = handle
        self._gpu_index = gpu_index
        self._due_at = float("-inf")
        self._found: dict[HealthCheck, list[Problem]] = {}

    def read_soon(self) -> None:
        """Read again at the next opportunity."""
        self._due_at = float("-inf")

    def read(self, facts: DeviceFacts, now: float, progress: Progress, problems: list[Problem]) -> bool:
        """Add what is wrong; gives whether it was read just now (``now`` is monotonic).

        A register that fails keeps what it said last.
        """
        is_due = now >= self._due_at
        if is_due:
            self._due_at = now + HEALTH_SECONDS
            self._look(facts, progress)
        for found in self._found.values():
            problems += found
        return is_due

    def _look(self, facts: DeviceFacts, progress: Progress) -> None:
        checks: list[HealthCheck] = []
        progress(self._gpu_index, "nvmlDeviceGetRemappedRows")
        corrected, uncorrected, pending, failed = c_uint(), c_uint(), c_uint(), c_uint()
        places = (byref(corrected), byref(uncorrected), byref(pending), byref(failed))
        if not self._library.call("nvmlDeviceGetRemappedRows", self._handle, *places):
            checks.append("row_remap")
            self._found["row_remap"] = remap_problems(
                facts, is_pending=bool(pending.value), has_failed=bool(failed.value)
            )
        progress(self._gpu_index, "nvmlDeviceGetRetiredPagesPendingStatus")
        is_pending = self._library.number("nvmlDeviceGetRetiredPagesPendingStatus", self._handle)
        if is_pending is not None:
            checks.append("page_retirement")
            self._found["page_retirement"] = retirement_problems(facts, is_pending=bool(is_pending))
        progress(self._gpu_index, "nvmlDeviceGetFieldValues")
        field = pynvml.c_nvmlFieldValue_t(fieldId=pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
        status = self._library.call("nvmlDeviceGetFieldValues", self._handle, c_int(1), byref(field))
        if not status and not field.nvmlReturn:
            checks.append("recovery_action")
            self._found["recovery_action"] = recovery_problem(facts, field.value.uiVal)
        self.checks = tuple(checks)
