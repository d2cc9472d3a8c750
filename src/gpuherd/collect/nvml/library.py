"""The library itself: finding, starting and leaving it, and what its status numbers mean."""

from __future__ import annotations

import _ctypes
import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_uint, c_void_p, create_string_buffer

import pynvml

from gpuherd.collect.reading import CollectorFailed, CollectorUnavailable, Progress
from gpuherd.model.text import clean

__all__ = [
    "DRIVER_GONE",
    "FUNCTION_NOT_FOUND",
    "GPU_IS_LOST",
    "IMPOSSIBLE",
    "INSUFFICIENT_SIZE",
    "NOT_FOUND",
    "NOT_SUPPORTED",
    "NO_DATA",
    "NO_PERMISSION",
    "OTHER_CALL",
    "RESET_REQUIRED",
    "UNSUPPORTED",
    "Library",
    "NvmlFunction",
]

NvmlFunction = Callable[..., int]
"""A function of the library: takes handles, constants and places to write to, gives a status (0 is success)."""

LIBRARY_NAME = "libnvidia-ml.so.1"

GPU_IS_LOST: int = pynvml.NVML_ERROR_GPU_IS_LOST
RESET_REQUIRED: int = pynvml.NVML_ERROR_RESET_REQUIRED
INSUFFICIENT_SIZE: int = pynvml.NVML_ERROR_INSUFFICIENT_SIZE
NOT_FOUND: int = pynvml.NVML_ERROR_NOT_FOUND
NO_DATA: int = pynvml.NVML_ERROR_NO_DATA
NOT_SUPPORTED: int = pynvml.NVML_ERROR_NOT_SUPPORTED
NO_PERMISSION: int = pynvml.NVML_ERROR_NO_PERMISSION
FUNCTION_NOT_FOUND: int = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
IMPOSSIBLE = -1
"""Not NVML's: the call succeeded, and what it gave cannot be."""
OTHER_CALL = frozenset(
    {
        NOT_SUPPORTED,
        FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_DEPRECATED,
    }
)
"""This driver has no such call; an older one may do."""
UNSUPPORTED = OTHER_CALL | {NO_PERMISSION, NOT_FOUND}
"""This device will not answer this question; no use to ask again soon. What decides whether a device is free is asked
again all the same, and only NOT_SUPPORTED means that the device has no such thing."""
DRIVER_GONE = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
"""Nothing can be read until the library is started again (the driver was reloaded or upgraded)."""

_MISMATCH: int = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
_REASONS: dict[int, tuple[str, str]] = {
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "no_driver",
        "the NVIDIA driver is not loaded: run 'modprobe nvidia' and check the kernel log if that fails",
    ),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "no_driver",
        "the NVIDIA driver is not completely installed: reinstall it",
    ),
    _MISMATCH: (
        "driver_mismatch",
        "driver/library version mismatch, the driver was upgraded while it was running: reboot or reload it",
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "no_permission",
        "no permission to open /dev/nvidia*: give the agent's user, service unit or container access",
    ),
    pynvml.NVML_ERROR_UNINITIALIZED: (
        "driver_failed",
        "the NVIDIA driver was reloaded; the agent is reconnecting to it",
    ),
    GPU_IS_LOST: (
        "gpu_lost",
        "a GPU has fallen off the bus and keeps NVML from starting: reboot, and check its power and seating",
    ),
}


class Library:
    """A started NVML. Not for use by several threads."""

    def __init__(self, progress: Progress) -> None:
        """Load and start it; raises ``CollectorUnavailable`` with reason and remedy."""
        progress(-1, "dlopen")
        try:
            self._cdll = ctypes.CDLL(LIBRARY_NAME)
        except OSError as error:
            raise CollectorUnavailable(
                "no_driver",
                f"NVML ({LIBRARY_NAME}) is not installed on this machine: install the NVIDIA driver, or "
                "start the container with the NVIDIA runtime",
            ) from error
        start = self.function("nvmlInit_v2") or self.function("nvmlInit")
        if start is None:
            raise CollectorUnavailable("no_driver", f"{LIBRARY_NAME} is not NVML: install the NVIDIA driver")
        progress(-1, "nvmlInit")
        status = start()
        if status:
            reason = self.unavailable(status)
            if status == _MISMATCH:
                self._unload()
            raise reason

    def function(self, name: str) -> NvmlFunction | None:
        """Look a function up; ``None`` if this driver's library does not have it."""
        try:
            # Item access gives an object of its own: argument conversion set on it concerns nobody else.
            function: NvmlFunction = self._cdll[name]
        except AttributeError:
            return None
        return function

    def call(self, name: str, *arguments: object) -> int:
        """Call a function by name, for what is not called every tick; a missing one is not supported."""
        function = self.function(name)
        return pynvml.NVML_ERROR_FUNCTION_NOT_FOUND if function is None else function(*arguments)

    def number(self, name: str, *before: object, kind: type[c_uint | c_int] = c_uint) -> int | None:
        """Ask for one number; ``None`` when there is no answer."""
        cell = kind()
        return None if self.call(name, *before, byref(cell)) else cell.value

    def text(self, name: str, *before: object) -> str | None:
        """Ask for a string; ``None`` when there is no answer."""
        buffer = create_string_buffer(256)
        if self.call(name, *before, buffer, c_uint(len(buffer))):
            return None
        return clean(buffer.value.decode(errors="replace"))

    def device_count(self) -> int:
        """Count the GPUs; raises ``CollectorFailed`` when the driver is gone."""
        count = c_uint()
        status = self.call("nvmlDeviceGetCount_v2", byref(count))
        if status == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            status = self.call("nvmlDeviceGetCount", byref(count))
        if status:
            raise self.failed(status)
        return count.value

    def device_handle(self, index: int) -> tuple[int, c_void_p]:
        """Get the handle of a GPU, with the status."""
        handle = c_void_p()
        status = self.call("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
        if status == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            status = self.call("nvmlDeviceGetHandleByIndex", c_uint(index), byref(handle))
        return status, handle

    def error_text(self, status: int) -> str:
        """Say what a status means, in the library's words."""
        if status == IMPOSSIBLE:
            return "an impossible value"
        function = self.function("nvmlErrorString")
        if function is None:
            return f"error {status}"
        function.restype = ctypes.c_char_p  # type: ignore[attr-defined]
        words: bytes | None = function(c_int(status))  # type: ignore[assignment]
        return f"{clean(words.decode(errors='replace'))} ({status})" if words else f"error {status}"

    def unavailable(self, status: int) -> CollectorUnavailable:
        """Make the error of a start that failed."""
        return CollectorUnavailable(*self._reason(status))

    def failed(self, status: int) -> CollectorFailed:
        """Make the error of a library that stopped to work."""
        return CollectorFailed(*self._reason(status))

    def _reason(self, status: int) -> tuple[str, str]:
        known = _REASONS.get(status)
        return known or ("driver_failed", f"the NVIDIA driver reports: {self.error_text(status)}")

    def close(self) -> None:
        """Stop it; the driver's files are closed, so that the driver can be unloaded."""
        self.call("nvmlShutdown")

    def _unload(self) -> None:
        """Forget the loaded file: after an upgrade another version lies on disk, and the old one never fits again."""
        _ctypes.dlclose(self._cdll._handle)  # noqa: SLF001 - ctypes has no public way to unload
