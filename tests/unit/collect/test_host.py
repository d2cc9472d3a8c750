"""The host from a written /proc, and from the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.collect.host import HostCollector, local_mounts, network_addresses, parse_cpu_times
from gpuherd.collect.meminfo import host_memory
from gpuherd.model.hosts import Address, HostSample

MEMINFO = b"""MemTotal:       16384 kB
MemFree:         1024 kB
MemAvailable:    4096 kB
SwapTotal:       2048 kB
SwapFree:        1024 kB
HugePages_Total:       0
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    proc, etc = tmp_path / "proc", tmp_path / "etc"
    (proc / "sys" / "kernel").mkdir(parents=True)
    etc.mkdir()
    (proc / "meminfo").write_bytes(MEMINFO)
    (proc / "stat").write_bytes(
        b"cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nbtime 1700000000\n"
    )
    (proc / "loadavg").write_bytes(b"0.50 1.25 2.00 1/234 5678\n")
    (proc / "uptime").write_bytes(b"12345.67 99999.99\n")
    (proc / "cpuinfo").write_bytes(b"processor\t: 0\nmodel name\t: AMD  EPYC 7763\n\nprocessor\t: 1\n")
    (proc / "mounts").write_bytes(f"/dev/sda1 {tmp_path} ext4 rw 0 0\nnas:/home /home nfs4 rw 0 0\n".encode())
    (proc / "sys" / "kernel" / "osrelease").write_bytes(b"6.1.0-18-amd64\n")
    (etc / "os-release").write_bytes(
        b'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
    )
    return proc, etc


def collector(roots: tuple[Path, Path], clock: Clock) -> HostCollector:
    return HostCollector(
        proc_root=roots[0],
        etc_root=roots[1],
        hostname=lambda: "node\x1b01",
        addresses=lambda: (Address("eth0", "192.0.2.1"),),
        monotonic=clock,
        agent_version="1.2",
    )


def test_facts(roots: tuple[Path, Path]) -> None:
    clock = Clock()
    host = collector(roots, clock)
    facts = host.facts()
    assert facts.hostname == "node�01"
    assert (facts.os, facts.kernel) == ("Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64")
    assert (facts.cpu_model, facts.cpu_count) == ("AMD EPYC 7763", 2)
    assert (facts.memory_total_bytes, facts.swap_total_bytes) == (16384 * 1024, 2048 * 1024)
    assert (facts.booted_at, facts.agent_version) == (1700000000.0, "1.2")
    assert [disk.mount for disk in facts.disks] == [str(roots[0].parent)]
    assert len(host.disks_used_bytes()) == 1
    clock.now = 61.0
    assert host.facts() is facts
    (roots[0] / "sys" / "kernel" / "osrelease").write_bytes(b"6.1.0-19-amd64\n")
    assert host.facts() is facts, "not looked at within a minute"
    clock.now = 122.0
    assert host.facts().kernel == "6.1.0-19-amd64"
    host.close()


def test_sample(roots: tuple[Path, Path]) -> None:
    host = collector(roots, Clock())
    first = host.sample()
    assert first.cpu_ratio is None
    assert (first.load_1m, first.load_5m, first.load_15m) == (0.5, 1.25, 2.0)
    assert first.memory_used_bytes == 12288 * 1024
    assert first.swap_used_bytes == 1024 * 1024
    assert first.uptime_seconds == 12345.67
    (roots[0] / "stat").write_bytes(b"cpu  130 0 120 740 110 0 0 0 0 0\n")
    assert host.sample().cpu_ratio == pytest.approx(0.5)
    host.close()


def test_nothing_readable_is_unknown(tmp_path: Path) -> None:
    host = HostCollector(proc_root=tmp_path, etc_root=tmp_path, hostname=lambda: "x", addresses=tuple)
    assert host.sample() == HostSample()
    assert host.facts().memory_total_bytes is None
    assert host.facts().disks == ()
    (tmp_path / "meminfo").write_bytes(b"rubbish\n\xff: x kB\nMemTotal:\n")
    (tmp_path / "loadavg").write_bytes(b"x y\n")
    (tmp_path / "uptime").write_bytes(b"never\n")
    assert host.sample() == HostSample()
    assert host_memory(tmp_path)() == (None, None)
    host.close()


def test_cpu_times() -> None:
    assert parse_cpu_times(b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1") == (27, 36)
    assert parse_cpu_times(b"") is None
    assert parse_cpu_times(b"intr 1 2 3 4 5") is None


def test_only_local_file_systems_once_each() -> None:
    mounts = b"""sysfs /sys sysfs rw 0 0
/dev/sda2 / ext4 rw 0 0
/dev/sda2 /var/lib/docker/x ext4 rw 0 0
/dev/sda1 /boot/efi vfat rw 0 0
/dev/sdb /data\\040sets xfs rw 0 0
/dev/sdb /mnt/bound/again xfs rw 0 0
nas:/home /home nfs4 rw 0 0
user@host:/ /mnt/ssh fuse.sshfs rw 0 0
overlay /var/lib/docker/overlay2/a/merged overlay rw 0 0
tmpfs /run tmpfs rw 0 0
/dev/loop1 /snap/x/1 squashfs ro 0 0
broken
"""
    assert local_mounts(mounts) == [("/", "/dev/sda2"), ("/data sets", "/dev/sdb")]


def test_this_machine() -> None:
    host = HostCollector()
    facts, sample = host.facts(), host.sample()
    assert facts.memory_total_bytes
    assert facts.cpu_count
    assert sample.uptime_seconds
    assert len(host.disks_used_bytes()) == len(facts.disks)
    assert all(not address.interface.startswith(("lo", "docker", "veth")) for address in network_addresses())
    host.close()
