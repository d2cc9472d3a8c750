"""Who a remote node's pids are, from the blocks of its rounds.

The script reads ``/proc/<pid>/stat`` of every pid on a GPU each round, and describes a process (owner, control group,
command line) when it is new. Secrets go out of the command line here, before anything else sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from gpuherd.collect.cgroups import container_of, job_of
from gpuherd.collect.processes import (
    HIDDEN_BY_CONTAINER,
    HIDDEN_BY_PROC,
    HOST_PID_NAMESPACE,
    CommandLines,
    Stat,
    command_text,
    parse_stat,
)
from gpuherd.collect.remote.host import Machine
from gpuherd.model.processes import Process, ProcessSample
from gpuherd.model.text import clean
from gpuherd.wire.blocks import Round

__all__ = ["RemoteProcesses"]

_UNKNOWN = ProcessSample()
_ENDED = (b"Z", b"X", b"x")
_OVERFLOW_UID = 65534
_MOST_USERS = 4096
_WHO = re.compile(rb"/proc/(\d{1,10})/(?:status:Uid:\s*(\d{1,10})\b.*|cgroup:(.*))")
_SAME = re.compile(rb"^/proc/(\d{1,10})/stat:(.*)$", re.MULTILINE)
_SEEN = re.compile(rb"(\d{1,10}) (?:\((.*)|(gone)|hidden ?(\d{1,10})?)", re.DOTALL)


class _Described:
    """What the script told of a process when it was new."""

    __slots__ = ("cgroup", "cmdline", "start_ticks", "uid")

    def __init__(self, start_ticks: int) -> None:
        self.start_ticks = start_ticks
        self.uid: int | None = None
        self.cgroup = b""
        self.cmdline = b""


class _Known:
    __slots__ = ("cpu_ticks", "described", "name", "process", "read_at", "sample", "start_ticks", "user")

    def __init__(self, stat: Stat, process: Process) -> None:
        self.start_ticks = stat.start_ticks
        self.name = stat.name
        self.cpu_ticks = stat.cpu_ticks
        self.read_at: float | None = None
        self.process = process
        self.sample = _UNKNOWN
        self.described: _Described | None = None
        self.user: str | None = None


class RemoteProcesses:
    """Looks up a node's pids in its rounds; a ``ProcessReader``."""

    def __init__(self, command_lines: CommandLines = "full") -> None:
        self._command_lines: CommandLines = command_lines
        self._machine = Machine()
        self._uptime_seconds: float | None = None
        self._users: dict[int, str] = {}
        self._stats: dict[int, Stat] = {}
        self._others: dict[int, Process] = {}
        self._described: dict[int, _Described] = {}
        self._known: dict[int, _Known] = {}

    def take(self, round_: Round, machine: Machine, uptime_seconds: float | None) -> None:
        """Look at a round."""
        self._machine = machine
        self._uptime_seconds = uptime_seconds
        self._stats, self._others = {}, {}
        if "users" in round_.blocks:
            self._take_users(round_.blocks["users"].content)
        same = round_.blocks.get("pids.same")
        if same is not None and same.status == 0:
            for pid, line in _SAME.findall(same.content):
                self._take_stat(int(pid), line)
        elif "pids" in round_.blocks:
            for line in round_.blocks["pids"].content.split(b"\n"):
                self._take_line(line)
        for pid, described in list(self._described.items()):
            stat = self._stats.get(pid)
            if stat is None or stat.start_ticks != described.start_ticks:
                del self._described[pid]  # it ended; what has the pid now is another process
        if "who" in round_.blocks:
            self._take_descriptions(round_)

    @property
    def hidden(self) -> str | None:
        """Why other users' processes cannot be seen, and what to do."""
        if self._machine.pid_namespace not in (None, HOST_PID_NAMESPACE):
            return HIDDEN_BY_CONTAINER
        return HIDDEN_BY_PROC if self._machine.hides_processes else None

    def look_up(self, pids: Iterable[int]) -> Mapping[int, tuple[Process, ProcessSample]]:
        """See ``ProcessReader.look_up``."""
        found: dict[int, tuple[Process, ProcessSample]] = {}
        is_host = self._machine.pid_namespace in (None, HOST_PID_NAMESPACE)
        for pid in pids:
            if pid in found:
                continue
            stat = self._stats.get(pid) if is_host else None
            if stat is None:
                # In a container of its own namespace the driver's pids may be anybody's.
                found[pid] = ((self._others.get(pid) if is_host else None) or Process(pid=pid), _UNKNOWN)
                continue
            entry = self._entry(pid, stat)
            found[pid] = (entry.process, entry.sample)
        for pid in self._known.keys() - found.keys():
            del self._known[pid]
        return found

    def close(self) -> None:
        """Nothing is open."""

    def _entry(self, pid: int, stat: Stat) -> _Known:
        entry = self._known.get(pid)
        if entry is None or entry.start_ticks != stat.start_ticks:
            entry = self._known[pid] = _Known(stat, Process(pid=pid))
            entry.process = self._describe(pid, stat)
        described = self._described.get(pid)
        user = self._owner(described)
        is_gone = stat.state in _ENDED
        if (
            entry.described is not described
            or entry.user != user
            or entry.name != stat.name
            or entry.process.is_gone != is_gone
        ):
            entry.described, entry.user, entry.name = described, user, stat.name
            process = self._describe(pid, stat)
            entry.process = entry.process if process == entry.process else process
        entry.sample = self._cost(entry, stat)
        return entry

    def _cost(self, entry: _Known, stat: Stat) -> ProcessSample:
        if stat.state in _ENDED:
            return _UNKNOWN
        now, before = self._uptime_seconds, entry.read_at
        cores = None
        if now is not None:
            if before is not None and now > before:
                ticks = max(0, stat.cpu_ticks - entry.cpu_ticks)
                cores = ticks / self._machine.ticks_per_second / (now - before)
            entry.cpu_ticks, entry.read_at = stat.cpu_ticks, now
        page = self._machine.page_bytes
        memory = None if page is None else stat.resident_pages * page
        return ProcessSample(cpu_cores=cores, memory_bytes=memory)

    def _describe(self, pid: int, stat: Stat) -> Process:
        machine, described = self._machine, self._described.get(pid)
        started_at = (
            None
            if machine.booted_at is None
            else round(machine.booted_at + stat.start_ticks / machine.ticks_per_second, 2)
        )
        process = Process(pid=pid, started_at=started_at, is_gone=stat.state in _ENDED)
        if described is None:
            return process
        return msgspec.structs.replace(
            process,
            user=self._owner(described),
            command=command_text(described.cmdline, stat.name, self._command_lines),
            container=container_of(described.cgroup),
            job=job_of(described.cgroup),
        )

    def _owner(self, described: _Described | None) -> str | None:
        return None if described is None or described.uid is None else self._name(described.uid)

    def _name(self, uid: int) -> str | None:
        if uid == _OVERFLOW_UID and not self._machine.maps_all_users:
            return None  # stands for every user that the login's user namespace does not know
        return self._users.get(uid, str(uid))

    def _take_users(self, content: bytes) -> None:
        for line in content.decode(errors="replace").splitlines():
            uid, _, name = line.partition(" ")
            if re.fullmatch(r"[0-9]{1,10}", uid) and name and len(self._users) < _MOST_USERS:
                self._users[int(uid)] = clean(name)

    def _take_line(self, line: bytes) -> None:
        """Take a stat line, or ``PID gone``, ``PID hidden UID`` of a process that cannot be read."""
        parts = _SEEN.match(line)
        if parts is None:
            return
        pid = int(parts[1])
        if parts[2] is not None:
            self._take_stat(pid, line)
        elif parts[3]:
            self._others[pid] = Process(pid=pid, is_gone=True)
        else:
            uid = int(parts[4]) if parts[4] else 0
            # The folder of a process that protects itself belongs to root.
            self._others[pid] = Process(pid=pid, user=self._name(uid) if uid else None)

    def _take_stat(self, pid: int, line: bytes) -> None:
        stat = parse_stat(line)
        # A program's name can hold a line break and then anything: what has no sense is not known.
        if stat is not None and 0 <= stat.start_ticks < 2**63 and 0 <= stat.resident_pages < 2**40:
            self._stats[pid] = stat

    def _take_descriptions(self, round_: Round) -> None:
        fresh: dict[int, _Described] = {}
        for line in round_.blocks["who"].content.split(b"\n"):
            parts = _WHO.fullmatch(line)
            stat = self._stats.get(int(parts[1])) if parts else None
            if parts is None or stat is None:
                continue
            described = fresh.setdefault(int(parts[1]), _Described(stat.start_ticks))
            if parts[2] is not None:
                described.uid = int(parts[2])
            else:
                described.cgroup += parts[3] + b"\n"
        for pid, described in fresh.items():
            block = round_.blocks.get(f"cmdline.{pid}")
            described.cmdline = b"" if block is None else block.content
            if self._command_lines == "program":
                described.cmdline = described.cmdline.rstrip(b"\n") + b"\0"
        self._described.update(fresh)
