"""The machine around the GPUs, from ``/proc``, ``/etc/os-release`` and ``statvfs``."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from gpuherd.collect.host_text import (
    MOST_ADDRESSES,
    cpu_model,
    cpu_ratio,
    host_sample,
    local_mounts,
    number,
    os_name,
    outer_address,
    parse_cpu_times,
)
from gpuherd.collect.meminfo import meminfo_bytes
from gpuherd.model.hosts import Address, Disk, HostFacts, HostSample
from gpuherd.model.text import clean

__all__ = ["HostCollector", "local_mounts", "network_addresses", "parse_cpu_times"]

FACTS_SECONDS = 60.0
DISKS_SECONDS = 10.0


def network_addresses() -> tuple[Address, ...]:
    """List the addresses under which others may reach this machine."""
    states = psutil.net_if_stats()
    found = []
    for interface, addresses in sorted(psutil.net_if_addrs().items()):
        if interface not in states or not states[interface].isup:
            continue
        for address in addresses:
            if address.family in (socket.AF_INET, socket.AF_INET6):
                ip = outer_address(interface, address.address)
                if ip is not None:
                    found.append(Address(clean(interface), ip))
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
        before, self._cpu_times = self._cpu_times, parse_cpu_times(self._read("stat", 256) or b"")
        return host_sample(
            self._read("meminfo") or b"",
            self._read("loadavg") or b"",
            self._read("uptime") or b"",
            cpu_ratio=cpu_ratio(before, self._cpu_times),
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
            os=os_name(_content(self._etc / "os-release")),
            kernel=clean(kernel) or None,
            architecture=clean(os.uname().machine),
            cpu_model=cpu_model(_content(self._proc / "cpuinfo", 16_384)),
            cpu_count=cpus or None,
            memory_total_bytes=meminfo_bytes(memory, b"MemTotal"),
            swap_total_bytes=meminfo_bytes(memory, b"SwapTotal"),
            booted_at=None if booted_at is None else number(booted_at),
            boot_id=_word(self._proc / "sys" / "kernel" / "random" / "boot_id"),
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


def _word(path: Path) -> str | None:
    return clean(_content(path, 64).decode(errors="replace").strip()) or None


def _content(path: Path, most: int = 1 << 20) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""
