"""Sleeping GPUs: do not wake them by looking at them.

The kernel tells in sysfs whether a PCI device is suspended, without touching it. Servers do not let their GPUs sleep
(``power/control`` is ``on``); there nothing is read again. Where they may sleep, one small file per GPU and read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["SleepWatch"]


class SleepWatch:
    """Knows which GPUs may sleep and whether they do."""

    def __init__(self, sys_root: Path) -> None:
        self._devices = sys_root / "bus" / "pci" / "devices"
        self._status_files: dict[int, str] = {}

    def watch(self, pci_bus_ids: Mapping[int, str | None]) -> None:
        """Look up which of these GPUs (by index) may sleep at all."""
        self._status_files = {}
        for index, bus_id in pci_bus_ids.items():
            power = self._devices / _sysfs_name(bus_id or "") / "power"
            if _content(power / "control") == "auto":
                self._status_files[index] = os.fspath(power / "runtime_status")

    def is_asleep(self, index: int) -> bool:
        """Tell whether a GPU sleeps now."""
        status_file = self._status_files.get(index)
        return status_file is not None and _content(Path(status_file)) == "suspended"


def _sysfs_name(bus_id: str) -> str:
    """NVML writes 00000000:3B:00.0, the kernel 0000:3b:00.0."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _content(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
