"""The machine around a remote node's GPUs, from the blocks of its rounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

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
from gpuherd.wire.blocks import Block, Round

__all__ = ["Machine", "RemoteHost", "parse_addresses", "parse_df"]

_ADDRESS = re.compile(r"\d+:\s+([^\s@]{1,64})\S*\s+inet6?\s+([0-9A-Fa-f.:]{2,64})")
_DF = re.compile(r".*?\s(\d{1,16})\s+(\d{1,16})\s+-?\d{1,16}\s+(?:\d{1,9}%|-)\s+(/.*)")
_MOST_SECONDS = 1e10
_MOST_COUNT = 1_000_000


class Machine(NamedTuple):
    """What is needed of a machine to understand its ``/proc``; it stays the same while it runs."""

    booted_at: float | None = None
    ticks_per_second: int = 100
    page_bytes: int | None = None
    pid_namespace: int | None = None
    maps_all_users: bool = True
    architecture: str | None = None
    cpu_count: int | None = None
    boot_id: str | None = None
    hides_processes: bool = False
    """Not even the first process can be looked at."""


def parse_machine(content: bytes) -> Machine:
    """Read what the script says once of the machine: ``NAME VALUE`` lines after the machine type."""
    lines = content.decode(errors="replace").splitlines()
    fields = {words[0]: words[1] for line in lines if len(words := line.split()) == 2}
    namespace = re.search(rb"^pid:\[(\d{1,19})\]", content, re.MULTILINE)
    maps = re.search(rb"^ *(\d+) +(\d+) +(\d+)$", content, re.MULTILINE)
    btime = number(fields.get("btime", "").encode())

    def whole(name: str, high: int) -> int | None:
        value = fields.get(name, "")
        return int(value) if re.fullmatch(r"[1-9]\d{0,8}", value) and int(value) <= high else None

    return Machine(
        booted_at=btime if btime is not None and 0 <= btime <= _MOST_SECONDS else None,
        ticks_per_second=whole("CLK_TCK", 100_000) or 100,
        page_bytes=whole("PAGESIZE", 2**30),
        pid_namespace=None if namespace is None else int(namespace[1]),
        maps_all_users=maps is None or maps.groups() == (b"0", b"0", b"4294967295"),
        architecture=(clean(lines[0].strip()) or None) if lines else None,
        cpu_count=whole("_NPROCESSORS_ONLN", _MOST_COUNT),
        boot_id=clean(fields.get("boot_id", "").strip(), 96) or None,
        hides_processes="hidepid" in fields,
    )


def parse_addresses(content: bytes) -> tuple[Address, ...]:
    """Read ``ip -o addr show up``: the addresses under which others may reach the machine, by interface."""
    found = []
    for line in content.decode(errors="replace").splitlines():
        parts = _ADDRESS.match(line)
        ip = outer_address(parts[1], parts[2]) if parts else None
        if parts and ip is not None:
            found.append(Address(clean(parts[1]), ip))
    return tuple(sorted(found, key=lambda address: address.interface)[:MOST_ADDRESSES])


def parse_df(content: bytes) -> dict[str, tuple[int, int]]:
    """Read ``df -P -k``: total and used bytes by mount point."""
    found = {}
    for line in content.decode(errors="surrogateescape").splitlines():
        parts = _DF.fullmatch(line)
        if parts and int(parts[1]) * 1024 <= 2**53 and int(parts[2]) * 1024 <= 2**53:
            found[parts[3]] = (int(parts[1]) * 1024, int(parts[2]) * 1024)
    return found


class RemoteHost:
    """Reads a host from rounds; a ``HostReader``. What was told less often than each round is remembered."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.uptime_seconds: float | None = None
        self._booted_clock: float | None = None
        self._cpu_times: tuple[int, int] | None = None
        self._sample = HostSample()
        self._memory = b""
        self._names: tuple[str, str | None] = ("", None)
        self._os: str | None = None
        self._cpu: str | None = None
        self._addresses: tuple[Address, ...] = ()
        self._disks: tuple[Disk, ...] = ()
        self._used: tuple[int | None, ...] = ()
        self._facts: HostFacts | None = None

    def take(self, round_: Round) -> None:
        """Look at a round."""
        blocks = round_.blocks
        if "host" in blocks:
            self._take_sample(blocks["host"].content)
        if self._facts is not None and not any(name.startswith("facts.") for name in blocks):
            return
        self._take_facts(blocks)
        facts = self._make_facts()
        self._facts = self._facts if facts == self._facts else facts

    def _take_facts(self, blocks: Mapping[str, Block]) -> None:
        if "facts.static" in blocks:
            self.machine = parse_machine(blocks["facts.static"].content)
        if "facts.os" in blocks:
            self._os = os_name(blocks["facts.os"].content)
        if "facts.cpu" in blocks:
            self._cpu = cpu_model(blocks["facts.cpu"].content)
        if "facts.names" in blocks:
            lines = [
                clean(line) for line in blocks["facts.names"].content.decode(errors="replace").splitlines()
            ]
            self._names = (lines[0] if lines else "", (lines[1] or None) if len(lines) > 1 else None)
        if "facts.addresses" in blocks:
            self._addresses = parse_addresses(blocks["facts.addresses"].content)
        if "facts.df" in blocks and "facts.mounts" in blocks:
            self._take_disks(blocks["facts.mounts"].content, blocks["facts.df"].content)
        if "facts.time" in blocks:
            self._take_time(blocks["facts.time"].content)

    def now(self) -> float | None:
        """Say what the node's clock showed in this round; ``None`` if it did not tell."""
        if self._booted_clock is None or self.uptime_seconds is None:
            return None
        return max(0.0, self._booted_clock + self.uptime_seconds)

    def memory(self) -> tuple[int | None, int | None]:
        """Total and used bytes of main memory."""
        return meminfo_bytes(self._memory, b"MemTotal"), self._sample.memory_used_bytes

    def facts(self) -> HostFacts:
        """Say what the machine is; the same object as long as nothing changed."""
        if self._facts is None:
            self._facts = self._make_facts()
        return self._facts

    def sample(self) -> HostSample:
        """Say what the machine did in this round."""
        return self._sample

    def disks_used_bytes(self) -> tuple[int | None, ...]:
        """Say how full the disks of the facts are, in their order."""
        return self._used

    def close(self) -> None:
        """Nothing is open."""

    def _take_sample(self, content: bytes) -> None:
        before, self._cpu_times = self._cpu_times, parse_cpu_times(content)
        self._memory = content
        self._sample = host_sample(
            content,
            _after(content, b"\nloadavg "),
            _after(content, b"\nuptime "),
            cpu_ratio=cpu_ratio(before, self._cpu_times),
        )
        uptime = self._sample.uptime_seconds
        self.uptime_seconds = uptime if uptime is not None and 0 <= uptime <= _MOST_SECONDS else None

    def _take_disks(self, mounts: bytes, df: bytes) -> None:
        sizes = parse_df(df)
        listed = [mount for mount, _ in local_mounts(mounts) if sizes.get(mount, (0, 0))[0]]
        disks = tuple(Disk(mount=clean(mount), total_bytes=sizes[mount][0]) for mount in listed)
        if not disks and self._disks:
            # df did not answer this time: the disks are still there, but how full they are is not known.
            self._used = (None,) * len(self._disks)
            return
        self._disks = disks
        self._used = tuple(sizes[mount][1] for mount in listed)

    def _take_time(self, content: bytes) -> None:
        """Read seconds, nanoseconds (not every ``date`` knows them) and uptime, taken at the same moment."""
        words = content.split()
        if len(words) != 3:
            return
        seconds, uptime = number(words[0]), number(words[2])
        part = int(words[1]) / 1e9 if re.fullmatch(rb"\d{9}", words[1]) else 0.0
        if (
            seconds is None
            or uptime is None
            or not (0 <= seconds <= _MOST_SECONDS and 0 <= uptime <= _MOST_SECONDS)
        ):
            return
        self._booted_clock = seconds + part - uptime

    def _make_facts(self) -> HostFacts:
        machine = self.machine
        return HostFacts(
            hostname=self._names[0],
            os=self._os,
            kernel=self._names[1],
            architecture=machine.architecture,
            cpu_model=self._cpu,
            cpu_count=machine.cpu_count,
            memory_total_bytes=meminfo_bytes(self._memory, b"MemTotal"),
            swap_total_bytes=meminfo_bytes(self._memory, b"SwapTotal"),
            booted_at=machine.booted_at,
            boot_id=machine.boot_id,
            addresses=self._addresses,
            disks=self._disks,
        )


def _after(content: bytes, word: bytes) -> bytes:
    return content.partition(word)[2].split(b"\n", 1)[0]
