"""Everything of this node as one report: GPUs by the first collector that works, processes, host.

Facts and process table are the same objects as long as nothing changed, so that the caller can compare by identity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gpuherd.collect.host import HostCollector
from gpuherd.collect.processes import CommandLines, ProcessLookup
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuCollector,
    GpuReading,
    HostReader,
    ProcessReader,
    SeenUse,
)
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseSample
from gpuherd.model.reports import MAX_DEVICES, NodeFacts, Problem, Report, Sample, fewer_problems
from gpuherd.model.text import SENTENCE_LENGTH, clip

__all__ = ["NodeCollector"]

RETRY_SECONDS = 30.0
"""How long to wait before looking again for a driver that was not there."""
MAX_PROCESSES = 4096
MAX_USES = 8192
MAX_PROBLEMS = 1000

_UNKNOWN = DeviceSample()
_NO_COST = ProcessSample()


class NodeCollector:
    """Reads a node. ``collectors`` are in order of preference: the first that opens is used until it fails."""

    def __init__(
        self,
        collectors: Sequence[GpuCollector],
        *,
        command_lines: CommandLines = "full",
        agent_version: str | None = None,
        trust_pids: bool | None = None,
        processes: ProcessReader | None = None,
        host: HostReader | None = None,
        retry_seconds: float = RETRY_SECONDS,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collectors = list(collectors)
        self._processes: ProcessReader = processes or ProcessLookup(
            command_lines=command_lines, trust_pids=trust_pids, monotonic=monotonic
        )
        self._host: HostReader = host or HostCollector(agent_version=agent_version, monotonic=monotonic)
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._monotonic = monotonic
        self._open: GpuCollector | None = None
        self._retry_at = monotonic()
        self._reasons: tuple[tuple[str, str, str], ...] = ()
        self._versions: tuple[str | None, str | None] = (None, None)
        self._facts: NodeFacts | None = None
        self._plain_host: HostFacts | None = None
        self._table = ProcessTable()
        self._since: dict[tuple[str, str | None], float] = {}

    def read(self) -> Report:
        """Look once at everything. What cannot be read becomes a problem within the report."""
        problems: list[Problem] = []
        reading = self._read_gpus(problems)
        host_sample = self._host.sample()
        facts = self._make_facts(reading.devices[:MAX_DEVICES])
        devices = reading.samples[:MAX_DEVICES]
        if len(reading.devices) > MAX_DEVICES:
            left_out = len(reading.devices) - MAX_DEVICES
            problems.append(Problem(code="too_many_devices", message=f"{left_out} devices are omitted"))
        process_samples, use_samples, cut = self._make_table(reading.uses, len(devices))
        problems += reading.problems
        problems += (
            Problem(
                code="processes_failed",
                message=(
                    f"more than {MAX_PROCESSES} processes run on this node's GPUs; not all processes of "
                    "this GPU are listed"
                ),
                device_uuid=facts.devices[place].uuid,
            )
            for place in sorted(cut)
        )
        # Simulated processes are told by their collector, wherever it runs.
        if devices and facts.devices[0].vendor != "simulated" and self._processes.hidden is not None:
            problems.append(Problem(code="processes_hidden", message=self._processes.hidden))
        now = self._clock()
        return Report(
            facts=facts,
            sample=Sample(
                time=now,
                host=host_sample,
                disks_used_bytes=self._host.disks_used_bytes(),
                devices=devices,
                processes=process_samples,
                uses=use_samples,
                problems=self._dated(fewer_problems(problems, MAX_PROBLEMS), now),
            ),
            table=self._table,
        )

    def close(self) -> None:
        """Let go of everything; may be called twice."""
        if self._open is not None:
            self._open.close()
            self._open = None
        self._processes.close()
        self._host.close()

    def _read_gpus(self, problems: list[Problem]) -> GpuReading:
        for _ in range(2):  # a driver that was reloaded is opened again at once
            if self._open is None:
                self._try_open()
            if self._open is None:
                break
            try:
                reading = self._open.read()
            except (Failed, Unavailable) as error:  # unavailable: its tool was removed while we used it
                code = _code(error, "driver_failed")
                self._reasons = ((self._open.name, code, str(error)),)
                self._open.close()
                self._open = None
                self._retry_at = self._monotonic()
            else:
                self._versions = (reading.driver_version, reading.cuda_version)
                return reading
        return self._without_gpus(problems)

    def _try_open(self) -> None:
        if self._monotonic() < self._retry_at:
            return
        reasons = []
        for collector in self._collectors:
            try:
                collector.open()
            except (Unavailable, Failed) as error:
                reasons.append((collector.name, _code(error, "no_driver"), str(error)))
                collector.close()
            else:
                self._open = collector
                self._reasons = ()
                return
        self._reasons = tuple(reasons)
        self._retry_at = self._monotonic() + self._retry_seconds

    def _without_gpus(self, problems: list[Problem]) -> GpuReading:
        """Report no readings; GPUs that were there before stay listed, all of them faulty."""
        known = self._facts.devices if self._facts is not None else ()
        if self._reasons:
            # One sentence per way that was tried; what the first says is the most telling.
            told = "; ".join(f"{name}: {message}" for name, _, message in self._reasons)
            problems.append(
                Problem(
                    code=self._reasons[0][1],
                    message=clip(f"no GPU can be read ({told})", SENTENCE_LENGTH),
                    is_fault=bool(known) or any(code in _FAULTS for _, code, _ in self._reasons),
                )
            )
        return GpuReading(devices=known, samples=(_UNKNOWN,) * len(known))

    def _make_facts(self, devices: tuple[DeviceFacts, ...]) -> NodeFacts:
        plain, (driver, cuda) = self._host.facts(), self._versions
        facts = self._facts
        if (
            facts is not None
            and plain is self._plain_host
            and facts.host.driver_version == driver
            and facts.host.cuda_version == cuda
            and (facts.devices is devices or facts.devices == devices)
        ):
            return facts
        self._plain_host = plain
        host = msgspec.structs.replace(plain, driver_version=driver, cuda_version=cuda)
        self._facts = NodeFacts(host=host, devices=devices)
        return self._facts

    def _make_table(
        self, seen: tuple[SeenUse, ...], device_count: int
    ) -> tuple[tuple[ProcessSample, ...], tuple[UseSample, ...], set[int]]:
        """Bring the process table up to date; give the samples in its order and the devices that lack some."""
        looked_up = self._processes.look_up([use.pid for use in seen if use.process is None])
        rows: dict[Any, int] = {}
        processes: list[Process] = []
        costs: list[ProcessSample] = []
        uses: list[ProcessUse] = []
        amounts: list[UseSample] = []
        left_out: set[Any] = set()
        cut: set[int] = set()
        for use in seen:
            key = use.pid if use.process is None else (use.pid, use.process.started_at)
            place = rows.get(key)
            if place is None:
                if len(processes) >= MAX_PROCESSES:
                    left_out.add(key)
                    cut.add(use.device)
                    continue
                place = rows[key] = len(processes)
                if use.process is None:
                    process, cost = looked_up[use.pid]
                else:
                    process, cost = use.process, use.process_sample or _NO_COST
                processes.append(process)
                costs.append(cost)
            if use.device >= device_count:
                continue
            if len(uses) >= MAX_USES:
                cut.add(use.device)
                continue
            uses.append(ProcessUse(process=place, device=use.device, kind=use.kind))
            amounts.append(
                UseSample(gpu_memory_bytes=use.gpu_memory_bytes, utilization_sm=use.utilization_sm)
            )
        table = ProcessTable(processes=tuple(processes), uses=tuple(uses), omitted=len(left_out))
        if table != self._table:
            self._table = table
        return tuple(costs), tuple(amounts), {place for place in cut if place < device_count}

    def _dated(self, problems: list[Problem], now: float) -> tuple[Problem, ...]:
        """Say of each problem since when it is there."""
        if not problems:
            self._since.clear()
            return ()
        since: dict[tuple[str, str | None], float] = {}
        dated = []
        for problem in problems:
            key = (problem.code, problem.device_uuid)
            start = since[key] = since.get(key) or self._since.get(key) or problem.since or now
            dated.append(
                problem if problem.since is not None else msgspec.structs.replace(problem, since=start)
            )
        self._since = since
        return tuple(dated)


def _code(error: Failed | Unavailable, otherwise: str) -> str:
    return error.code if isinstance(error, CollectorUnavailable | CollectorFailed) else otherwise


_FAULTS = frozenset({"driver_mismatch", "driver_failed", "gpu_lost", "driver_hung", "driver_crashed"})
"""Reasons that mean broken, not absent: GPUs that are remembered from before must not be called usable."""
