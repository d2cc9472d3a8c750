"""The nvidia-smi collector: which commands to run, and what to make of their failures."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

import msgspec

from gpuherd.collect.commands import CommandFailed, LocalRunner, NotAsked, Runner
from gpuherd.collect.meminfo import HostMemory, host_memory, is_integrated
from gpuherd.collect.nvidia_smi.log import parse_gpu_uuids, parse_listing, parse_log
from gpuherd.collect.nvidia_smi.query import (
    APP_FIELDS,
    App,
    Columns,
    parse_apps,
    parse_help,
    supported_fields,
)
from gpuherd.collect.nvidia_smi.row import (
    DRIVER_VERSION,
    FIELDS,
    has_own_uuid,
    hints_at_failure,
    problems_of,
    undecided,
    unhealthy,
    unknown_layout,
    words_device,
)
from gpuherd.collect.nvidia_smi.slices import with_slices
from gpuherd.collect.nvidia_smi.words import label_of
from gpuherd.collect.reading import (
    CollectorFailed,
    CollectorUnavailable,
    GpuReading,
    Progress,
    SeenUse,
    no_progress,
)
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.reports import Problem
from gpuherd.model.text import SENTENCE_LENGTH, clean

__all__ = ["NvidiaSmiCollector"]

PROGRAM = "nvidia-smi"
FORMAT = "--format=csv,noheader,nounits"
LOG_SECONDS = 60.0
"""After this the log is read again though no process has changed: a slice may have been made or taken away."""
APPS_QUESTION = f"--query-compute-apps={','.join(APP_FIELDS)}"

_BAD_FIELD = re.compile(r'Field "([\w.]+)" is not a valid field')
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_LOST_GPU = re.compile(rf"device handle for GPU[^\n]{{0,8}}?({_ADDRESS}): ([^\n.]{{1,80}})")
_WARNED = re.compile(_ADDRESS)
_START_FAILURES = (
    (
        "version mismatch",
        "driver_mismatch",
        "driver/library version mismatch, the driver was upgraded while it was running: reboot or reload it",
    ),
    ("couldn't communicate", "no_driver", "the NVIDIA driver is not loaded: run 'modprobe nvidia'"),
    ("driver not loaded", "no_driver", "the NVIDIA driver is not loaded: run 'modprobe nvidia'"),
    (
        "no devices were found",
        "no_gpu",
        "the NVIDIA driver runs but finds no GPU: check 'lspci | grep -i nvidia'",
    ),
    (
        "insufficient permissions",
        "no_permission",
        "no permission to open /dev/nvidia*: give the agent's user, service unit or container access",
    ),
)


class NvidiaSmiCollector:
    """Reads GPUs with two cheap commands a read: one for the GPUs, one for the compute processes.

    With MIG the costly log is read too, for slices and who is on them: when the processes or their memory have
    changed, and after ``log_seconds`` (0: at every read; the runner says if there is no need).

    Known gaps against NVML: memory in whole MiB, no graphics processes, no SM share by process, no energy.
    """

    name = "nvidia_smi"

    def __init__(
        self,
        progress: Progress = no_progress,
        runner: Runner | None = None,
        *,
        deadline_seconds: float = 10.0,
        log_seconds: float = LOG_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
        host_memory: HostMemory = host_memory(),  # noqa: B008 - only makes a closure
    ) -> None:
        self._progress = progress
        self._runner: Runner = runner or LocalRunner()
        self._deadline_seconds = deadline_seconds
        self._host_memory = host_memory
        self._fields: list[str] = []
        self._columns = Columns(())
        self._gpus_question = ""
        self._skipped: frozenset[int] = frozenset()
        self._facts: tuple[DeviceFacts, ...] = ()
        self._cuda_version: str | None = None
        self._log_seconds = log_seconds
        self._monotonic = monotonic
        self._ecc_uncorrected: dict[str, int] = {}
        self._apps = b""
        self._kept_log: tuple[GpuReading, bytes, float] | None = None

    def open(self) -> None:
        """Find out which fields this nvidia-smi knows, and that it works."""
        self._ecc_uncorrected.clear()
        try:
            known = parse_help(self._run("--help-query-gpu"))
        except Unavailable as error:
            raise CollectorUnavailable(
                "no_driver", f"{error}: install the NVIDIA driver's tools (nvidia-utils, nvidia-smi)"
            ) from error
        except Failed:
            known = frozenset()
        self._choose(supported_fields(known))
        try:
            self.read()
        except (CollectorFailed, CommandFailed) as error:
            code = error.code if isinstance(error, CollectorFailed) else "driver_failed"
            raise CollectorUnavailable(code, str(error)) from error

    def read(self) -> GpuReading:
        """Read all GPUs."""
        if not self._fields:
            raise CollectorFailed("driver_failed", "the nvidia-smi collector is not open")
        has_slices = False
        try:
            reading = self._query()
        except CommandFailed as error:
            reading, has_slices = self._after_failure(error)
        except Unavailable as error:
            raise CollectorFailed("no_driver", str(error)) from error
        except CollectorFailed:
            raise
        except Failed as error:
            raise CollectorFailed(
                "driver_hung", f"{error}; the driver may hang: reboot if this persists"
            ) from error
        if has_slices:
            self._kept_log = None
        elif any(facts.is_partitioned for facts in reading.devices):
            reading = with_slices(reading, self._log_of_slices())
        else:
            self._kept_log = None
        reading = self._with_host_memory(reading)
        if reading.devices == self._facts:
            return msgspec.structs.replace(reading, devices=self._facts)
        self._facts = reading.devices
        return reading

    def skip(self, devices: frozenset[int]) -> None:
        """Leave these GPUs out. The command still opens all of them: only NVML can avoid a single one."""
        self._skipped = devices

    def close(self) -> None:
        """Nothing stays open."""

    def _run(self, *arguments: str) -> bytes:
        self._progress(-1, f"{PROGRAM} {arguments[0]}"[:60])
        return self._runner.run([PROGRAM, *arguments], self._deadline_seconds)

    def _query(self, *only: str) -> GpuReading:
        answer = self._query_gpus(*only)
        columns = self._columns
        rows = columns.rows(answer)
        if not rows:
            raise CollectorFailed("driver_failed", "the output of nvidia-smi --query-gpu cannot be read")
        may_have_failed = hints_at_failure(answer)
        devices: list[DeviceFacts] = []
        samples: list[DeviceSample] = []
        problems: list[Problem] = []
        errors: dict[str, int] = {}
        for words in rows:
            facts, sample = words_device(words)
            if facts.index in self._skipped:
                continue
            devices.append(facts)
            samples.append(self._with_errors_so_far(facts, sample, errors))
            failed = problems_of(facts, columns.named(words)) if may_have_failed else []
            problems += failed or undecided(facts, sample, words)
            problems += unknown_layout(facts, words, failed)
            problems += unhealthy(facts, words)
        self._ecc_uncorrected = errors
        problems += _warnings(answer, devices)
        uses: list[SeenUse] = []
        try:
            self._apps = self._run(APPS_QUESTION, FORMAT, *only)
            apps, unread = parse_apps(self._apps)
            uses = _uses(apps, devices)
            is_whole = not any(facts.is_partitioned for facts in devices)
            is_named = all(has_own_uuid(facts) for facts in devices)
            known = {facts.uuid for facts in devices}
            # One on a GPU that is not listed says nothing of those that are, if all tell who they are; one on a slice
            # that nobody knows of does.
            unread += (
                app.gpu_uuid
                for app in apps
                if (is_whole and not app.gpu_uuid.startswith("GPU-"))
                or not (is_named or app.gpu_uuid in known)
            )
            if unread:
                problems.append(_unread_processes(unread[0]))
        except CommandFailed as error:
            self._apps = error.output
            problems.append(Problem(code="processes_failed", message=str(error)))
        return GpuReading(
            devices=tuple(devices),
            samples=tuple(samples),
            uses=tuple(uses),
            problems=tuple(problems),
            driver_version=label_of(rows[0][DRIVER_VERSION]),
            cuda_version=self._cuda_version,
        )

    def _with_errors_so_far(
        self, facts: DeviceFacts, sample: DeviceSample, errors: dict[str, int]
    ) -> DeviceSample:
        """Keep a count of ECC errors that cannot be read any more: it does not go down while the driver is loaded.

        ``errors`` are the counts of this reading, by UUID.
        """
        if sample.ecc_uncorrected is None and facts.uuid in self._ecc_uncorrected:
            sample = msgspec.structs.replace(sample, ecc_uncorrected=self._ecc_uncorrected[facts.uuid])
        if sample.ecc_uncorrected is not None:
            errors[facts.uuid] = sample.ecc_uncorrected
        return sample

    def _choose(self, fields: list[str]) -> None:
        self._fields, self._columns = fields, Columns(fields)
        self._gpus_question = f"--query-gpu={','.join(fields)}"

    def _query_gpus(self, *only: str) -> bytes:
        """Ask for all fields; one that this nvidia-smi does not know after all is replaced or dropped."""
        for _ in range(2 * len(FIELDS)):
            try:
                return self._run(self._gpus_question, FORMAT, *only)
            except CommandFailed as error:
                bad = _BAD_FIELD.search((error.output + error.complaint).decode(errors="replace"))
                if bad is None or bad[1] not in self._fields:
                    raise
                self._choose(_without(self._fields, bad[1]))
        raise CollectorFailed("driver_failed", "nvidia-smi supports none of the required fields")

    def _after_failure(self, error: CommandFailed) -> tuple[GpuReading, bool]:
        """A single lost GPU makes the whole command fail: ask for the others. Else look at the XML log.

        Also gives whether the reading has the slices in it.
        """
        words = _words(error)
        for telling, code, message in _START_FAILURES:
            if telling in words.lower():
                raise CollectorFailed(code, message) from error
        if _LOST_GPU.search(words) is not None:
            return self._without_lost(error), False
        try:
            return self._log(), True
        except Failed as again:
            raise CollectorFailed("driver_failed", str(error)) from again

    def _without_lost(self, error: CommandFailed) -> GpuReading:
        """Read the GPUs that still answer, all at once if only one is lost."""
        known = {facts.uuid: facts for facts in self._facts if facts.kind == "gpu"}
        lost = {_lost_uuid(error, known): error}
        others = [uuid for uuid in known or self._listed() if uuid not in lost]
        if not others:
            raise CollectorFailed("gpu_lost", str(error)) from error
        try:
            try:
                reading = self._query(f"--id={','.join(others)}")
            except CommandFailed:
                others = [uuid for uuid in others if self._answers(uuid, lost)]
                if not others:
                    raise
                reading = self._query(f"--id={','.join(others)}")
        except Failed as again:
            raise CollectorFailed("gpu_lost", str(error)) from again
        for uuid, failure in lost.items():
            reading = _with_lost(reading, known.get(uuid), uuid, failure)
        return reading

    def _listed(self) -> list[str]:
        try:
            return parse_gpu_uuids(self._run("-L"))
        except CommandFailed as error:
            return parse_gpu_uuids(error.output)  # one that it cannot list makes it fail after the others

    def _answers(self, uuid: str, lost: dict[str, CommandFailed]) -> bool:
        try:
            self._run("--query-gpu=uuid", FORMAT, f"--id={uuid}")
        except CommandFailed as error:
            found = _LOST_GPU.search(_words(error))
            address = _lost_uuid(error, {})
            if found is not None and address in lost:
                del lost[address]  # the same one, whose name was not known before
            lost[uuid] = error
            return False
        return True

    def _log(self) -> GpuReading:
        reading = parse_log(self._run("-q", "-x"), parse_listing(self._run("-L")))
        self._cuda_version = reading.cuda_version
        return reading

    def _log_of_slices(self) -> GpuReading:
        kept, now = self._kept_log, self._monotonic()
        if kept is not None and kept[1] == self._apps and now - kept[2] < self._log_seconds:
            return kept[0]
        try:
            log = self._log()
        except NotAsked:
            if kept is None:
                raise
            return kept[0]
        self._kept_log = (log, self._apps, now)
        return log

    def _with_host_memory(self, reading: GpuReading) -> GpuReading:
        """A GPU without memory of its own works in the host's."""
        if all(facts.memory_total_bytes is not None or facts.kind == "slice" for facts in reading.devices):
            return reading
        faulty = {problem.device_uuid for problem in reading.problems}
        total, used = self._host_memory()
        devices, samples = list(reading.devices), list(reading.samples)
        for place, facts in enumerate(devices):
            if facts.memory_total_bytes is None and is_integrated(facts) and facts.uuid not in faulty:
                devices[place] = msgspec.structs.replace(facts, memory_total_bytes=total, memory_basis="host")
                samples[place] = msgspec.structs.replace(samples[place], memory_used_bytes=used)
        return msgspec.structs.replace(reading, devices=tuple(devices), samples=tuple(samples))


def _without(fields: list[str], bad: str) -> list[str]:
    others = next((names for names in FIELDS if bad in names), (bad,))
    after = others[others.index(bad) + 1 :]
    replaced = [after[0] if field == bad and after else field for field in fields]
    return [field for field in replaced if field != bad]


def _uses(apps: list[App], devices: list[DeviceFacts]) -> list[SeenUse]:
    places = {facts.uuid: place for place, facts in enumerate(devices)}
    uses: dict[tuple[int, int], SeenUse] = {}
    for app in apps:
        place = places.get(app.gpu_uuid)
        if place is not None:
            use = SeenUse(device=place, pid=app.pid, gpu_memory_bytes=app.memory_bytes)
            uses.setdefault((place, app.pid), use)
    return list(uses.values())


def _unread_processes(line: str) -> Problem:
    text = (
        f"nvidia-smi lists processes that cannot be read ({clean(line, 80)}): run it as root, or in a container "
        "with the host's pids"
    )
    return Problem(code="processes_failed", message=clean(text, SENTENCE_LENGTH))


def _warnings(content: bytes, devices: list[DeviceFacts]) -> list[Problem]:
    """Pass on what nvidia-smi warns of, such as a corrupted infoROM."""
    if b"WARNING" not in content:
        return []
    found = []
    for line in content.decode(errors="replace").splitlines():
        if line.startswith("WARNING"):
            address = _WARNED.search(line)
            about = (facts for facts in devices if address and _same_address(facts.pci_bus_id, address[0]))
            device = next(about, None)
            found.append(
                Problem(
                    code="driver_warning",
                    message=clean(f"nvidia-smi: {line}", SENTENCE_LENGTH),
                    device_uuid=None if device is None else device.uuid,
                )
            )
    return found


def _same_address(one: str | None, other: str) -> bool:
    """Compare PCI addresses whose domain is written with four or eight digits."""
    return one is not None and one.lower()[-10:] == other.lower()[-10:]


def _words(error: CommandFailed) -> str:
    return (error.output + b"\n" + error.complaint).decode(errors="replace")


def _lost_uuid(error: CommandFailed, known: Mapping[str, DeviceFacts]) -> str:
    """Name the GPU that a command failed for: by its address, if we have not met it yet."""
    found = _LOST_GPU.search(_words(error))
    address = found[1] if found else ""
    return next(
        (uuid for uuid, facts in known.items() if _same_address(facts.pci_bus_id, address)),
        f"gpu-at-{address.lower()}",
    )


def _with_lost(
    reading: GpuReading, facts: DeviceFacts | None, uuid: str, failure: CommandFailed
) -> GpuReading:
    found = _LOST_GPU.search(_words(failure))
    address = clean(found[1]) if found else None
    if facts is None:
        facts = DeviceFacts(uuid=uuid, index=len(reading.devices), name="NVIDIA GPU", pci_bus_id=address)
    message = (
        f"GPU {facts.index} at {address} responds with {found[2]}: reboot, and check its power and seating"
        if found
        else f"GPU {facts.index} cannot be read: {failure}"
    )
    problem = Problem(
        code="gpu_lost" if found else "gpu_error",
        message=clean(message, SENTENCE_LENGTH),
        device_uuid=facts.uuid,
        is_fault=True,
    )
    return _inserted(reading, facts, problem)


def _inserted(reading: GpuReading, facts: DeviceFacts, problem: Problem) -> GpuReading:
    """Put a device that was not read at its place."""
    place = next(
        (at for at, other in enumerate(reading.devices) if other.kind == "gpu" and other.index > facts.index),
        len(reading.devices),
    )
    uses = [
        msgspec.structs.replace(use, device=use.device + 1) if use.device >= place else use
        for use in reading.uses
    ]
    return msgspec.structs.replace(
        reading,
        devices=(*reading.devices[:place], facts, *reading.devices[place:]),
        samples=(*reading.samples[:place], DeviceSample(), *reading.samples[place:]),
        uses=tuple(uses),
        problems=(*reading.problems, problem),
    )
