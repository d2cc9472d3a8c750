"""The herd's numbers: one row a device and one row a node, as arrays that are worked on all at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES
from gpuherd.model.columns import COLUMNS

__all__ = [
    "DEVICE_COLUMN",
    "HOST_COLUMN",
    "WORK_BUCKETS",
    "Array",
    "Bools",
    "Codes",
    "DeviceRows",
    "Floats",
    "Ints",
    "NodeRows",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]
Codes = NDArray[np.uint8]
Array = NDArray[Any]

DEVICE_COLUMN = {column.name: position for position, column in enumerate(COLUMNS["devices"])}
HOST_COLUMN = {column.name: position for position, column in enumerate(COLUMNS["host"])}
WORK_BUCKETS = 20
"""Into which the window is cut that tells idle from busy."""
UNKNOWN = DEVICE_STATES.index("unknown")
NEVER = NODE_STATES.index("never")


class _Rows:
    """Arrays of one length that grow together; rows are handed out in blocks and come back when freed."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._defaults: dict[str, float | bool] = {}
        self._row_bytes = 0
        self._bytes = memoryview(b"")

    def _column(self, name: str, dtype: type | str, default: float | bool, width: int | None = None) -> None:
        shape = self.capacity if width is None else (self.capacity, width)
        self._defaults[name] = default
        setattr(self, name, np.full(shape, default, dtype=dtype))

    def write(self, start: int, matrix: bytes) -> None:
        """Copy whole rows of ``values``, as they came: one memory copy, which is the hub's cost per report."""
        offset = start * self._row_bytes
        self._bytes[offset : offset + len(matrix)] = matrix

    def _view_values(self) -> None:
        values: Floats = getattr(self, "values")  # noqa: B009 - declared by the subclasses
        self._row_bytes = values.shape[1] * values.itemsize
        self._bytes = values.data.cast("B")

    def allocate(self, count: int) -> int:
        """Give the first of ``count`` neighbouring rows, all at their defaults."""
        if count == 0:
            return 0
        start = self._take_free(count)
        if start is None and sum(size * len(starts) for size, starts in self._free.items()) >= count:
            self._join_free()
            start = self._take_free(count)
        if start is not None:
            return start
        start = self.used
        self.used += count
        if self.used > self.capacity:
            self._grow(max(self.capacity * 2, self.used))
        return start

    def _take_free(self, count: int) -> int | None:
        """Give a freed block of ``count`` rows, cut from the smallest that is large enough."""
        size = min((size for size, starts in self._free.items() if starts and size >= count), default=None)
        if size is None:
            return None
        start = self._free[size].pop()
        if size > count:
            self._free[size - count].append(start + count)
        return start

    def _join_free(self) -> None:
        """Make one block of freed neighbours: a node that keeps changing its size must not use rows up."""
        blocks = sorted((start, size) for size, starts in self._free.items() for start in starts)
        self._free.clear()
        joined = blocks[:1]
        for start, size in blocks[1:]:
            last_start, last_size = joined[-1]
            if last_start + last_size == start:
                joined[-1] = (last_start, last_size + size)
            else:
                joined.append((start, size))
        for start, size in joined:
            self._free[size].append(start)

    def release(self, start: int, count: int) -> None:
        """Take rows back and put them to their defaults."""
        if count:
            for name, default in self._defaults.items():
                getattr(self, name)[start : start + count] = default
            self._free[count].append(start)

    def _grow(self, capacity: int) -> None:
        for name, default in self._defaults.items():
            old = getattr(self, name)
            new = np.full((capacity, *old.shape[1:]), default, dtype=old.dtype)
            new[: self.capacity] = old
            setattr(self, name, new)
        self.capacity = capacity
        self._view_values()


class DeviceRows(_Rows):
    """What the hub knows of each device; times are monotonic seconds."""

    values: Floats
    """The sample's columns, NaN for unknown."""
    node: Ints
    """Node row; -1 is an unused row."""
    parent: Ints
    """Row of the GPU that a slice is cut from, else -1."""
    model: Ints
    memory_total: Floats
    """What used memory is a share of; NaN where memory says nothing about use (unified memory)."""
    has_memory_bound: Bools
    """Used memory is what processes use, so that a bound in bytes says something."""
    is_unified: Bools
    """Its memory is the host's, which says nothing about the device."""
    explained_memory: Floats
    """Of used memory, what does not hold the device, bytes; see ``explain_memory``."""
    ecc_baseline: Floats
    """Uncorrected ECC errors that an admin has acknowledged."""
    share: Floats
    """What part of a GPU it is: less than 1 for a slice."""
    compute_uses: Ints
    is_partitioned: Bools
    is_slice: Bools
    is_missing: Bools
    """Its node has reported it before, and no longer does."""
    is_faulty: Bools
    is_partial: Bools
    """Some reading failed just now: if utilisation is missing, it may have been that."""
    is_blind: Bools
    """The processes on it could not be listed, or not all."""
    is_impossible: Bools
    """The newest sample had an impossible value for what decides."""
    is_duplicate: Bools
    """Another live node reports the same device."""
    is_extra: Bools
    """Of several rows of the same device, not the one that is counted."""
    is_booked: Bools
    """A booking runs."""
    is_misused: Bools
    """A booking runs, and others than its holder use the device."""
    state: Codes
    reason: Codes
    since: Floats
    known_state: Codes
    """The last state that came from fresh data, and since when: a short silence does not restart the clock."""
    known_since: Floats
    active_at: Floats
    """When work was last seen that was more than a blip."""
    work: NDArray[np.float32]
    """Seconds at work in each bucket of the rolling window."""
    taken_at: Floats
    """Since when memory or a process has been seen on it without a break."""

    def __init__(self, capacity: int = 512) -> None:
        super().__init__(capacity)
        self.judged_at: float | None = None
        """When work was last counted."""
        self._column("values", "<f8", np.nan, len(COLUMNS["devices"]))
        self._column("work", np.float32, 0.0, WORK_BUCKETS)
        self._view_values()
        for name in ("node", "parent", "model"):
            self._column(name, np.int32, -1)
        self._column("memory_total", np.float64, np.nan)
        self._column("compute_uses", np.int32, 0)
        self._column("share", np.float64, 1.0)
        for name in ("explained_memory", "ecc_baseline"):
            self._column(name, np.float64, 0.0)
        for name in (
            "has_memory_bound",
            "is_unified",
            "is_partitioned",
            "is_slice",
            "is_missing",
            "is_faulty",
            "is_partial",
            "is_blind",
            "is_impossible",
            "is_duplicate",
            "is_extra",
            "is_booked",
            "is_misused",
        ):
            self._column(name, np.bool_, False)
        for name in ("state", "known_state"):
            self._column(name, np.uint8, UNKNOWN)
        self._column("reason", np.uint8, 0)
        for name in ("since", "known_since"):
            self._column(name, np.float64, np.nan)
        for name in ("active_at", "taken_at"):
            self._column(name, np.float64, -np.inf)


class NodeRows(_Rows):
    """What the hub knows of each node's contact and host."""

    values: Floats
    received: Floats
    """Monotonic time of the last live sample; -inf is never."""
    interval: Floats
    skew: Floats
    state: Codes
    is_used: Bools
    is_faulty: Bools
    """The node as a whole has a fault, such as a driver that hangs."""

    def __init__(self, capacity: int = 64) -> None:
        super().__init__(capacity)
        self._column("values", "<f8", np.nan, len(COLUMNS["host"]))
        self._view_values()
        self._column("received", np.float64, -np.inf)
        self._column("interval", np.float64, np.nan)
        self._column("skew", np.float64, np.nan)
        self._column("state", np.uint8, NEVER)
        self._column("is_used", np.bool_, False)
        self._column("is_faulty", np.bool_, False)
