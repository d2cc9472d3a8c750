"""What is remembered of GPUs for good: that they were there, what was wrong with them, and until when."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gpuherd.model.devices import DeviceFacts
from gpuherd.model.hosts import HostFacts

__all__ = [
    "DeviceFault",
    "GpuAction",
    "KnownDevice",
    "MemoryChanges",
    "boot_of",
    "is_counter_reset",
    "is_driver_reloaded",
]

BOOT_TOLERANCE_SECONDS = 120.0
"""Older agents tell when the machine was booted, by a clock that may be set."""
ENERGY_TOLERANCE_JOULES = 1.0
MAX_BOOT_CHARACTERS = 96
"""As the records take it; a kernel's boot id has 36."""

GpuAction = Literal["forget", "acknowledge"]
"""What an admin can say of a GPU: that it was taken out, or that its faults are known."""


class KnownDevice(Struct, frozen=True, kw_only=True):
    """A whole GPU that a node has reported."""

    node_id: str
    facts: DeviceFacts
    """What names it: uuid, index, name, vendor, memory, serial number and slot."""
    missing_since: float | None = None
    """By the hub's clock; None: it is there."""


class DeviceFault(Struct, frozen=True, kw_only=True):
    """A fault of a GPU that lasts until its cause is gone or an admin acknowledges it."""

    node_id: str
    uuid: str
    code: str
    """``xid 79``, or ``ecc`` for acknowledged ECC errors."""
    message: str
    since: float
    """By the node's clock."""
    boot_id: str | None = None
    """Of the node when it was seen; another one means that the node has been rebooted."""
    driver_version: str | None = None
    energy_joules: float | None = None
    """The GPU's energy counter; a lower one means that GPU or driver has been reset."""
    acknowledged_at: float | None = None
    """By the hub's clock; None: not acknowledged."""
    acknowledged_count: int = 0
    """Of a counter that stays above 0: how far it had counted when it was acknowledged."""


class MemoryChanges(Struct, frozen=True, kw_only=True):
    """What is to be written, by key; None is to be deleted."""

    devices: dict[tuple[str, str], KnownDevice | None]
    faults: dict[tuple[str, str, str], DeviceFault | None]
    notes: tuple[tuple[str, str, str], ...] = ()
    """For the audit log: action, subject, detail."""

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.devices or self.faults or self.notes)


def boot_of(host: HostFacts) -> str | None:
    """Return what tells one start of the machine from the next. A node's own text never looks like a time."""
    if host.boot_id is not None:
        return f"id {host.boot_id}"[:MAX_BOOT_CHARACTERS]
    return None if host.booted_at is None else f"at {host.booted_at:.0f}"


def is_driver_reloaded(boot_before: str | None, driver_before: str | None, host: HostFacts) -> bool:
    """Whether a node was rebooted, or has loaded another driver: its faults are over.

    What is not known proves nothing.
    """
    if None not in (driver_before, host.driver_version) and driver_before != host.driver_version:
        return True
    boot = boot_of(host)
    if boot_before is None or boot is None or boot_before == boot:
        return False
    times = [each.removeprefix("at ") for each in (boot_before, boot) if each.startswith("at ")]
    if len(times) == 2:
        return float(times[1]) - float(times[0]) > BOOT_TOLERANCE_SECONDS
    return not times  # an agent that was updated tells it in another way


def is_counter_reset(before_joules: float | None, now_joules: float | None) -> bool:
    """Whether a GPU's energy counter has begun again, with a reset or another load of the driver: faults are over."""
    return (
        before_joules is not None
        and now_joules is not None
        and now_joules < before_joules - ENERGY_TOLERANCE_JOULES
    )
