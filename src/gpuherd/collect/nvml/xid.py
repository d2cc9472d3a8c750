"""Xid events: what the driver's kernel part complains about, by number."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from typing import NamedTuple

import pynvml

from gpuherd.collect.nvml.library import DRIVER_GONE, Library
from gpuherd.collect.reading import Progress

__all__ = ["XIDS", "XidMeaning", "XidWatch", "xid_message"]


class XidMeaning(NamedTuple):
    """What a number stands for. ``is_fault``: the GPU must not be used before a reset or repair."""

    text: str
    remedy: str
    is_fault: bool = False


_PROGRAM = "an error of the program that ran, most often; the GPU goes on"
_RESET = "stop its processes and reset the GPU"
_REBOOT = "reboot; if it comes back, have the card checked"

XIDS: dict[int, XidMeaning] = {
    13: XidMeaning("graphics engine exception", _PROGRAM),
    31: XidMeaning("memory page fault", _PROGRAM),
    32: XidMeaning("invalid or corrupted command stream", _PROGRAM),
    43: XidMeaning("the GPU stopped processing a program", _PROGRAM),
    45: XidMeaning("a program's work was removed after an earlier error", _PROGRAM),
    48: XidMeaning("double-bit ECC error", _RESET, is_fault=True),
    61: XidMeaning("internal micro-controller warning", "reset the GPU when convenient"),
    62: XidMeaning("internal micro-controller halt", _RESET, is_fault=True),
    63: XidMeaning("ECC page retirement or row remapping recorded", "reset the GPU when convenient"),
    64: XidMeaning("ECC page retirement or row remapping failed", _RESET, is_fault=True),
    68: XidMeaning("video processor exception", _PROGRAM),
    69: XidMeaning("graphics engine class error", _PROGRAM),
    74: XidMeaning("NVLink error", _RESET + "; if it comes back, check links and bridges", is_fault=True),
    79: XidMeaning("the GPU has fallen off the bus", _REBOOT, is_fault=True),
    92: XidMeaning("high rate of single-bit ECC errors", "watch it; have the card checked if it goes on"),
    94: XidMeaning("contained ECC error", "the program was ended; reset the GPU when convenient"),
    95: XidMeaning("uncontained ECC error", _RESET, is_fault=True),
    109: XidMeaning("context switch timeout", _PROGRAM),
    119: XidMeaning(
        "the GPU's system processor (GSP) does not answer", _RESET + ", or reboot", is_fault=True
    ),
    120: XidMeaning("error of the GPU's system processor (GSP)", _RESET + ", or reboot", is_fault=True),
    140: XidMeaning("unrecovered ECC error", _RESET, is_fault=True),
    143: XidMeaning("the GPU failed to initialise", _REBOOT, is_fault=True),
}
"""The common ones. Numbers not listed are shown without a meaning and are no fault."""

_EVENT: int = pynvml.nvmlEventTypeXidCriticalError
_MOST_PER_READ = 64


def xid_message(number: int) -> str:
    """Say in a sentence what an Xid is and what to do."""
    meaning = XIDS.get(number)
    if meaning is None:
        return f"Xid {number}: see NVIDIA's Xid catalogue for its meaning"
    return f"Xid {number}, {meaning.text}: {meaning.remedy}"


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
        if self.is_on:
            # GPUs without events say so; a set with no GPU in it is of no use.
            results = [
                library.call("nvmlDeviceRegisterEvents", handle, c_ulonglong(_EVENT), self._set)
                for handle in handles
            ]
            if all(results):
                self.close()

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
