"""The collector: asks a simulated driver what the NVML collector asks a real one, in the same order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from gpuherd.collect.health import recovery_problem, remap_problems, retirement_problems
from gpuherd.collect.meminfo import HostMemory, host_memory, is_integrated
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuReading,
    Progress,
    SeenUse,
    no_progress,
)
from gpuherd.collect.scenario import MigSlice, Scenario, SimulatedGpu, quantised, value_at
from gpuherd.collect.simulated.driver import (
    DRIVER_GONE,
    GPU_IS_LOST,
    IMPOSSIBLE,
    NOT_SUPPORTED,
    UNSUPPORTED,
    SimulatedDriver,
    crash_process,
)
from gpuherd.collect.simulated.metrics import CARD_CALLS, PCIE_CALLS, WORK_CALLS, Call, memory_at
from gpuherd.collect.simulated.problems import (
    device_problem,
    driver_failed,
    driver_message,
    driver_problem,
    failure_problem,
    note_failure,
    skipped_problem,
)
from gpuherd.collect.simulated.running import uses_at
from gpuherd.collect.xids import XIDS, xid_message
from gpuherd.model.devices import DeviceFacts, DeviceSample, HealthCheck, MemoryBasis
from gpuherd.model.reports import Problem

__all__ = ["SimulatedCollector"]

LAYOUT_READS = 10
"""Every so many reads, GPUs and slices are looked for anew, as the NVML collector does."""
XID_SECONDS = 600.0
_LACKS = frozenset({NOT_SUPPORTED})


class _Row(Struct):
    """A device of the list; without a GPU it did not answer, and ``problem`` says how."""

    facts: DeviceFacts
    index: int
    gpu: SimulatedGpu | None = None
    mig_slice: MigSlice | None = None
    problem: Problem | None = None


class SimulatedCollector:
    """Plays a scenario (a file, read again when it changes, or a struct). May hang or crash, if that is in it."""

    name = "simulated"

    def __init__(
        self,
        source: Path | Scenario,
        progress: Progress = no_progress,
        pcie_throughput: bool = False,
        *,
        host_memory: HostMemory = host_memory(),  # noqa: B008 - only makes a closure
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        crash: Callable[[], None] = crash_process,
    ) -> None:
        self._driver = SimulatedDriver(source, clock=clock, sleep=sleep, crash=crash)
        self._progress = progress
        self._card_calls = CARD_CALLS + (PCIE_CALLS if pcie_throughput else ())
        self._host_memory = host_memory
        self._clock = clock
        self._skipped: frozenset[int] = frozenset()
        self._rows: list[_Row] = []
        self._facts: tuple[DeviceFacts, ...] = ()
        self._discovered: Scenario | None = None
        self._opened_at = 0.0
        self._reads = 0

    def open(self) -> None:
        """Start the simulated driver; raises ``Misconfigured`` for a wrong scenario, else as every collector."""
        self._driver.open()
        status = self._call("nvmlInit_v2")
        if status:
            raise CollectorUnavailable(driver_problem(status), driver_message(status))
        try:
            self._discover()
        except CollectorFailed as error:
            raise CollectorUnavailable(error.code, str(error)) from error
        if not self._driver.scenario.gpus:
            raise CollectorUnavailable("no_gpu", "the simulated driver has no GPU: add some to the scenario")
        self._opened_at = self._driver.time

    def read(self) -> GpuReading:
        """Look at every simulated device; see ``GpuCollector.read``."""
        self._driver.refresh()
        self._reads += 1
        if self._driver.scenario is not self._discovered or self._reads % LAYOUT_READS == 0:
            self._discover()
        samples: list[DeviceSample] = []
        uses: list[SeenUse] = []
        problems: list[Problem] = []
        for position, row in enumerate(self._rows):
            if row.problem is not None:
                samples.append(DeviceSample())
                problems.append(row.problem)
            elif row.index in self._skipped:
                samples.append(DeviceSample())
                problems.append(skipped_problem(row.facts))
            else:
                samples.append(self._sample(row, position, uses, problems))
        if any(row.facts is not facts for row, facts in zip(self._rows, self._facts, strict=True)):
            self._facts = tuple(row.facts for row in self._rows)
        scenario = self._driver.scenario
        return GpuReading(
            devices=self._facts,
            samples=tuple(samples),
            uses=tuple(uses),
            problems=(*problems, *self._xid_problems()),
            driver_version=scenario.driver_version,
            cuda_version=scenario.cuda_version,
        )

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs alone from now on; one that was never read is left out of the list."""
        self._skipped = devices

    def close(self) -> None:
        """Stop playing; a hang in another thread ends with an error."""
        self._driver.close()

    def _call(self, function: str, gpu: int | None = None) -> int:
        self._progress(-1 if gpu is None else gpu, function)
        return self._driver.status(function, gpu)

    def _discover(self) -> None:
        known = {facts.index: facts for facts in self._facts if facts.kind == "gpu"}
        status = self._call("nvmlDeviceGetCount_v2")
        if status:
            raise driver_failed(status)
        scenario = self._driver.scenario
        rows: list[_Row] = []
        for index, gpu in enumerate(scenario.gpus):
            if index in self._skipped:
                continue
            status = self._call("nvmlDeviceGetHandleByIndex_v2", index) or self._call(
                "nvmlDeviceGetUUID", index
            )
            if status in DRIVER_GONE:
                raise driver_failed(status)
            if status:
                remembered = known.get(index) if len(known) == len(scenario.gpus) else None
                facts = remembered or DeviceFacts(
                    uuid=f"gpu-{index}-without-uuid", index=index, name="NVIDIA GPU", vendor=self.name
                )
                rows.append(_Row(facts, index, problem=device_problem(facts, status)))
            else:
                rows += self._gpu_with_slices(gpu, index)
        self._rows, self._discovered = rows, scenario
        found = tuple(row.facts for row in rows)
        self._facts = self._facts if found == self._facts else found

    def _gpu_with_slices(self, gpu: SimulatedGpu, index: int) -> list[_Row]:
        t = self._driver.time
        clock, limit = value_at(gpu.clock_sm_max_mhz, t), value_at(gpu.power_limit_default_watts, t)
        facts = DeviceFacts(
            uuid=gpu.uuid,
            index=index,
            name=gpu.name,
            vendor=self.name,
            is_partitioned=gpu.mig_mode is True,
            pci_bus_id=_bus_id(gpu.pci_bus_id),
            compute_capability=gpu.compute_capability,
            clock_sm_max_hertz=None if clock is None else quantised(clock) * 1e6,
            power_limit_default_watts=None if limit is None else quantised(limit * 1000) / 1000,
            serial=gpu.serial,
        )
        rows = [_Row(facts, index, gpu)]
        for place, mig_slice in enumerate(gpu.mig_slices if gpu.mig_mode else ()):
            of_slice = DeviceFacts(
                uuid=mig_slice.uuid,
                index=place,
                name=f"{gpu.name} MIG {mig_slice.profile}",
                kind="slice",
                vendor=self.name,
                parent_uuid=gpu.uuid,
                profile=mig_slice.profile,
                pci_bus_id=facts.pci_bus_id,
                compute_capability=gpu.compute_capability,
                gpu_instance=mig_slice.gpu_instance,
            )
            rows.append(_Row(of_slice, index, gpu, mig_slice))
        for row in rows:  # what memory there is stays known while the GPU cannot be asked
            before = next((facts for facts in self._facts if facts.uuid == row.facts.uuid), None)
            if before is not None:
                row.facts = structs.replace(
                    row.facts,
                    memory_total_bytes=before.memory_total_bytes,
                    memory_basis=before.memory_basis,
                    health_checks=before.health_checks,
                )
                row.facts = before if row.facts == before else row.facts
        return rows

    def _sample(self, row: _Row, position: int, uses: list[SeenUse], problems: list[Problem]) -> DeviceSample:
        t = self._driver.time
        values: dict[str, Any] = {}
        failures: list[tuple[str, int]] = []
        unknown: list[str] = []
        is_whole = row.mig_slice is None
        work = WORK_CALLS if is_whole and not row.facts.is_partitioned else ()
        answered = self._read_calls(row, work, t, values, failures, unknown)
        answered += self._read_memory(row, t, values, failures, unknown)
        cards = self._card_calls if is_whole else ()
        answered += self._read_calls(row, cards, t, values, failures, unknown)
        is_dead = bool(failures) and not answered
        self._read_processes(row, position, t, uses, failures)
        if failures:
            problems.append(failure_problem(row.facts, failures, unknown, is_dead=is_dead))
        if is_whole and not _is_lost(failures):
            self._read_health(row, t, problems)
        return DeviceSample(**values)

    def _read_health(self, row: _Row, t: float, problems: list[Problem]) -> None:
        gpu = row.gpu
        if gpu is None:
            return
        checks: list[HealthCheck] = []
        if value_at(gpu.remapped_rows_corrected, t) is not None and not self._call(
            "nvmlDeviceGetRemappedRows", row.index
        ):
            checks.append("row_remap")
            problems += remap_problems(
                row.facts,
                is_pending=gpu.remapped_rows_pending is True,
                has_failed=gpu.remapped_rows_failed is True,
            )
        if gpu.retired_pages_pending is not None and not self._call(
            "nvmlDeviceGetRetiredPagesPendingStatus", row.index
        ):
            checks.append("page_retirement")
            problems += retirement_problems(row.facts, is_pending=gpu.retired_pages_pending)
        action = value_at(gpu.recovery_action, t)
        if action is not None and not self._call("nvmlDeviceGetFieldValues", row.index):
            checks.append("recovery_action")
            problems += recovery_problem(row.facts, quantised(action))
        if not self._driver.status("nvmlDeviceRegisterEvents", row.index):
            checks.append("xid")
        if tuple(checks) != row.facts.health_checks:
            row.facts = structs.replace(row.facts, health_checks=tuple(checks))

    def _read_calls(
        self,
        row: _Row,
        calls: tuple[Call, ...],
        t: float,
        values: dict[str, Any],
        failures: list[tuple[str, int]],
        unknown: list[str],
    ) -> int:
        """Make calls until the GPU turns out to be lost; gives how many had an answer."""
        answered = 0
        for call in calls:
            if row.gpu is None or _is_lost(failures):
                break
            status = self._call(call.function, row.index)
            answer = None if status else call.answer(row.gpu, t)
            if answer is not None:
                answered += 1
                values.update((field, value) for field, value in answer.items() if value is not None)
                if answer.get("utilization_gpu", 0) is None:
                    failures.append((call.function, IMPOSSIBLE))
                    unknown.append("utilization_gpu")
            elif status:
                count = len(failures)
                decides = call.fields[0][0] == "utilization_gpu"
                note_failure(failures, call.function, status, _LACKS if decides else UNSUPPORTED)
                if len(failures) > count:
                    unknown += (field for field, _, _ in call.fields)
        return answered

    def _read_memory(
        self,
        row: _Row,
        t: float,
        values: dict[str, Any],
        failures: list[tuple[str, int]],
        unknown: list[str],
    ) -> int:
        """Read the memory, of the host where the GPU has none; gives whether the GPU answered."""
        if row.gpu is None or _is_lost(failures):
            return 0
        status = self._call("nvmlDeviceGetMemoryInfo_v2", row.index)
        memory = None if status else memory_at(row.mig_slice or row.gpu, t)
        if memory is not None:
            values["memory_reserved_bytes"] = memory.reserved
            if memory.total > 0 and memory.used <= memory.total <= 2**53:
                values["memory_used_bytes"] = memory.used
            else:
                failures.append(("nvmlDeviceGetMemoryInfo_v2", IMPOSSIBLE))
                unknown.append("memory_used_bytes")
            self._set_memory(row, memory.total if 0 < memory.total <= 2**53 else None, "framebuffer")
            return 1
        status = status or NOT_SUPPORTED
        if status != NOT_SUPPORTED:
            unknown += ("memory_reserved_bytes", "memory_total_bytes", "memory_used_bytes")
        elif is_integrated(row.facts):
            total, used = self._machine_memory(t)
            if used is not None:
                values["memory_used_bytes"] = used
            self._set_memory(row, total, "host")
        note_failure(failures, "nvmlDeviceGetMemoryInfo_v2", status, _LACKS)
        return 0

    def _set_memory(self, row: _Row, total: int | None, basis: MemoryBasis) -> None:
        if row.facts.memory_total_bytes != total or row.facts.memory_basis != basis:
            row.facts = structs.replace(row.facts, memory_total_bytes=total, memory_basis=basis)

    def _machine_memory(self, t: float) -> tuple[int | None, int | None]:
        host = self._driver.scenario.host
        if host is None:
            return self._host_memory()
        used = value_at(host.memory_used_bytes, t)
        return host.facts.memory_total_bytes, None if used is None else quantised(used)

    def _read_processes(
        self, row: _Row, position: int, t: float, uses: list[SeenUse], failures: list[tuple[str, int]]
    ) -> None:
        if row.gpu is None or row.facts.is_partitioned or _is_lost(failures):
            return
        lists = []
        for kind, may_lack in (("Compute", frozenset[int]()), ("Graphics", _LACKS)):
            function = f"nvmlDeviceGet{kind}RunningProcesses_v3"
            status = self._call(function, row.index)
            lists.append(not status)
            if status:
                note_failure(failures, function.removesuffix("_v3"), status, may_lack)
        holder = row.mig_slice or row.gpu
        listed = [p for p in holder.processes if lists["compute" not in p.type]]
        if not any(process.is_alive(t) for process in listed):
            return
        has_utilization = row.mig_slice is None
        if has_utilization:
            status = self._call("nvmlDeviceGetProcessUtilization", row.index)
            has_utilization = not status
            if status:
                note_failure(failures, "nvmlDeviceGetProcessUtilization", status)
        uses += uses_at(listed, position, t, self._driver.epoch, has_utilization=has_utilization)

    def _xid_problems(self) -> list[Problem]:
        """Tell Xids since the driver was opened: faults for as long as it stays open, others for a while."""
        t, gpus = self._driver.time, self._driver.scenario.gpus
        problems = []
        for xid in self._driver.scenario.xids:
            is_fault = xid.xid in XIDS and XIDS[xid.xid].is_fault
            is_shown = self._opened_at <= xid.at <= t and (is_fault or t < xid.at + XID_SECONDS)
            if is_shown and xid.gpu < len(gpus):
                problems.append(
                    Problem(
                        code="xid",
                        message=f"{xid_message(xid.xid)} (simulated)",
                        device_uuid=gpus[xid.gpu].uuid,
                        is_fault=is_fault,
                        since=max(0.0, self._driver.epoch + xid.at),
                        xid=xid.xid,
                    )
                )
        return problems


def _is_lost(failures: list[tuple[str, int]]) -> bool:
    """Whether to stop asking: with a real lost GPU every further call may take seconds."""
    return bool(failures) and failures[-1][1] == GPU_IS_LOST


def _bus_id(written: str | None) -> str | None:
    """As NVML writes it: 00000000:3B:00.0."""
    if written is None:
        return None
    domain, bus, place = written.split(":")
    device, _, function = place.partition(".")
    return f"{int(domain, 16):08X}:{int(bus, 16):02X}:{int(device, 16):02X}.{function}"
