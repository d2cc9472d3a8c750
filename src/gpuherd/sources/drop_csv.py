"""The CSV files that an older tool's scripts drop for each host, as a report. Pure.

``HOST_gpus.csv`` and ``HOST_processes.csv`` are the ends of logs that nvidia-smi writes in a loop: only the newest
block counts. Every file but the first may be missing; what it would have told is then unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.processes import Process, ProcessSample, UseSample
from gpuherd.model.reports import Problem, Report
from gpuherd.model.text import clean, clip
from gpuherd.sources.assembly import Assembly, Scrub, command_line
from gpuherd.sources.drop_host import read_host
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.node_clock import naive_seconds, zone_seconds
from gpuherd.sources.old_values import label, mebibytes, number, ratio, value_problems, whole

__all__ = ["DropReading", "lines_of", "read_drop", "start_time"]

GPU_COLUMNS = (
    "index",
    "uuid",
    "name",
    "memory.used",
    "memory.total",
    "utilization.gpu",
    "utilization.memory",
    "temperature.gpu",
    "timestamp",
)
PROCESS_COLUMNS = ("timestamp", "gpu_uuid", "used_gpu_memory", "process_name", "pid")
BLOCK_SECONDS = 3.0
"""Rows of one block are stamped one after the other."""
CHILDREN_NAMED = 5
_METRICS = GPU_COLUMNS[3:8]
_NO_ROWS = ("timestamp", "warning", "no running")
"""How lines of the file of processes begin that say nothing of them."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_START = re.compile(r"[A-Z][a-z]{2} +([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}:\d{2}:\d{2}) (\d{4})")

Row = Mapping[str, str]


class DropReading(Struct, frozen=True, kw_only=True):
    """A host's files, read: the report, and the time that the newest block was stamped with, by the node's clock."""

    report: Report
    stamped_at: float


class _Owners(Struct, frozen=True):
    """Who runs what, as ``ps`` told the scripts."""

    user_of_pid: Mapping[int, str]
    start_of_pid: Mapping[int, float]
    relatives: Mapping[int, Sequence[int]]
    """Children, then parents."""
    children: Mapping[int, Sequence[int]]

    def living_children(self, pid: int) -> list[int]:
        """Give the children of a process that are still there."""
        return [child for child in self.children.get(pid, ()) if child in self.user_of_pid]

    def speaker_for(self, pid: int) -> int | None:
        """Find the process whose owner also owns ``pid``: itself, else a child or parent that is still there."""
        if pid in self.user_of_pid:
            return pid
        relatives = self.relatives.get(pid, ())
        return next((relative for relative in relatives if relative in self.user_of_pid), None)


def lines_of(content: bytes) -> list[str]:
    """Split a file that may be half written: what follows the last line end is not used."""
    *lines, _ = content.replace(b"\0", b"").replace(b"\r\n", b"\n").split(b"\n")
    return [line.decode("utf-8", errors="replace") for line in lines]


def read_drop(
    files: Mapping[str, bytes], *, host: str, wall: float, interval_seconds: float, scrub: Scrub
) -> DropReading:
    """Read a host's files, by the part of their names behind the host; ``ContactFailed`` without a GPU to tell of.

    A GPU that is missing from the newest block is taken from the one before, for a while: the block may be on its
    way still. Start times are given if the node's zone can be told.
    """
    rows = [row for row in _rows(files.get("gpus", b""), GPU_COLUMNS) if _is_index(row["index"])]
    stamps = [naive_seconds(row["timestamp"]) for row in rows]
    newest = next((stamp for stamp in reversed(stamps) if stamp is not None), None)
    if newest is None:
        raise ContactFailed("garbled", f"{host}_gpus.csv has no line with a GPU and a time; check the file")
    longest = 3 * interval_seconds
    latest = {
        _uuid(row) or row["index"]: row
        for row, stamp in zip(rows, stamps, strict=True)
        if stamp is not None and abs(newest - stamp) <= longest
    }
    assembly = Assembly()
    for row in sorted(latest.values(), key=lambda row: int(row["index"])):
        _add_gpu(assembly, row)
    zone = zone_seconds(newest, wall, behind_seconds=longest, ahead_seconds=60.0)
    are_named = all(row["uuid"].startswith("GPU-") for row in latest.values())
    _add_processes(assembly, files, newest, longest, zone, scrub, are_named=are_named)
    facts, sample, disks_used = read_host(host, files)
    report = assembly.report(facts, time=wall, host_sample=sample, disks_used_bytes=disks_used)
    return DropReading(report=report, stamped_at=newest)


def _is_index(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 4 and int(word) <= 4096


def _rows(content: bytes, columns: tuple[str, ...]) -> Iterator[Row]:
    """Read the lines that have all columns; the names of processes may hold commas."""
    middle = len(columns) - 2
    for line in lines_of(content):
        words = [word.strip() for word in line.split(",")]
        if words[0] == columns[0] or len(words) < len(columns):
            continue
        if len(words) > len(columns) and columns is PROCESS_COLUMNS:
            words[middle:-1] = [",".join(words[middle:-1])]
        if len(words) == len(columns):
            yield dict(zip(columns, words, strict=True))


def _uuid(row: Row) -> str | None:
    """Read the UUID; none for "[Unknown Error]" and alike."""
    found = label(row["uuid"], 96)
    return None if found is None or found.startswith("[") else found


def _add_gpu(assembly: Assembly, row: Row) -> None:
    index = int(row["index"])
    uuid = _uuid(row) or f"gpu-{index}-without-uuid"
    assembly.add_device(
        DeviceFacts(
            uuid=uuid,
            index=index,
            name=label(row["name"]) or "NVIDIA GPU",
            memory_total_bytes=mebibytes(row["memory.total"]) or None,
            memory_basis="framebuffer_with_reserved",
        ),
        DeviceSample(
            utilization_gpu=ratio(row["utilization.gpu"]),
            utilization_memory=ratio(row["utilization.memory"]),
            memory_used_bytes=mebibytes(row["memory.used"]),
            temperature_celsius=number(row["temperature.gpu"], -60, 250),
        ),
        value_problems(uuid, index, [(name, row[name]) for name in _METRICS], "utilization.gpu"),
    )


def _add_processes(
    assembly: Assembly,
    files: Mapping[str, bytes],
    newest: float,
    longest: float,
    zone: float | None,
    scrub: Scrub,
    *,
    are_named: bool,
) -> None:
    """Add the newest block of processes, unless it is old: nvidia-smi writes nothing while nothing runs.

    ``are_named``: the UUIDs of all GPUs are known.
    """
    if "processes" not in files:
        message = "there is no process file; is task 2 of gpu-run.sh running there?"
        assembly.add_problem(Problem(code="processes_failed", message=message))
        return
    rows = [(row, naive_seconds(row["timestamp"])) for row in _rows(files["processes"], PROCESS_COLUMNS)]
    if _has_unread_end(files["processes"]):
        assembly.lacks_processes(None, "the end of the process file cannot be read")
    block = next((stamp for _, stamp in reversed(rows) if stamp is not None), None)
    if block is None or newest - block > longest:
        return
    owners = _owners(files.get("users"))
    for row, stamp in rows:
        if stamp is not None and abs(block - stamp) <= BLOCK_SECONDS:
            _add_process(assembly, row, owners, zone, scrub, are_named=are_named)


def _has_unread_end(content: bytes) -> bool:
    """Whether, in or behind the newest block, a line is neither a process with its time nor says nothing of any."""
    block: float | None = None
    for line in reversed([line.strip() for line in lines_of(content)]):
        if not line or line.lower().startswith(_NO_ROWS):
            continue
        row = next(_rows(line.encode() + b"\n", PROCESS_COLUMNS), None)
        stamp = None if row is None else naive_seconds(row["timestamp"])
        if stamp is None:
            return True
        if block is None:
            block = stamp
        elif abs(block - stamp) > BLOCK_SECONDS:
            break
    return False


def _add_process(
    assembly: Assembly,
    row: Row,
    owners: _Owners | None,
    zone: float | None,
    scrub: Scrub,
    *,
    are_named: bool,
) -> None:
    device = assembly.position_of(clean(row["gpu_uuid"], 96))
    if device is None and not (row["gpu_uuid"].startswith("GPU-") and are_named):
        assembly.lacks_processes(None, "one runs on a slice or GPU that the file does not name")
    pid = None if device is None else assembly.pid_of_use(device, row["pid"])
    if pid is None or device is None:
        return
    speaker = None if owners is None else owners.speaker_for(pid)
    is_gone = owners is not None and pid not in owners.user_of_pid
    children = owners.living_children(pid) if owners is not None and is_gone else []
    has_start = speaker is not None and (speaker == pid or speaker in children)
    start = (
        owners.start_of_pid.get(speaker) if owners is not None and speaker is not None and has_start else None
    )
    name = label(row["process_name"], 4096)
    command = None if name is None else command_line([name], scrub)
    if children:
        # Its memory comes free when these end; who may read command lines is who may kill them.
        named = ", ".join(map(str, children[:CHILDREN_NAMED])) + (
            ", …" if len(children) > CHILDREN_NAMED else ""
        )
        command = f"{clip(command or 'a process', 300)} (ended; its children still run: {named})"
    assembly.add_use(
        device,
        Process(
            pid=pid,
            user=None if owners is None or speaker is None else owners.user_of_pid[speaker],
            started_at=None if start is None or zone is None else max(0.0, start - zone),
            command=command,
            is_gone=is_gone,
        ),
        ProcessSample(),
        UseSample(gpu_memory_bytes=mebibytes(row["used_gpu_memory"])),
    )


def _owners(content: bytes | None) -> _Owners | None:
    """Read the file of owners: children as JSON in the first line, then pid, user and start of each process."""
    lines = lines_of(content) if content else []
    users: dict[int, str] = {}
    starts: dict[int, float] = {}
    for line in lines[1:]:
        pid, _, rest = line.strip().partition(" ")
        user, _, start = rest.strip().partition(" ")
        name = label(user)
        if pid.isascii() and pid.isdigit() and len(pid) <= 10 and name is not None:
            users[int(pid)] = name
            started = start_time(start)
            if started is not None:
                starts[int(pid)] = started
    if not users:
        return None
    children = _children(lines[0])
    return _Owners(users, starts, _relatives(children), children)


def _relatives(children: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Give each process's children and parents; turned round once, as a hostile file may name very many."""
    relatives = {pid: list(listed) for pid, listed in children.items()}
    for parent, listed in children.items():
        for child in listed:
            relatives.setdefault(child, []).append(parent)
    return relatives


def _children(line: str) -> dict[int, list[int]]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        int(pid): [child for value in listed[:1024] if (child := whole(value, 0, 2**32)) is not None]
        for pid, listed in found.items()
        if pid.isascii() and pid.isdigit() and len(pid) <= 10 and isinstance(listed, list)
    }


def start_time(text: str) -> float | None:
    """Read what ``ps -o lstart`` prints in the C locale, ``Mon Jul  2 10:00:00 2018``, as if it were UTC."""
    found = _START.fullmatch(text.strip())
    if found is None or found[1] not in _MONTHS:
        return None
    month = _MONTHS.index(found[1]) + 1
    return naive_seconds(f"{found[4]}-{month:02}-{int(found[2]):02} {found[3]}")
