"""The amd-smi collector: which commands to run, and what to make of their failures."""

from __future__ import annotations

from gpuherd.collect.amd_smi.parsing import (
    Entry,
    device_facts,
    device_sample,
    driver_version,
    impossible,
    parse_entries,
    uses,
)
from gpuherd.collect.commands import CommandFailed, LocalRunner, Runner
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuReading,
    Progress,
    SeenUse,
    impossible_values,
    no_progress,
)
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.reports import Problem

__all__ = ["AmdSmiCollector"]

PROGRAM = "amd-smi"


class AmdSmiCollector:
    """Reads GPUs with two commands a read, ``metric`` and ``process``; what they are with two more, once.

    amd-smi is a Python program: each command costs a node some tenths of a second of CPU.
    """

    name = "amd_smi"

    def __init__(
        self,
        progress: Progress = no_progress,
        runner: Runner | None = None,
        *,
        deadline_seconds: float = 10.0,
    ) -> None:
        self._progress = progress
        self._runner: Runner = runner or LocalRunner()
        self._deadline_seconds = deadline_seconds
        self._static: dict[int, Entry] = {}
        self._listed: dict[int, Entry] = {}
        self._skipped: frozenset[int] = frozenset()
        self._facts: tuple[DeviceFacts, ...] = ()

    def open(self) -> None:
        """Find out which GPUs there are, and that amd-smi works."""
        try:
            self._static = self._ask("static")
            self._listed = self._ask("list")
            self.read()
        except CollectorFailed as error:
            raise CollectorUnavailable(error.code, str(error)) from error
        except CommandFailed as error:
            raise CollectorUnavailable("driver_failed", str(error)) from error
        except Unavailable as error:
            raise CollectorUnavailable(
                "no_driver", f"{error}: install AMD's driver and amd-smi-lib"
            ) from error

    def read(self) -> GpuReading:
        """Read all GPUs."""
        metric = self._ask("metric")
        facts = device_facts(self._static, self._listed, metric)
        facts = tuple(device for device in facts if device.index not in self._skipped)
        if not facts:
            raise CollectorFailed("no_gpu", "amd-smi finds no GPU: check that the amdgpu driver is loaded")
        self._facts = self._facts if facts == self._facts else facts
        problems: list[Problem] = []
        samples: list[DeviceSample] = []
        for device in facts:
            measured, static = metric.get(device.index), self._static.get(device.index, {})
            if measured is None:
                samples.append(DeviceSample())
                problems.append(_silent(device))
                continue
            sample = device_sample(measured, static, device.memory_total_bytes)
            samples.append(sample)
            problems += impossible_values(PROGRAM, device, impossible(measured, static, device, sample))
        found: tuple[SeenUse, ...] = ()
        try:
            found, unread = uses(self._ask("process"), [device.index for device in facts])
            problems += (_unlisted(facts[place]) for place in unread)
        except CollectorFailed as error:
            if error.code == "driver_hung":
                raise
            problems.append(Problem(code="processes_failed", message=str(error)))
        return GpuReading(
            devices=self._facts,
            samples=tuple(samples),
            uses=found,
            problems=tuple(problems),
            driver_version=driver_version(self._static),
        )

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs out. The command still asks all of them."""
        self._skipped = devices

    def close(self) -> None:
        """Nothing stays open."""

    def _ask(self, what: str) -> dict[int, Entry]:
        self._progress(-1, f"{PROGRAM} {what}")
        try:
            content = self._runner.run([PROGRAM, what, "--json"], self._deadline_seconds)
        except CommandFailed as error:
            # One GPU or metric that fails gives a status too, with the answer of the others.
            content = error.output
            if not content.strip():
                raise CollectorFailed("driver_failed", str(error)) from error
        except Unavailable:
            raise
        except Failed as error:
            raise CollectorFailed(
                "driver_hung", f"{error}; the driver may hang: reboot if this persists"
            ) from error
        try:
            return parse_entries(content)
        except Failed as error:
            raise CollectorFailed("driver_failed", f"{PROGRAM} {what}: {error}") from error


def _unlisted(device: DeviceFacts) -> Problem:
    return Problem(
        code="processes_failed",
        message=f"amd-smi process does not list the processes of GPU {device.index}: run it as root and "
        "check its output",
        device_uuid=device.uuid,
    )


def _silent(device: DeviceFacts) -> Problem:
    return Problem(
        code="gpu_error",
        message=f"GPU {device.index} is listed but has no values: look for amdgpu messages in the kernel log",
        device_uuid=device.uuid,
        is_fault=True,
    )
