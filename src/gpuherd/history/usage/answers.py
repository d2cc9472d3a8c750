"""What is asked of the book, and what it answers. Times are UTC epoch seconds; users are as nodes call them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats, SessionKey
from gpuherd.model.history import MissingPart

__all__ = [
    "BookedSpan",
    "BookedUse",
    "Device",
    "Key",
    "MovingMeans",
    "Stay",
    "Stays",
    "UseFilter",
    "UseRow",
    "UseSteps",
    "UseSums",
    "UseTable",
    "UserSpan",
]

Device = tuple[str, str]
"""Node and uuid."""
Key = str | Device | None
"""Whose use it is; none is unknown."""


@dataclass(frozen=True, slots=True)
class UseFilter:
    """What is asked about; none of something is all of it, and a none within is what is unknown."""

    users: frozenset[str | None] | None = None
    nodes: frozenset[str] | None = None
    types: frozenset[str] | None = None
    jobs: frozenset[str | None] | None = None
    containers: frozenset[str | None] | None = None
    devices: frozenset[Device] | None = None


@dataclass(frozen=True, slots=True)
class UseSums:
    """Use in numbers; see ``USE_MEASURES``."""

    held_seconds: float = 0.0
    gpu_seconds: float = 0.0
    busy_seconds: float = 0.0
    unknown_seconds: float = 0.0
    work_seconds: float = 0.0
    memory_byte_seconds: float = 0.0
    joules: float | None = None
    """None: no device told its power."""

    @property
    def idle_seconds(self) -> float:
        """Of gpu_seconds, held without work."""
        return max(0.0, self.gpu_seconds - self.busy_seconds - self.unknown_seconds)

    def __add__(self, other: UseSums) -> UseSums:
        joules = [each.joules for each in (self, other) if each.joules is not None]
        return UseSums(
            self.held_seconds + other.held_seconds,
            self.gpu_seconds + other.gpu_seconds,
            self.busy_seconds + other.busy_seconds,
            self.unknown_seconds + other.unknown_seconds,
            self.work_seconds + other.work_seconds,
            self.memory_byte_seconds + other.memory_byte_seconds,
            sum(joules) if joules else None,
        )

    @classmethod
    def of(cls, measures: Sequence[float]) -> UseSums:
        """Read a row of measures, NaN for unknown energy."""
        held, gpu, busy, unknown, work, memory, joules = measures
        return cls(held, gpu, busy, unknown, work, memory, None if math.isnan(joules) else joules)


@dataclass(frozen=True, slots=True)
class UseRow:
    """The use of one user, group, node, type, job or device, or of all."""

    key: Key
    sums: UseSums
    by_type: Mapping[str, UseSums]
    users: int
    devices: int
    sessions: int


@dataclass(frozen=True, slots=True)
class UseTable:
    """Who or what used how much, most first."""

    start: float
    end: float
    """The range as it was counted: whole slots, and whole hours where only those are kept."""
    rows: tuple[UseRow, ...]
    totals: UseRow
    """All that was asked about, each once, whatever it is sorted by."""
    begins_at: float | None
    """From when on it is known who used what: of the oldest that is kept, of use or of the herd that was watched."""
    missing: tuple[MissingPart, ...] = ()
    omitted_rows: int = 0
    """Rows beyond the largest that were asked for; the totals count them."""


@dataclass(frozen=True, slots=True)
class UseSteps:
    """Use step by step."""

    edges: Floats
    """Bounds of the steps, one more than there are steps."""
    keys: tuple[Key, ...]
    """Most first."""
    measures: NDArray[np.float64]
    """Keys × steps × USE_MEASURES; NaN is unknown energy."""
    totals: NDArray[np.float64]
    """Steps × USE_MEASURES, each stay once."""
    begins_at: float | None
    missing: tuple[MissingPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Stay:
    """Someone's stay on a device, as far as it is in the range that was asked about."""

    id: str
    key: SessionKey
    first: float
    last: float
    is_open: bool
    sums: UseSums
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Stays:
    """Stays, latest first."""

    start: float
    end: float
    stays: tuple[Stay, ...]
    is_complete: bool
    missing: tuple[MissingPart, ...] = ()


@dataclass(frozen=True, slots=True)
class UserSpan:
    """Someone on a device for a while."""

    node_id: str
    uuid: str
    user: str | None
    container: str | None
    job: str | None
    start: float
    end: float
    gpu_seconds: float


@dataclass(frozen=True, slots=True)
class BookedSpan:
    """A booking of one device."""

    id: int
    users: frozenset[str]
    """The users that its holder has."""
    node_id: str
    uuid: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class BookedUse:
    """What a booked device was used for: by its holder, only by others, or not at all."""

    id: int
    node_id: str
    uuid: str
    booked_seconds: float
    used_seconds: float
    others_seconds: float
    unused_seconds: float


@dataclass(frozen=True, slots=True)
class MovingMeans:
    """GPUs held, by share: now, and on the average of the past, of which what is older counts less and less."""

    key: str | None
    now_gpus: float = 0.0
    now_busy_gpus: float = 0.0
    mean_2h: float = field(default=0.0)
    mean_24h: float = 0.0
    mean_1w: float = 0.0
