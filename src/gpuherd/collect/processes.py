"""Who a pid is: owner, command, start, container, job; and what it costs the host.

A pid alone is reused, so a process is known by pid and start time. Its ``/proc/<pid>/stat`` is kept open: reading it
again costs a third of opening it, and after the process ended it answers "no such process" even if the pid has a
new owner, so nobody is ever mistaken for somebody else.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from gpuherd.collect.cgroups import container_of, job_of
from gpuherd.collect.scrub import LONGEST_TEXT, scrub
from gpuherd.model.processes import Process, ProcessSample
from gpuherd.model.text import COMMAND_LENGTH, clean

__all__ = ["CommandLines", "ProcessLookup", "Stat", "command_text", "parse_stat"]

CommandLines = Literal["full", "program", "none"]
"""How much of a command line leaves the node: everything (scrubbed), only the program, nothing."""

MOST_OPEN_FILES = 256
USER_SECONDS = 600.0
"""How long an owner's name is believed before the user database is asked again."""
HOST_PID_NAMESPACE = 0xEFFFFFFC
"""Inode number of the first pid namespace, fixed in the kernel."""
HIDDEN_BY_CONTAINER = (
    "the GPUs are read in a container that cannot see the host's processes, so no GPU can be shown as "
    "free: give it the host's pids (--pid=host, hostPID: true)"
)
HIDDEN_BY_PROC = (
    "/proc hides the processes of other users (hidepid), so no GPU can be shown as free: run as root, or "
    "as a member of the group in the mount option gid="
)
_OVERFLOW_UID = 65534
_CMDLINE_BYTES = 4 * LONGEST_TEXT + 4  # UTF-8 takes up to four bytes a character
_UNKNOWN = ProcessSample()
_ENDED = (b"Z", b"X", b"x")


class Stat(msgspec.Struct, frozen=True):
    """What we need of ``/proc/<pid>/stat``. Ticks are the kernel's (``SC_CLK_TCK``)."""

    name: bytes
    state: bytes
    cpu_ticks: int
    start_ticks: int
    resident_pages: int


def parse_stat(content: bytes) -> Stat | None:
    """Read a stat line; a program's name may hold spaces and brackets, so the last bracket counts."""
    end = content.rfind(b")")
    fields = content[end + 2 :].split(None, 22)
    try:
        return Stat(
            content[content.index(b"(") + 1 : end],
            fields[0],
            int(fields[11]) + int(fields[12]),
            int(fields[19]),
            int(fields[21]),
        )
    except (IndexError, ValueError):
        return None


def command_text(content: bytes, name: bytes, mode: CommandLines) -> str | None:
    """Make the shown command of ``/proc/<pid>/cmdline`` (or of its beginning) and the process's short name.

    Secrets are removed before anything else sees the text; kernel threads and emptied command lines show their
    short name in brackets.
    """
    if mode == "none":
        return None
    arguments = [part.decode(errors="replace") for part in content.split(b"\0")]
    if arguments and not arguments[-1]:
        arguments.pop()
    elif len(content) >= _CMDLINE_BYTES:
        # Longer than what was read: the last word is damaged, a secret in it would not be known as one.
        arguments[-1] = arguments[-1].rpartition(" ")[0] + "…"
    if not any(arguments):
        return clean(f"[{name.decode(errors='replace')}]", COMMAND_LENGTH)
    if mode == "program":
        first = scrub(arguments[:1])[0].split(" ", 1)[0]
        return clean(first.rsplit("/", 1)[-1], COMMAND_LENGTH)
    return clean(" ".join(scrub(arguments)).replace("\n", " ").replace("\t", " "), COMMAND_LENGTH)


class _Known:
    """A process that was looked up before."""

    __slots__ = ("cpu_ticks", "fd", "name", "process", "read_at", "sample", "start_ticks")

    def __init__(self, fd: int | None, stat: Stat, process: Process, read_at: float) -> None:
        self.fd = fd
        self.name = stat.name
        self.start_ticks = stat.start_ticks
        self.cpu_ticks = stat.cpu_ticks
        self.read_at = read_at
        self.process = process
        self.sample = _UNKNOWN


class ProcessLookup:
    """Looks up pids, remembering the answers while the processes live. Not for several threads."""

    def __init__(
        self,
        proc_root: Path = Path("/proc"),
        *,
        command_lines: CommandLines = "full",
        monotonic: Callable[[], float] = time.monotonic,
        user_name: Callable[[int], str | None] | None = None,
        exists: Callable[[int], bool] | None = None,
        trust_pids: bool | None = None,
    ) -> None:
        """``trust_pids``: whether the driver's pids mean the same in our ``/proc``.

        They do in the host's pid namespace (the default finds out). In a container of its own namespace they may
        be somebody else's; there a process is only believed if it has an NVIDIA device file open.
        """
        self._root = os.fspath(proc_root)
        self._command_lines: CommandLines = command_lines
        self._monotonic = monotonic
        self._user_name = user_name or _name_of_user
        self._exists = exists or (_is_alive if self._root == "/proc" else lambda pid: False)
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._known: dict[int, _Known] = {}
        self._users: dict[int, tuple[float, str | None]] = {}
        self._open_files = 0
        self._booted_at = _boot_time(self._root)
        self._trust_pids = _is_host_namespace(self._root) if trust_pids is None else trust_pids
        self.hidden: str | None = None
        """Why other users' processes cannot be seen, and what to do."""
        if not self._trust_pids:
            self.hidden = HIDDEN_BY_CONTAINER
        elif _hides_processes(self._root):
            self.hidden = HIDDEN_BY_PROC
        self._maps_all_users = _maps_all_users(self._root)

    def look_up(self, pids: Iterable[int]) -> Mapping[int, tuple[Process, ProcessSample]]:
        """Say who these pids are now. The same ``Process`` object comes back while nothing about it changed."""
        found: dict[int, tuple[Process, ProcessSample]] = {}
        known = self._known
        now = self._monotonic()
        for pid in pids:
            if pid in found:
                continue
            entry = known.get(pid)
            if entry is None or not self._refresh(pid, entry, now):
                if entry is not None:
                    self._forget(pid)
                entry = self._meet(pid, now)
            found[pid] = (
                (entry.process, entry.sample) if entry is not None else (self._stranger(pid), _UNKNOWN)
            )
        for pid in known.keys() - found.keys():
            self._forget(pid)
        return found

    def close(self) -> None:
        """Close all files."""
        for pid in list(self._known):
            self._forget(pid)

    def _refresh(self, pid: int, entry: _Known, now: float) -> bool:
        """Bring a known process up to date; ``False`` if this pid is no longer that process."""
        content = self._pread(entry.fd) if entry.fd is not None else self._content(pid, "stat")
        stat = parse_stat(content) if content else None
        if stat is None or stat.start_ticks != entry.start_ticks:
            return False
        if stat.state in _ENDED:
            if not entry.process.is_gone:
                entry.process = msgspec.structs.replace(entry.process, is_gone=True)
                entry.sample = _UNKNOWN
            return True
        if stat.name != entry.name:
            # It became another program (exec), perhaps of another user.
            entry.name = stat.name
            process = self._describe(pid, stat)
            entry.process = entry.process if process == entry.process else process
        elapsed = now - entry.read_at
        cores = None
        if elapsed > 0:
            cores = max(0, stat.cpu_ticks - entry.cpu_ticks) / self._ticks_per_second / elapsed
            entry.cpu_ticks, entry.read_at = stat.cpu_ticks, now
        entry.sample = ProcessSample(cpu_cores=cores, memory_bytes=stat.resident_pages * self._page_bytes)
        return True

    def _meet(self, pid: int, now: float) -> _Known | None:
        """Look up a process for the first time; ``None`` if it cannot be read or cannot be trusted."""
        try:
            fd = os.open(f"{self._root}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        content = self._pread(fd)
        stat = parse_stat(content) if content else None
        if stat is None or not (self._trust_pids or self._has_gpu_open(pid)):
            os.close(fd)
            return None
        process = self._describe(pid, stat)
        if self._pread(fd) is None:
            # Ended while we looked: what we read may be of a new process with this pid.
            os.close(fd)
            return None
        kept: int | None = fd
        if self._open_files >= MOST_OPEN_FILES:
            os.close(fd)
            kept = None
        else:
            self._open_files += 1
        entry = self._known[pid] = _Known(kept, stat, process, now)
        if stat.state not in _ENDED:
            entry.sample = ProcessSample(memory_bytes=stat.resident_pages * self._page_bytes)
        return entry

    def _describe(self, pid: int, stat: Stat) -> Process:
        cgroup = self._content(pid, "cgroup") or b""
        return Process(
            pid=pid,
            started_at=None
            if self._booted_at is None
            else round(self._booted_at + stat.start_ticks / self._ticks_per_second, 2),
            user=self._owner(pid),
            command=command_text(
                self._content(pid, "cmdline", _CMDLINE_BYTES) or b"", stat.name, self._command_lines
            ),
            container=container_of(cgroup),
            job=job_of(cgroup),
            is_gone=stat.state in _ENDED,
        )

    def _stranger(self, pid: int) -> Process:
        """Describe a pid that cannot be read: gone, hidden from us, or of another namespace."""
        if not self._trust_pids:
            return Process(pid=pid)
        try:
            uid = os.stat(f"{self._root}/{pid}").st_uid  # noqa: PTH116 - a Path costs more than the call
        except OSError:
            return Process(pid=pid, is_gone=not self._exists(pid))
        # Hidden by hidepid=1. The folder belongs to the owner, but to root if the process protects itself.
        return Process(pid=pid, user=self._name(uid) if uid else None)

    def _owner(self, pid: int) -> str | None:
        for line in (self._content(pid, "status") or b"").splitlines():
            if line.startswith(b"Uid:"):
                return self._name(int(line.split()[1]))
        return None

    def _name(self, uid: int) -> str | None:
        if uid == _OVERFLOW_UID and not self._maps_all_users:
            return None  # stands for every user that our user namespace does not know
        now = self._monotonic()
        asked_at, name = self._users.get(uid, (-USER_SECONDS, None))
        if now - asked_at >= USER_SECONDS or uid not in self._users:
            name = self._user_name(uid)
            self._users[uid] = (now, clean(name) if name else str(uid))
            name = self._users[uid][1]
        return name

    def _has_gpu_open(self, pid: int) -> bool:
        try:
            with os.scandir(f"{self._root}/{pid}/fd") as entries:
                return any(_target(entry.path).startswith("/dev/nvidia") for entry in entries)
        except OSError:
            return False

    def _forget(self, pid: int) -> None:
        entry = self._known.pop(pid)
        if entry.fd is not None:
            os.close(entry.fd)
            self._open_files -= 1

    def _pread(self, fd: int) -> bytes | None:
        try:
            return os.pread(fd, 1024, 0)
        except OSError:
            return None

    def _content(self, pid: int, name: str, most: int = 4096) -> bytes | None:
        try:
            fd = os.open(f"{self._root}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            content = b""
            # A read of /proc may give less than asked for although there is more.
            while len(content) < most and (chunk := os.read(fd, most - len(content))):
                content += chunk
        except OSError:
            return None
        finally:
            os.close(fd)
        return content


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - a Path costs more than the call
    except OSError:
        return ""


def _name_of_user(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None


def _is_alive(pid: int) -> bool:
    """Whether a process exists that ``/proc`` hides from us (hidepid=2); signal 0 only asks."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _boot_time(root: str) -> float | None:
    try:
        lines = Path(root, "stat").read_bytes().splitlines()
    except OSError:
        return None
    return next((float(line.split()[1]) for line in lines if line.startswith(b"btime ")), None)


def _is_host_namespace(root: str) -> bool:
    try:
        return Path(root, "self", "ns", "pid").stat().st_ino == HOST_PID_NAMESPACE
    except OSError:
        return True  # no namespaces, so only one


def _hides_processes(root: str) -> bool:
    """Whether not even the first process can be looked at."""
    try:
        Path(root, "self", "stat").read_bytes()
    except OSError:
        return False  # nothing to hide from
    try:
        Path(root, "1", "stat").read_bytes()
    except OSError:
        return True
    return False


def _maps_all_users(root: str) -> bool:
    try:
        fields = Path(root, "self", "uid_map").read_bytes().split()
    except OSError:
        return True
    return fields[:3] == [b"0", b"0", b"4294967295"]
