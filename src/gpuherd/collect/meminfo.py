"""The host's main memory, from ``/proc/meminfo``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["HostMemory", "host_memory", "parse_meminfo"]

HostMemory = Callable[[], tuple[int | None, int | None]]
"""Gives total and used bytes."""


def parse_meminfo(content: bytes) -> dict[bytes, int]:
    """Read ``Name:   123 kB`` lines as bytes by name; lines of another shape are left out."""
    found: dict[bytes, int] = {}
    for line in content.splitlines():
        name, _, rest = line.partition(b":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if len(words) > 1 else 1)
    return found


def host_memory(proc_root: Path = Path("/proc")) -> HostMemory:
    """Make a reader of the host's memory; used is what is not available to new programs."""
    path = proc_root / "meminfo"

    def read() -> tuple[int | None, int | None]:
        try:
            with path.open("rb") as file:
                found = parse_meminfo(file.read(8192))
        except OSError:
            return None, None
        total, available = found.get(b"MemTotal"), found.get(b"MemAvailable")
        return total, None if total is None or available is None else max(0, total - available)

    return read
