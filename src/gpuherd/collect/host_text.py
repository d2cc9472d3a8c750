"""What the host's files and tools say, as values: pure parsers, wherever the text came from."""

from __future__ import annotations

from ipaddress import ip_address
from math import isfinite

from gpuherd.collect.meminfo import meminfo_bytes
from gpuherd.model.hosts import HostSample
from gpuherd.model.text import clean

__all__ = [
    "MOST_ADDRESSES",
    "cpu_model",
    "cpu_ratio",
    "host_sample",
    "local_mounts",
    "number",
    "os_name",
    "outer_address",
    "parse_cpu_times",
]

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
    try:
        ticks = [int(field) for field in fields[1:9]]
    except ValueError:
        return None
    total = sum(ticks)
    idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0)
    return total - idle, total


def cpu_ratio(before: tuple[int, int] | None, times: tuple[int, int] | None) -> float | None:
    """Say how busy the CPUs were between two readings of ``parse_cpu_times``."""
    if times is None or before is None or times[1] <= before[1]:
        return None
    return min(1.0, max(0.0, (times[0] - before[0]) / (times[1] - before[1])))


def host_sample(memory: bytes, loadavg: bytes, uptime: bytes, *, cpu_ratio: float | None) -> HostSample:
    """Make a sample of the contents of ``/proc/meminfo``, ``loadavg`` and ``uptime``; what is missing is unknown."""
    total, available = meminfo_bytes(memory, b"MemTotal"), meminfo_bytes(memory, b"MemAvailable")
    swap, swap_free = meminfo_bytes(memory, b"SwapTotal"), meminfo_bytes(memory, b"SwapFree")
    loads = [number(word) for word in loadavg.split()[:3]]
    loads += [None] * (3 - len(loads))
    since_boot = uptime.split()
    return HostSample(
        cpu_ratio=cpu_ratio,
        load_1m=loads[0],
        load_5m=loads[1],
        load_15m=loads[2],
        memory_used_bytes=None if total is None or available is None else max(0, total - available),
        swap_used_bytes=None if swap is None or swap_free is None else max(0, swap - swap_free),
        uptime_seconds=number(since_boot[0]) if since_boot else None,
    )


def outer_address(interface: str, address: str) -> str | None:
    """Give an address under which others may reach the machine; ``None`` for inner ones and what is no address."""
    if interface.startswith(_INNER_INTERFACES):
        return None
    try:
        ip = ip_address(address.split("%", 1)[0])
    except ValueError:
        return None
    return None if ip.is_loopback or ip.is_link_local else str(ip)


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


def number(word: bytes) -> float | None:
    """Read a finite number; ``None`` for anything else."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if isfinite(value) else None


def os_name(content: bytes) -> str | None:
    """Find distribution and release in ``/etc/os-release``."""
    fields = dict(line.partition("=")[::2] for line in content.decode(errors="replace").splitlines())
    name = fields.get("PRETTY_NAME") or fields.get("NAME") or ""
    return clean(name.strip("\"'")) or None


def cpu_model(content: bytes) -> str | None:
    """Find the model in ``/proc/cpuinfo``.

    x86 writes "model name", others "Model", "cpu model" or "Hardware"; some ARM machines say nothing.
    """
    fields: dict[str, str] = {}
    for line in content.decode(errors="replace").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip().lower(), value.strip())
    for name in ("model name", "cpu model", "model", "hardware"):
        if fields.get(name):
            return clean(" ".join(fields[name].split()))
    return None
