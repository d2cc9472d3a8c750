"""A node reader and a GPU collector that do what a script file says: hang, crash, vanish, recover.

Loaded by name in probe processes, which find it by PYTHONPATH.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from gpuherd.collect.reading import GpuCollector, GpuReading, Progress, SeenUse, no_progress
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample

__all__ = ["TinyCollector", "TinyNode"]


class Script(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong: ``faults`` by GPU index ("-1" while opening, "host" outside of the driver)."""

    gpus: int = 3
    faults: dict[str, str] = {}
    problem: str | None = None
    padding: int = 0


def script_of(file: str) -> Script:
    """Read the script as it is now."""
    return msgspec.json.decode(Path(file).read_bytes(), type=Script)


def _suffer(fault: str | None) -> None:
    if fault == "hang":
        read_end, _ = os.pipe()
        os.read(read_end, 1)  # for ever
    elif fault == "slow":
        time.sleep(0.15)
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "exit":
        os._exit(3)
    elif fault == "fail":
        raise Failed("the script says so")
    elif fault == "bug":
        raise ZeroDivisionError("a bug")


def uuid_of(index: int) -> str:
    """Name the GPU at this index."""
    return f"GPU-{index:04d}"


class TinyCollector:
    """GPUs without a driver."""

    name = "tiny"

    def __init__(self, progress: Progress = no_progress, *, script: str) -> None:
        self._progress = progress
        self._script = script
        self._skipped: frozenset[int] = frozenset()
        self._problems: tuple[Problem, ...] = ()

    def open(self) -> None:
        """Open, if the script lets it."""
        self._progress(-1, "tinyInit")
        script = script_of(self._script)
        _suffer(script.faults.get("-1"))
        # As a process keeps the library it has loaded, the problem stays for this process's life.
        if script.problem is not None:
            self._problems = (Problem(code=script.problem, message="as scripted", is_fault=True),)

    def read(self) -> GpuReading:
        """Read the GPUs that are not skipped."""
        script = script_of(self._script)
        devices: list[DeviceFacts] = []
        samples: list[DeviceSample] = []
        uses: list[SeenUse] = []
        for index in range(script.gpus):
            if index in self._skipped:
                continue
            self._progress(index, "tinyGetTemperature")
            _suffer(script.faults.get(str(index)))
            uses.append(SeenUse(device=len(devices), pid=1000 + index, gpu_memory_bytes=index * 10))
            devices.append(
                DeviceFacts(
                    uuid=uuid_of(index), index=index, name="Tiny" + "x" * script.padding, vendor="simulated"
                )
            )
            samples.append(DeviceSample(temperature_celsius=40.0 + index))
        return GpuReading(
            devices=tuple(devices), samples=tuple(samples), uses=tuple(uses), problems=self._problems
        )

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these alone."""
        self._skipped = devices

    def close(self) -> None:
        """Nothing to let go of."""


class TinyNode:
    """A host with the GPUs of the first collector."""

    def __init__(self, collectors: list[GpuCollector], *, script: str, hostname: str = "tiny") -> None:
        self._collectors = collectors
        self._script = script
        self._hostname = hostname
        self._is_open = False
        print("a library that prints", file=sys.stdout)  # noqa: T201 - must not reach the agent's own output

    def read(self) -> Report:
        """Read everything."""
        if not self._is_open:
            for collector in self._collectors:
                collector.open()
            self._is_open = True
        gpus = self._collectors[0].read() if self._collectors else GpuReading()
        _suffer(script_of(self._script).faults.get("host"))
        processes = tuple(Process(pid=use.pid, started_at=1.0, user="user01") for use in gpus.uses)
        uses = tuple(ProcessUse(process=place, device=use.device) for place, use in enumerate(gpus.uses))
        return Report(
            facts=NodeFacts(host=HostFacts(hostname=self._hostname), devices=gpus.devices),
            table=ProcessTable(processes=processes, uses=uses),
            sample=Sample(
                time=time.time(),
                host=HostSample(cpu_ratio=0.5),
                devices=gpus.samples,
                processes=tuple(ProcessSample(cpu_cores=1.0) for _ in processes),
                uses=tuple(UseSample(gpu_memory_bytes=use.gpu_memory_bytes) for use in gpus.uses),
                problems=gpus.problems,
            ),
        )

    def close(self) -> None:
        """Close the collectors."""
        for collector in self._collectors:
            collector.close()


def write_script(file: Path, **fields: Any) -> None:
    """Change the script at once, for all who read it."""
    temporary = file.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(Script(**fields)))
    temporary.replace(file)
