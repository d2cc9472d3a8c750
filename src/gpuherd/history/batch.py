"""What the hub has learnt between two writes: samples, use, and the frames they came from, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuherd.model.columns import COLUMNS

__all__ = [
    "DEVICE_METRICS",
    "HOST_METRICS",
    "NOT_JUDGED",
    "USE_MEASURES",
    "Batch",
    "Floats",
    "FrameMark",
    "Numbering",
    "Samples",
    "SeriesKey",
    "SessionKey",
    "Unsampled",
    "Uses",
    "no_samples",
    "no_uses",
]

Floats = NDArray[np.float64]

DEVICE_METRICS = tuple(column.name for column in COLUMNS["devices"])
HOST_METRICS = tuple(column.name for column in COLUMNS["host"])
NOT_JUDGED = 255
"""State of a sample that came late: what the device was then was not worked out."""


class SeriesKey(NamedTuple):
    """Whose numbers these are: a device, or with no ``uuid`` a node's host."""

    node_id: str
    uuid: str = ""
    type: str = ""
    """Short name of the device's type; not part of its identity, but asked for with it.

    Empty for a GPU that is partitioned: what can be used of it are its slices, which have theirs.
    """


class SessionKey(NamedTuple):
    """Someone's stay on one device. With its opening time it is the only one of this kind, for ever."""

    node_id: str
    uuid: str
    type: str
    user: str | None
    """As the node calls it; none is unknown."""
    container: str | None
    job: str | None
    opened_at: float
    """UTC epoch seconds of the first sample that showed it."""

    @property
    def id(self) -> str:
        """A short name that stays the same over restarts."""
        import hashlib  # noqa: PLC0415 - seldom asked for

        text = "\x1f".join("" if part is None else str(part) for part in self)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


class FrameMark(NamedTuple):
    """Up to this number, the frames of one run of a node are in this batch or one before it."""

    node_id: str
    boot_id: str
    seq: int


class Unsampled(NamedTuple):
    """Devices of one type that were in a state for a while without sending samples: silent, or missing."""

    type: str
    state: int
    """Position in DEVICE_STATES."""
    start: float
    end: float
    """UTC epoch seconds by the hub's clock."""
    devices: float
    gpus: float
    """The same, with a slice as a part of a GPU."""


class Numbering:
    """Small numbers for keys, as long as this process lives. A full one is given up and another begun."""

    def __init__(self) -> None:
        self.keys: list[SeriesKey] = []
        """By number."""
        self._memory: list[float] = []
        self._memory_total: Floats | None = None
        self._shares: list[float] = []
        self._share: Floats | None = None
        self._numbers: dict[SeriesKey, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def number(self, key: SeriesKey, memory_total: float = float("nan"), share: float = 1.0) -> int:
        """Give a key's number."""
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self._memory.append(memory_total)
            self._shares.append(share)
        else:
            self._memory[number] = memory_total
            self._shares[number] = share
        self._memory_total = self._share = None
        return number

    @property
    def memory_total(self) -> Floats:
        """By number, bytes as last told."""
        if self._memory_total is None:
            self._memory_total = np.array(self._memory, np.float64)
        return self._memory_total

    @property
    def share(self) -> Floats:
        """By number, what part of a GPU it is, as last told."""
        if self._share is None:
            self._share = np.array(self._shares, np.float64)
        return self._share


@dataclass(frozen=True, slots=True)
class Samples:
    """Numbers of devices or hosts at moments; a row is one subject at one moment."""

    keys: tuple[SeriesKey, ...]
    """Each subject once."""
    subject: NDArray[np.int32]
    """Of each row, the position of its subject in ``keys``."""
    time: Floats
    """UTC epoch seconds by the hub's clock."""
    values: Floats
    """Rows × DEVICE_METRICS or HOST_METRICS; NaN is unknown."""
    state: NDArray[np.uint8]
    """Position in DEVICE_STATES, or NOT_JUDGED; of hosts always the latter."""
    memory_total: Floats
    """Of each key, the memory of the device in bytes; NaN if unknown or it says nothing about use."""
    numbering: Numbering | None = None
    numbers: NDArray[np.int64] | None = None
    """Of each key, its number in ``numbering``, so that nobody has to look for keys; none after a restart."""
    share: Floats | None = None
    """Of each key, what part of a GPU it is: less than 1 for a slice. None: all are whole."""

    def __len__(self) -> int:
        return len(self.time)


USE_MEASURES = (
    "held_seconds",  # on the device at all, however many share it
    "gpu_seconds",  # fair share of it, × the slice's share of its GPU
    "busy_seconds",  # of gpu_seconds, with the device at work
    "unknown_seconds",  # of gpu_seconds, with unknown utilisation
    "work_seconds",  # gpu_seconds × utilisation, where known
    "memory_byte_seconds",  # own device memory × seconds
    "joules",  # fair share of the energy; NaN if the power is unknown
)
"""What is summed up of a stay."""


@dataclass(frozen=True, slots=True)
class Uses:
    """What stays on devices have grown by; a row is one stay within one slot of time."""

    keys: tuple[SessionKey, ...]
    commands: tuple[str | None, ...]
    """Of each key, the command line of its largest process, scrubbed; none: unknown, or told before."""
    session: NDArray[np.int32]
    """Of each row, the position in ``keys``."""
    slot: NDArray[np.int64]
    """Start of the slot, UTC epoch seconds, a multiple of SLOT_SECONDS."""
    first: Floats
    last: Floats
    """Between which moments of the slot it was seen."""
    measures: Floats
    """Rows × USE_MEASURES."""
    numbers: NDArray[np.int64] | None = None
    """Of each key, a number it keeps while this process lives, so that nobody has to look for keys; none: not known.

    It goes to another key only after every journal file with this one is settled.
    """

    def __len__(self) -> int:
        return len(self.slot)


def no_samples(metrics: int) -> Samples:
    """Give samples of nothing."""
    return Samples(
        keys=(),
        subject=np.empty(0, np.int32),
        time=np.empty(0),
        values=np.empty((0, metrics)),
        state=np.empty(0, np.uint8),
        memory_total=np.empty(0),
    )


def no_uses() -> Uses:
    """Give uses of nothing."""
    return Uses(
        keys=(),
        commands=(),
        session=np.empty(0, np.int32),
        slot=np.empty(0, np.int64),
        first=np.empty(0),
        last=np.empty(0),
        measures=np.empty((0, len(USE_MEASURES))),
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """All that is written at once: it is kept as a whole or not at all."""

    written_at: float
    devices: Samples = field(default_factory=lambda: no_samples(len(DEVICE_METRICS)))
    hosts: Samples = field(default_factory=lambda: no_samples(len(HOST_METRICS)))
    uses: Uses = field(default_factory=no_uses)
    marks: tuple[FrameMark, ...] = ()
    seen: tuple[tuple[str, float], ...] = ()
    """Of each node in it, the time of its last sample: from there its use is counted on."""
    notes: bytes = b""
    """What the accountant needs to go on from here after a restart, beside the rows of ``uses``."""
    unsampled: tuple[Unsampled, ...] = ()
