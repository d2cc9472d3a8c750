"""A process that remembers as fast as it can, to be killed: samples whose numbers follow from their number.

Its clock runs by itself: each batch is a minute.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from gpuherd.history.batch import Batch, FrameMark, SeriesKey
from gpuherd.history.embedded.kinds import SHAPES
from gpuherd.history.embedded.store import EmbeddedStore
from gpuherd.history.herd.reader import HerdReader
from gpuherd.history.herd.shapes import HERD_SHAPES
from gpuherd.history.herd.sink import HerdSink
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings
from gpuherd.history.tables.tables import Tables
from gpuherd.model.errors import Failed
from support.past import Row, batch_of

__all__ = ["EVERY_SECONDS", "KEYS", "LATE", "START", "Memoir", "PastWriter", "rows_of"]

START = 1_790_812_800.0
EVERY_SECONDS = 60
KEYS = (SeriesKey("a", "GPU-0", "H100"), SeriesKey("b", "GPU-1", "A100"))
LATE = SeriesKey("c", "GPU-2", "A100")
"""Comes an hour late, in bundles."""
_BUNDLE = 30


def rows_of(number: int) -> list[Row]:
    """Give the samples of a batch."""
    rows: list[Row] = [_row(key, number) for key in KEYS]
    if number % _BUNDLE == 0 and number >= 2 * _BUNDLE:
        rows += [_row(LATE, late) for late in range(number - 2 * _BUNDLE, number - _BUNDLE)]
    return rows


def _row(key: SeriesKey, number: int) -> Row:
    numbers = {"power_watts": float(number % 487), "memory_used_bytes": float(number * 4096)}
    return key, START + number * EVERY_SECONDS + 1.0, numbers, number // 7 % 3


class Memoir:
    """A historian with its sinks, by its own clock."""

    def __init__(self, folder: Path) -> None:
        self.tables = Tables(folder / "tables", [*SHAPES, *HERD_SHAPES], threads=1)
        wishes = HistorySettings(min_free_bytes=0)
        self.now = START
        self.store = EmbeddedStore(self.tables, wishes, clock=lambda: self.now)
        self.herd = HerdSink(self.tables, wishes)
        self.reader = HerdReader(self.tables, self.herd, clock=lambda: self.now)
        self.historian = Historian(folder, wishes, [self.store, self.herd], wall=lambda: self.now)
        self.historian.open()
        self.number = max((mark.seq for mark in self.historian.marks), default=-1)
        self._set_clock()

    def _set_clock(self) -> None:
        self.now = START + (self.number + 1) * EVERY_SECONDS

    def append(self) -> None:
        """Remember the next batch."""
        number = self.number + 1
        samples = batch_of(rows_of(number))
        mark = FrameMark("a", "boot", number)
        self.historian.append(Batch(written_at=self.now, devices=samples.devices, marks=(mark,)))
        self.number = number
        self._set_clock()

    def close(self) -> None:
        """Let go."""
        self.historian.close()
        self.tables.close()


class PastWriter:
    """The process: forked from a server that has loaded everything already."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["support.past_writer", "duckdb"])
        self._numbers, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_remember, args=(folder, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, batches: int, seconds: float) -> int:
        """Let it remember so many batches and a moment more, then kill it; gives the last one that is safe."""
        safe = -1
        for _ in range(batches):
            safe = self._numbers.recv()
        time.sleep(seconds)
        self._process.kill()
        self._process.join()
        try:
            while True:
                safe = self._numbers.recv()
        except EOFError:
            return safe
        finally:
            self._numbers.close()
            self._process.close()


def _remember(folder: Path, safe: Connection) -> None:
    """Remember until killed."""
    memoir = Memoir(folder)

    def tend() -> None:
        try:
            while True:
                memoir.historian.tend()
        except Failed:
            traceback.print_exc()
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=tend, daemon=True).start()
    while True:
        memoir.append()
        safe.send(memoir.number)
