"""The host around the GPUs: what ``df``, ``free -m``, ``nproc`` and ``uptime`` printed into dropped files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile

from gpuherd.model.hosts import Disk, HostFacts, HostSample
from gpuherd.model.text import clean
from gpuherd.sources.old_values import number

__all__ = ["read_host"]

MAX_DISKS = 32
_LOADS = re.compile(r"load averages?: *(\d+(?:[.,]\d+)?),? +(\d+(?:[.,]\d+)?),? +(\d+(?:[.,]\d+)?)")
_UP = re.compile(r"\bup +(?:(\d{1,6}) days?, +)?(?:(\d{1,2}):(\d{2})|(\d{1,2}) min)")
_FOLDER = re.compile(r"(\d{1,9}(?:[.,]\d{1,3})?)([KMGT])\s+(/\S{1,100})")
LEAST_FOLDER_BYTES = 10 * 2**30
"""As in the older page: who has less is not named."""
_MIB = 2**20
_IN_MEMORY = frozenset({"udev", "tmpfs", "devtmpfs", "ramfs", "shm", "none", "efivarfs"})
"""What `df` lists that is no disk."""


def read_host(name: str, files: Mapping[str, bytes]) -> tuple[HostFacts, HostSample, tuple[int | None, ...]]:
    """Give facts, sample and space used of each disk; whatever is not in the files is unknown."""
    status = _lines(files.get("status"))
    disks = _disks(_lines(files.get("disks"))) or _disks(status)
    disks |= dict(_folders(_lines(files.get("local")), disks))
    memory_total, memory_used = _memory(status)
    cpu_count = next((int(line) for line in status if re.fullmatch(r" *\d{1,6} *", line)), None)
    uptime = next((line for line in status if "load average" in line), "")
    load_1m, load_5m, load_15m = _loads(uptime)
    if load_1m is None or cpu_count is None:
        told_load, told_count = _cpus(_lines(files.get("cpus")))
        load_1m = told_load if load_1m is None else load_1m
        cpu_count = told_count if cpu_count is None else cpu_count
    facts = HostFacts(
        hostname=name,
        cpu_count=cpu_count,
        memory_total_bytes=memory_total,
        disks=tuple(Disk(mount=mount, total_bytes=total) for mount, (total, _) in disks.items()),
    )
    sample = HostSample(
        load_1m=load_1m,
        load_5m=load_5m,
        load_15m=load_15m,
        memory_used_bytes=memory_used,
        uptime_seconds=_uptime(uptime),
    )
    return facts, sample, tuple(used for _, used in disks.values())


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", errors="replace").splitlines()[:512]


def _disks(lines: list[str]) -> dict[str, tuple[int, int]]:
    """Read lines of ``df``: device, size, used, available in KiB, share, mount point."""
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        words = line.split(None, 5)
        # The file system may be no path: a ZFS data set, overlay. Lines of `free` and `uptime` name no mount point.
        if len(words) == 6 and words[0] not in _IN_MEMORY and words[5].startswith("/"):
            total, used = number(words[1], 0, 2**43), number(words[2], 0, 2**43)
            if total is not None and used is not None and len(found) < MAX_DISKS:
                found.setdefault(clean(words[5].strip()), (int(total * 1024), int(used * 1024)))
    return found


def _folders(lines: list[str], disks: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Read what ``du -sh /local/*`` printed: who fills the disk, the largest first, as shares of the first disk."""
    total = next((total for total, _ in disks.values()), None)
    if total is None:
        return
    sizes: dict[str, int] = {}
    for line in lines:
        if found := _FOLDER.fullmatch(line.strip()):
            size = _decimal(found[1])
            if size is not None:
                sizes[clean(found[3])] = int(size * 1024 ** (1 + "KMGT".index(found[2])))
    largest = sorted(sizes.items(), key=lambda item: -item[1])[: MAX_DISKS - len(disks)]
    yield from ((mount, (total, used)) for mount, used in largest if LEAST_FOLDER_BYTES < used <= total)


def _memory(lines: list[str]) -> tuple[int | None, int | None]:
    """Read the line ``Mem:`` of ``free -m``, total and used: what is not available to programs."""
    words = next((line.split()[1:] for line in lines if line.startswith("Mem")), [])
    sizes = [int(word) for word in takewhile(re.compile(r"\d{1,9}").fullmatch, words)]
    if len(sizes) < 3:
        return (sizes[0] * _MIB if sizes else None), None
    total, used, free, *others = sizes
    if len(others) == 3 and abs(total - used - free) <= 2:
        # Before 2014 (procps 3.3.10) buffers and caches counted as used and came last.
        used -= others[1] + others[2]
    elif len(others) == 3:
        used = total - others[2]
    return total * _MIB, used * _MIB if 0 <= used <= total else None


def _decimal(text: str) -> float | None:
    return number(text.replace(",", "."), 0, 1e6)


def _loads(line: str) -> tuple[float | None, float | None, float | None]:
    found = _LOADS.search(line)
    return (_decimal(found[1]), _decimal(found[2]), _decimal(found[3])) if found else (None, None, None)


def _uptime(line: str) -> float | None:
    found = _UP.search(line)
    if found is None:
        return None
    days, hours, minutes, only_minutes = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes + only_minutes) * 60)


def _cpus(lines: list[str]) -> tuple[float | None, int | None]:
    """Read the last line ``load;cpus``. The scripts lose the decimals of the load unless the locale has a comma."""
    load, separator, count = (lines[-1] if lines else "").partition(";")
    if not separator:
        return None, None
    cpus = re.fullmatch(r" *(\d{1,6}) *", count)
    return _decimal(load.strip()), int(cpus[1]) if cpus else None
