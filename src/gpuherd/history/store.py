"""The two sides of a store of samples: what goes in and what is asked, apart from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from gpuherd.history.batch import Batch, Floats, SeriesKey
from gpuherd.model.history import MissingPart, Resolution

__all__ = [
    "MAX_POINTS",
    "SeriesAnswer",
    "SeriesQuery",
    "SeriesReader",
    "Sink",
    "SinkHealth",
    "Steps",
    "SubjectAnswer",
]

MAX_POINTS = 2_000
"""In one answer and of one series."""


class SinkHealth(Struct, frozen=True, kw_only=True):
    """State of a sink."""

    name: str
    state: Literal["ok", "behind", "failing"]
    waiting_batches: Annotated[
        int, Meta(description="Received, and not yet stored in their final place.")
    ] = 0
    last_error: str | None = None
    last_error_at: float | None = None
    size_bytes: int | None = None
    oldest: Annotated[float | None, Meta(description="UTC epoch seconds of the oldest stored data.")] = None
    unreadable: Annotated[tuple[MissingPart, ...], Meta(description="Data that can no longer be read.")] = ()
    damaged_files: Annotated[
        int, Meta(description="Files that were found damaged in the last 30 days and moved to quarantine.")
    ] = 0


class Sink(Protocol):
    """Someone for whom the journal is kept. Batches come in the journal's order, each once as long as it lives.

    ``file`` is the number of the journal's file that a batch is in. After a start, the files from ``settled`` on are
    given again, oldest first; what they hold is to be taken once.
    """

    @property
    def name(self) -> str:
        """Its name, for messages and health."""

    @property
    def settled(self) -> int:
        """The first of the journal's files that it still needs. Kept by the sink itself, durably."""

    def take(self, batch: Batch, file: int) -> None:
        """Take what the journal holds safely. In the writer's thread: quick, from memory to memory; never fails."""

    def tend(self, now: float, open_file: int) -> None:
        """Do what is due: seal, roll up, send, forget. In a background thread, blocking, bounded; may raise ``Failed``.

        Files before ``open_file`` are complete.
        """

    def health(self) -> SinkHealth:
        """Tell how it is doing. From any thread."""

    def close(self) -> None:
        """Let go of files and connections; what was not settled is given again at the next start."""


class SeriesQuery(Struct, frozen=True, kw_only=True):
    """Which numbers, from when to when, and on how many points at most."""

    subjects: tuple[SeriesKey, ...]
    """Devices, or hosts; not both. Their ``type`` need not be given."""
    metrics: tuple[str, ...]
    start: float
    end: float
    max_points: int = 500
    with_states: bool = False


@dataclass(frozen=True, slots=True)
class SubjectAnswer:
    """One subject on the answer's grid; arrays are steps × metrics, NaN where nothing is known."""

    key: SeriesKey
    mean: Floats
    low: Floats
    high: Floats
    states: Floats | None = None
    """Steps × DEVICE_STATES: seconds known to have been spent in each; none if they were not asked for."""


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Numbers on a grid of equal steps."""

    query: SeriesQuery
    step_seconds: float
    """One of ``Steps``; never finer than the samples are apart, nor than the rollup they come from."""
    resolution: Resolution
    times: Floats
    """Start of each step: multiples of the step, in UTC."""
    subjects: tuple[SubjectAnswer, ...]
    """In the order of the query; one without any samples has only NaN."""
    missing: tuple[MissingPart, ...] = field(default=())


Steps: Sequence[int] = (
    *(1, 2, 5, 10, 15, 20, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800),
)
"""The steps that answers come in, in seconds."""


class SeriesReader(Protocol):
    """Who can be asked. Blocking; from any thread, several at a time."""

    def read(self, query: SeriesQuery) -> SeriesAnswer:
        """Answer within bounds, however long the range: coarser rather than more.

        What cannot be read is told in ``missing``. ``Failed`` if nothing can be asked at all.
        """
