"""A process of its own that writes history down, settles and tidies up until it is killed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from gpuherd.history.batch import Batch, FrameMark
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SinkHealth
from gpuherd.history.tables.disk import write_whole
from support.batches import START, make_batch
from support.running import PATIENCE_SECONDS

__all__ = ["DurableShelf", "JournalWriter", "open_history"]

STEP_SECONDS = 600.0
"""Six batches an hour: files are ended, settled and deleted all the time."""
_LOADED = ["pytest", "numpy", "gpuherd.history.historian", "support.batches"]


class DurableShelf:
    """A sink that keeps the numbers of the batches that it was given in one small file."""

    name = "shelf"

    def __init__(self, file: Path) -> None:
        self._file = file
        self.settled: int = 0
        self.numbers: list[int] = []
        if file.exists():
            self.settled, self.numbers = json.loads(file.read_text())
        self._waiting: list[tuple[int, int]] = []

    def take(self, batch: Batch, file: int) -> None:
        if batch.notes:
            self._waiting.append((int(batch.notes), file))

    def tend(self, now: float, open_file: int) -> None:
        waiting = list(self._waiting)
        numbers = self.numbers + [number for number, file in waiting if file < open_file]
        write_whole(self._file, json.dumps([open_file, numbers]).encode())
        self.numbers, self.settled = numbers, open_file
        del self._waiting[: sum(file < open_file for _, file in waiting)]

    def health(self) -> SinkHealth:
        return SinkHealth(name=self.name, state="ok")

    def close(self) -> None:
        pass

    def all_numbers(self) -> list[int]:
        """Give the numbers that are settled and those that were given and are not."""
        return self.numbers + [number for number, _ in self._waiting]


def open_history(folder: Path) -> tuple[Historian, DurableShelf]:
    """Open history in a folder, with what an earlier process left there."""
    shelf = DurableShelf(folder / "shelf.json")
    historian = Historian(folder, HistorySettings(min_free_bytes=0), [shelf], wall=lambda: START)
    historian.open()
    return historian, shelf


def numbered_batch(number: int) -> Batch:
    """Make the batch of a number; every seventh is large."""
    batch = make_batch(number % 50, devices=2000 if number % 7 == 0 else 3)
    return Batch(
        written_at=START + number * STEP_SECONDS,
        devices=batch.devices,
        uses=batch.uses,
        marks=(FrameMark("node", "boot", number),),
        notes=str(number).encode(),
    )


def _run(folder: Path, confirmed: Connection) -> None:
    historian, _ = open_history(folder)

    def tend() -> None:
        while True:
            historian.tend()

    number = historian.marks.runs("node").get("boot", -1) + 1
    threading.Thread(target=tend, daemon=True).start()
    while True:
        historian.append(numbered_batch(number))
        confirmed.send(number)
        number += 1


class JournalWriter:
    """The process, seen from outside."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self._confirmed, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=[folder, theirs], daemon=True)
        self._process.start()
        theirs.close()

    def wait_for(self, count: int) -> list[int]:
        """Wait until this many batches are confirmed; gives their numbers."""
        return [self._confirmed.recv() for _ in range(count) if self._confirmed.poll(PATIENCE_SECONDS)]

    def kill(self) -> list[int]:
        """Kill it at once; gives what it had confirmed before."""
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        numbers = []
        with contextlib.suppress(EOFError):
            while self._confirmed.poll():
                numbers.append(self._confirmed.recv())
        self._confirmed.close()
        self._process.close()
        return numbers
