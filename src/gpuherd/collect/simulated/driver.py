"""The driver that is not there: time, the scenario as it is now, and what goes wrong with a call."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from gpuherd.collect.reading import CollectorFailed
from gpuherd.collect.scenario import Fault, Scenario, load_scenario
from gpuherd.model.errors import Misconfigured

__all__ = [
    "DRIVER_GONE",
    "GPU_IS_LOST",
    "IMPOSSIBLE",
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "UNSUPPORTED",
    "SimulatedDriver",
    "error_text",
]

_log = logging.getLogger(__name__)

SUCCESS = 0
NOT_SUPPORTED = 3
NO_PERMISSION = 4
IMPOSSIBLE = -1
"""Not NVML's: the call succeeded, and what it gave cannot be."""
GPU_IS_LOST = 15
UNSUPPORTED = frozenset({NOT_SUPPORTED, NO_PERMISSION, 6, 13, 25, 26})
"""NVML's ways to say that a device will not answer a question."""
DRIVER_GONE = frozenset({1, 9, 18})
"""Nothing can be read until the library is started again."""
HANG_POLL_SECONDS = 0.02

_ERRORS = {
    IMPOSSIBLE: "an impossible value",
    1: "Uninitialized",
    NO_PERMISSION: "Insufficient Permissions",
    9: "Driver Not Loaded",
    GPU_IS_LOST: "GPU is lost",
    16: "GPU requires reset",
    18: "Driver/library version mismatch",
    999: "Unknown Error",
}


def error_text(status: int) -> str:
    """Say what an NVML status means."""
    return f"{_ERRORS.get(status, 'error')} ({status})"


def crash_process() -> None:
    """Die as a process does whose driver library crashes."""
    os.kill(os.getpid(), signal.SIGSEGV)


class SimulatedDriver:
    """A scenario being played. A file is read again when it changes; a wrong one leaves the last good in force."""

    def __init__(
        self,
        source: Path | Scenario,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        crash: Callable[[], None] = crash_process,
    ) -> None:
        self._path = source if isinstance(source, Path) else None
        self._scenario = source if isinstance(source, Scenario) else None
        self._seen: tuple[int, int, int] | None = None
        self._clock = clock
        self._sleep = sleep
        self._crash = crash
        self._is_closed = False
        self.started = clock()

    @property
    def scenario(self) -> Scenario:
        """The scenario in force."""
        if self._scenario is None:
            raise CollectorFailed("driver_failed", "no scenario is loaded")
        return self._scenario

    @property
    def time(self) -> float:
        """Seconds into the scenario."""
        return self.scenario.time(self._clock(), self.started)

    @property
    def epoch(self) -> float:
        """Unix time of second 0."""
        return self.started if self.scenario.epoch is None else float(self.scenario.epoch)

    def open(self) -> None:
        """Load the scenario; raises ``Misconfigured`` when it is wrong, even if there was a good one before."""
        self._is_closed = False
        if self._path is not None:
            self._seen = _identity(self._path)
            self._scenario = load_scenario(self._path)

    def close(self) -> None:
        """End a hang that may be going on in another thread."""
        self._is_closed = True

    def refresh(self) -> None:
        """Read the file again if it is another one than before."""
        if self._path is None:
            return
        identity = _identity(self._path)
        if identity == self._seen:
            return
        self._seen = identity
        try:
            self._scenario = load_scenario(self._path)
        except Misconfigured as error:
            _log.warning("%s; continuing with the last good scenario", error)

    def status(self, function: str, gpu: int | None = None) -> int:
        """Make a call of NVML: takes its time, hangs or crashes as scheduled; gives the error, or 0."""
        delay = sum(entry.seconds for entry in self.scenario.latencies if entry.concerns(function, gpu))
        if delay > 0:
            self._sleep(delay)
        while (fault := self._fault(function, gpu)) is not None:
            if isinstance(fault.effect, int):
                return fault.effect
            if fault.effect == "crash":
                self._crash()
            if self._is_closed:
                raise CollectorFailed("driver_hung", "the simulated driver was closed while it hung")
            # A hang ends with its time window or with a new scenario. Nobody else calls this driver, so that
            # holding its lock or not makes no difference here.
            self._sleep(HANG_POLL_SECONDS)
            self.refresh()
        return SUCCESS

    def _fault(self, function: str, gpu: int | None) -> Fault | None:
        t = self.time
        return next(
            (fault for fault in self.scenario.faults if fault.concerns(function, gpu) and fault.is_active(t)),
            None,
        )


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
