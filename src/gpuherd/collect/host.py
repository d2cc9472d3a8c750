"""The machine around the GPUs, from ``/proc``, ``/etc/os-release`` and ``statvfs``."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import psutil

from gpuherd.collect.meminfo import meminfo_bytes
from gpuherd.model.hosts import Address, Disk, HostFacts, HostSample
from gpuherd.model.text import clean

__all__ = ["HostCollector", "local_mounts", "network_addresses", "parse_cpu_times"]

FACTS_SECONDS = 60.0
DISKS_SECONDS = 10.0
MOST_DISKS = 16
MOST_ADDRESSES = 16

# Only these can be asked for their size without waiting for another machine.
_LOCAL_FILE_SYSTEMS = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs", "overlay", "ufs"}
)
_INNER_INTERFACES = (
    "lo", "docker", "veth", "br-", "virbr", "cni", "flannel", "cali", "cilium", "lxc", "lxd", "podman", "vnet", "kube",
    "ifb", "dummy", "tap",
)  # fmt: skip


def parse_cpu_times(content: bytes) -> tuple[int, int] | None:
    """Read busy and total ticks of all CPUs from the first line of ``/proc/stat``.

    Waiting for a disk counts as idle; guests are already within user time.
    """
    fields = content.split(b"\n", 1)[0].split()
    if len(fields) < 5 or fields[0] != b"cpu":
        return None
    ticks = [int(field) for field in fields[1:9]]
    total = sum(ticks)
    idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0)
    return total - idle, total


def local_mounts(content: bytes) -> list[tuple[str, str]]:
    """List (mount point, source) of local file systems in ``/proc/mounts``, each source once, shortest path first."""
    found: dict[str, str] = {}
    for line in content.splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[2].decode(errors="replace") not in _LOCAL_FILE_SYSTEMS:
            continue
        source, mount = (_unescaped(field) for field in fields[:2])
        if fields[2] == b"overlay" and mount != "/":
            continue  # a container's; its layers lie on a disk that is listed
        if mount.startswith(
            ("/boot", "/snap/", "/var/lib/docker/", "/var/lib/containers/", "/var/lib/kubelet/")
        ):
            continue
        if source not in found or len(mount) < len(found[source]):
            found[source] = mount
    return sorted(((mount, source) for source, mount in found.items()))[:MOST_DISKS]


def _unescaped(field: bytes) -> str:
    for escaped, plain in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        field = field.replace(escaped, plain)
    return field.decode(errors="surrogateescape")


def network_addresses() -> tuple[Address, ...]:
    """List the addresses under which others may reach this machine."""
    states = psutil.net_if_stats()
    found = []
    for interface, addresses in sorted(psutil.net_if_addrs().items()):
        if interface.startswith(_INNER_INTERFACES) or interface not in states or not states[interface].isup:
            continue
        for address in addresses:
            if address.family in (socket.AF_INET, socket.AF_INET6):
                ip = ip_address(address.address.split("%", 1)[0])
                if not (ip.is_loopback or ip.is_link_local):
                    found.append(Address(clean(interface), str(ip)))
    return tuple(found[:MOST_ADDRESSES])


class HostCollector:
    """Reads the host. Facts and the sizes of disks are looked at less often than the rest."""

    def __init__(
        self,
        *,
        proc_root: Path = Path("/proc"),
        etc_root: Path = Path("/etc"),
        hostname: Callable[[], str] = socket.gethostname,
        addresses: Callable[[], tuple[Address, ...]] = network_addresses,
        monotonic: Callable[[], float] = time.monotonic,
        agent_version: str | None = None,
    ) -> None:
        self._proc = proc_root
        self._etc = etc_root
        self._hostname = hostname
        self._addresses = addresses
        self._monotonic = monotonic
        self._agent_version = agent_version
        self._files: dict[str, int] = {}
        self._cpu_times: tuple[int, int] | None = None
        self._facts: HostFacts | None = None
        self._facts_at = 0.0
        self._used: tuple[int | None, ...] = ()
        self._used_at = 0.0

    def facts(self) -> HostFacts:
        """Say what the machine is; the same object as long as nothing changed."""
        now = self._monotonic()
        if self._facts is None or now - self._facts_at >= FACTS_SECONDS:
            facts = self._read_facts()
            self._facts_at = now
            if facts != self._facts:
                self._facts = facts
                self._used = self._read_disks(facts)
                self._used_at = now
        return self._facts

    def sample(self) -> HostSample:
        """Say what the machine does; what cannot be read is unknown."""
        memory = self._read("meminfo") or b""
        total, available = meminfo_bytes(memory, b"MemTotal"), meminfo_bytes(memory, b"MemAvailable")
        swap, swap_free = meminfo_bytes(memory, b"SwapTotal"), meminfo_bytes(memory, b"SwapFree")
        loads = [_number(word) for word in (self._read("loadavg") or b"").split()[:3]]
        loads += [None] * (3 - len(loads))
        uptime = (self._read("uptime") or b"").split()
        return HostSample(
            cpu_ratio=self._cpu_ratio(),
            load_1m=loads[0],
            load_5m=loads[1],
            load_15m=loads[2],
            memory_used_bytes=None if total is None or available is None else max(0, total - available),
            swap_used_bytes=None if swap is None or swap_free is None else max(0, swap - swap_free),
            uptime_seconds=_number(uptime[0]) if uptime else None,
        )

    def disks_used_bytes(self) -> tuple[int | None, ...]:
        """Space used on each of the facts' disks, in their order."""
        facts = self.facts()
        now = self._monotonic()
        if now - self._used_at >= DISKS_SECONDS:
            self._used = self._read_disks(facts)
            self._used_at = now
        return self._used

    def close(self) -> None:
        """Close all files."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()

    def _cpu_ratio(self) -> float | None:
        times = parse_cpu_times(self._read("stat", 256) or b"")
        before, self._cpu_times = self._cpu_times, times
        if times is None or before is None or times[1] <= before[1]:
            return None
        return min(1.0, max(0.0, (times[0] - before[0]) / (times[1] - before[1])))

    def _read(self, name: str, most: int = 8192) -> bytes | None:
        """Read a file of /proc that stays open: half the cost of opening it each time."""
        try:
            fd = self._files.get(name)
            if fd is None:
                fd = self._files[name] = os.open(self._proc / name, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(fd, most, 0)
        except OSError:
            return None

    def _read_facts(self) -> HostFacts:
        memory = self._read("meminfo") or b""
        stat = _content(self._proc / "stat")
        cpus = sum(1 for line in stat.splitlines() if line[:3] == b"cpu" and line[3:4].isdigit())
        booted_at = next((line.split()[1] for line in stat.splitlines() if line.startswith(b"btime ")), None)
        kernel = _content(self._proc / "sys" / "kernel" / "osrelease").decode(errors="replace").strip()
        return HostFacts(
            hostname=clean(self._hostname()),
            os=_os_name(_content(self._etc / "os-release")),
            kernel=clean(kernel) or None,
            architecture=clean(os.uname().machine),
            cpu_model=_cpu_model(_content(self._proc / "cpuinfo", 16_384)),
            cpu_count=cpus or None,
            memory_total_bytes=meminfo_bytes(memory, b"MemTotal"),
            swap_total_bytes=meminfo_bytes(memory, b"SwapTotal"),
            booted_at=None if booted_at is None else _number(booted_at),
            agent_version=self._agent_version,
            addresses=self._addresses(),
            disks=self._find_disks(),
        )

    def _find_disks(self) -> tuple[Disk, ...]:
        disks = []
        for mount, _ in local_mounts(_content(self._proc / "mounts", 1 << 20)):
            try:
                status = os.statvfs(mount)
            except OSError:
                continue
            if status.f_blocks:
                disks.append(Disk(mount=clean(mount), total_bytes=status.f_blocks * status.f_frsize))
        return tuple(disks)

    def _read_disks(self, facts: HostFacts) -> tuple[int | None, ...]:
        return tuple(_used_bytes(disk.mount) for disk in facts.disks)


def _used_bytes(mount: str) -> int | None:
    try:
        status = os.statvfs(mount)
    except OSError:
        return None
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _content(path: Path, most: int = 1 << 20) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""


def _number(word: bytes) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _os_name(content: bytes) -> str | None:
    fields = dict(line.partition("=")[::2] for line in content.decode(errors="replace").splitlines())
    name = fields.get("PRETTY_NAME") or fields.get("NAME") or ""
    return clean(name.strip("\"'")) or None


def _cpu_model(content: bytes) -> str | None:
    """x86 writes "model name", others "Model", "cpu model" or "Hardware"; some ARM machines say nothing."""
    fields: dict[str, str] = {}
    for line in content.decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    for name in ("model name", "cpu model", "model", "hardware"):
        if fields.get(name):
            return clean(" ".join(fields[name].split()))
    return None
