"""Puts a report together from what an older tool tells, GPU by GPU and process by process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import Process, ProcessSample, ProcessTable, ProcessUse, UseKind, UseSample
from gpuherd.model.reports import MAX_DEVICES, NodeFacts, Problem, Report, Sample
from gpuherd.model.text import COMMAND_LENGTH, clean
from gpuherd.sources.old_values import whole

__all__ = ["MAX_PROCESSES", "Assembly", "Scrub", "SteadyParts", "command_line", "remembering"]

MAX_PROCESSES = 4096
MAX_USES = 8192
MAX_PROBLEMS = 1024

Scrub = Callable[[Sequence[str]], list[str]]
"""Takes secrets out of an argument list. Older tools do not do it on the node, so it is done on arrival."""


REMEMBERED_COMMANDS = 4096
LONGEST_REMEMBERED = 1024


def remembering(scrub: Scrub) -> Scrub:
    """Remember what the latest command lines became: the same ones come every few seconds, and scrubbing is slow."""
    known: OrderedDict[tuple[str, ...], list[str]] = OrderedDict()

    def look_up(arguments: Sequence[str]) -> list[str]:
        key = tuple(arguments)
        if sum(map(len, key)) + len(key) > LONGEST_REMEMBERED:
            return scrub(key)
        if key in known:
            known.move_to_end(key)
        else:
            known[key] = scrub(key)
            while len(known) > REMEMBERED_COMMANDS:
                known.popitem(last=False)
        return list(known[key])

    return look_up


def command_line(arguments: Sequence[str], scrub: Scrub) -> str | None:
    """Join an argument list to what is shown, without its secrets."""
    return clean(" ".join(scrub(arguments)), COMMAND_LENGTH) or None


class Assembly:
    """A report in the making. Devices that cannot be told apart and everything above the caps are left out."""

    def __init__(self) -> None:
        self._devices: list[DeviceFacts] = []
        self._place_of_uuid: dict[str, int] = {}
        self._samples: list[DeviceSample] = []
        self._processes: list[Process] = []
        self._place_of_pid: dict[int, int] = {}
        self._process_samples: list[ProcessSample] = []
        self._uses: dict[tuple[int, int], ProcessUse] = {}
        self._use_samples: list[UseSample] = []
        self._problems: list[Problem] = []
        self._omitted = 0

    def add_device(
        self, facts: DeviceFacts, sample: DeviceSample, problems: Iterable[Problem] = ()
    ) -> int | None:
        """Add a GPU and give its position; none if it is the same as another, or one too many."""
        if facts.uuid in self._place_of_uuid:
            # What is told of one may be true of the other.
            message = (
                f"two GPUs have the id {facts.uuid}; the second is not shown; look at what the node sends"
            )
            self.add_problem(
                Problem(code="gpu_error", message=message, device_uuid=facts.uuid, is_fault=True)
            )
            return None
        if len(self._devices) >= MAX_DEVICES:
            self.add_problem(
                Problem(code="too_many_devices", message=f"only the first {MAX_DEVICES} GPUs are shown")
            )
            return None
        place = self._place_of_uuid[facts.uuid] = len(self._devices)
        self._devices.append(facts)
        self._samples.append(sample)
        for problem in problems:
            self.add_problem(problem)
        return place

    def pid_of_use(self, device: int, told: object) -> int | None:
        """Read the pid of a process on a GPU; none if it is no pid or there are too many: that GPU is not free then."""
        pid = whole(told, 0, 2**32)
        if pid is not None and len(self._uses) < MAX_USES:
            if pid in self._place_of_pid or len(self._processes) < MAX_PROCESSES:
                return pid
            self._omitted += 1
        self.lacks_processes(device, "a process could not be read" if pid is None else "there are too many")
        return None

    def lacks_processes(self, device: int | None, why: str) -> None:
        """Say that the processes of a GPU, or of all, are not all known."""
        uuid = None if device is None else self._devices[device].uuid
        message = f"not all processes are known: {why}"
        self.add_problem(Problem(code="processes_failed", message=message, device_uuid=uuid))

    def position_of(self, uuid: str) -> int | None:
        """Find a GPU that was added."""
        return self._place_of_uuid.get(uuid)

    def add_use(
        self,
        device: int,
        process: Process,
        sample: ProcessSample,
        use: UseSample,
        kind: UseKind = "compute",
    ) -> None:
        """Add a process on a GPU; one that is on several is one process."""
        place = self._place_of_pid.get(process.pid)
        if place is None:
            if len(self._processes) >= MAX_PROCESSES:
                self._omitted += 1
                return
            place = self._place_of_pid[process.pid] = len(self._processes)
            self._processes.append(process)
            self._process_samples.append(sample)
        if (place, device) in self._uses or len(self._uses) >= MAX_USES:
            return
        self._uses[place, device] = ProcessUse(process=place, device=device, kind=kind)
        self._use_samples.append(use)

    def add_problem(self, problem: Problem) -> None:
        """Add a problem, once."""
        if problem not in self._problems and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def report(
        self,
        host: HostFacts,
        *,
        time: float,
        host_sample: HostSample | None = None,
        disks_used_bytes: tuple[int | None, ...] = (),
    ) -> Report:
        """Give the report. ``time`` is the node's clock as far as it is known."""
        return Report(
            facts=NodeFacts(host=host, devices=tuple(self._devices)),
            table=ProcessTable(
                processes=tuple(self._processes),
                uses=tuple(self._uses.values()),
                omitted=self._omitted,
            ),
            sample=Sample(
                time=time,
                host=host_sample or HostSample(),
                disks_used_bytes=disks_used_bytes,
                devices=tuple(self._samples),
                processes=tuple(self._process_samples),
                uses=tuple(self._use_samples),
                problems=tuple(self._problems),
            ),
        )


class SteadyParts:
    """Gives facts and table as the same objects while they stay the same: they are then not looked at again."""

    def __init__(self) -> None:
        self._last: Report | None = None

    def keep(self, report: Report) -> Report:
        """Exchange what did not change since the report before."""
        last, self._last = self._last, report
        if last is not None:
            facts = last.facts if last.facts == report.facts else report.facts
            table = last.table if last.table == report.table else report.table
            self._last = structs.replace(report, facts=facts, table=table)
        return self._last
