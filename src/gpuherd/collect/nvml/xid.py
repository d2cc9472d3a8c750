"""Xid events as NVML delivers them."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref, c_uint, c_ulonglong, c_void_p

import pynvml

from gpuherd.collect.nvml.library import DRIVER_GONE, Library
from gpuherd.collect.reading import Progress

__all__ = ["XidWatch"]


_EVENT: int = pynvml.nvmlEventTypeXidCriticalError
_MOST_PER_READ = 64


class XidWatch:
    """Collects events without waiting. What happened before it was made is not told by the driver."""

    def __init__(self, library: Library, handles: Iterable[c_void_p], progress: Progress) -> None:
        self._set = c_void_p()
        self._library = library
        self._progress = progress
        self._wait = library.function("nvmlEventSetWait_v2") or library.function("nvmlEventSetWait")
        self._event = pynvml.c_nvmlEventData_t()
        self._arguments = (self._set, byref(self._event), c_uint(0))
        self.is_on = self._wait is not None and library.call("nvmlEventSetCreate", byref(self._set)) == 0
        self.has_failed = False
        """It stopped to tell events; another one has to be made."""
        self.watched: frozenset[int | None] = frozenset()
        """Addresses of the handles whose GPUs tell their events."""
        if self.is_on:
            self.watched = frozenset(
                handle.value
                for handle in handles
                if not library.call("nvmlDeviceRegisterEvents", handle, c_ulonglong(_EVENT), self._set)
            )
            if not self.watched:
                self.close()  # a set with no GPU in it is of no use

    def poll(self) -> list[tuple[int, int]]:
        """Give new events as (address of the GPU's handle, number); raises when the driver is gone."""
        found: list[tuple[int, int]] = []
        if not self.is_on or self._wait is None:
            return found
        self._progress(-1, "nvmlEventSetWait")
        while len(found) < _MOST_PER_READ:
            status = self._wait(*self._arguments)
            if status:
                if status in DRIVER_GONE:
                    raise self._library.failed(status)
                if status != pynvml.NVML_ERROR_TIMEOUT and not found:
                    self.has_failed = True
                    self.close()  # a lost GPU in the set makes some drivers answer an error for ever
                break
            if self._event.eventType == _EVENT:
                found.append((_address(self._event.device), int(self._event.eventData)))
        return found

    def close(self) -> None:
        """Free the set."""
        if self.is_on:
            self._library.call("nvmlEventSetFree", self._set)
            self.is_on = False


def _address(handle: object) -> int:
    return pynvml.cast(handle, c_void_p).value or 0
