"""The host's main memory, from ``/proc/meminfo``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuherd.model.devices import DeviceFacts

__all__ = ["HostMemory", "host_memory", "is_integrated", "meminfo_bytes"]

HostMemory = Callable[[], tuple[int | None, int | None]]
"""Gives total and used bytes."""

_INTEGRATED_CAPABILITIES = frozenset({"3.2", "5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"})
"""CUDA compute capabilities of NVIDIA's integrated GPUs (Tegra, Jetson, Thor, GB10); no card has one of these."""
_INTEGRATED_NAMES = ("GB10", "Thor", "Orin", "Xavier", "Tegra")


def is_integrated(facts: DeviceFacts) -> bool:
    """Whether a GPU has no memory of its own and works in the host's. A card that does not tell its memory has."""
    if facts.kind == "slice":
        return False
    if facts.compute_capability is not None:
        return facts.compute_capability in _INTEGRATED_CAPABILITIES
    return any(name in facts.name.split() for name in _INTEGRATED_NAMES)


def meminfo_bytes(content: bytes, name: bytes) -> int | None:
    """Find one ``Name:   123 kB`` line and give it in bytes; ``None`` if there is none or it has another shape."""
    start = (b"\n" + content).find(b"\n" + name + b":")
    if start < 0:
        return None
    words = content[start + len(name) + 1 : start + len(name) + 40].split(b"\n", 1)[0].split()
    return int(words[0]) * 1024 if len(words) == 2 and words[0].isdigit() and words[1] == b"kB" else None


def host_memory(proc_root: Path = Path("/proc")) -> HostMemory:
    """Make a reader of the host's memory; used is what is not available to new programs."""
    path = proc_root / "meminfo"

    def read() -> tuple[int | None, int | None]:
        try:
            with path.open("rb") as file:
                content = file.read(8192)
        except OSError:
            return None, None
        total, available = meminfo_bytes(content, b"MemTotal"), meminfo_bytes(content, b"MemAvailable")
        return total, None if total is None or available is None else max(0, total - available)

    return read
