"""A herd whose numbers are summed up and asked for, and samples of one that does the same all the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gpuherd.history.batch import SeriesKey
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Tables
from gpuherd.model.devices import DEVICE_STATES
from support.past import Row, batch_of

__all__ = ["BUSY", "FREE", "HELD", "MIDNIGHT", "Herd", "steady"]

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
FREE, BUSY, HELD = (DEVICE_STATES.index(word) for word in ("free", "busy", "held"))


class Herd:
    """A sink and a reader over one folder, with a clock that stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = MIDNIGHT
        self.file = 1
        self.open()

    def open(self) -> None:
        self.tables = Tables(self.folder, HERD_SHAPES, threads=1)
        self.sink = HerdSink(self.tables, HistorySettings())
        self.reader = HerdReader(self.tables, self.sink, clock=lambda: self.now)

    def take(self, rows: Sequence[Row]) -> None:
        self.sink.take(batch_of(rows), self.file)

    def seal(self) -> None:
        self.file += 1
        self.sink.tend(self.now, self.file)


def steady(keys: tuple[SeriesKey, ...], start: float, seconds: int, state: int = BUSY) -> list[Row]:
    return [
        (
            key,
            start + at,
            {"utilization_gpu": 0.5, "power_watts": 100.0, "memory_used_bytes": 40 * 2.0**30},
            state,
        )
        for at in range(0, seconds + 1, 10)
        for key in keys
    ]
