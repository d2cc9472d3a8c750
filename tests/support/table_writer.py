"""A process of its own that writes, merges and forgets rows until it is killed.

Forked from a server that has loaded everything already: a fresh one is there within milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from gpuherd.history.tables.compaction import crowded, merge
from gpuherd.history.tables.parts import Part
from gpuherd.history.tables.retention import forget
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded, Sortable
from support.running import PATIENCE_SECONDS

__all__ = ["KEPT_NUMBERS", "ROWS", "ROWS_PER_NUMBER", "SUMS", "TableWriter", "append"]

ROWS = Shape(
    "rows",
    {"time": "DOUBLE", "name": "VARCHAR", "value": "BIGINT"},
    order_by=("name", "time"),
    unique_by=("name", "time"),
    row_group_rows=2048,
)
SUMS = Shape("sums", {"time": "DOUBLE", "total": "BIGINT"}, order_by=("time",), unique_by=("time",))
ROWS_PER_NUMBER = 20
KEPT_NUMBERS = 60
OVER = -1
_CHANGES = frozenset({"open", "os.rename", "os.remove", "os.link", "os.mkdir"})
_NAMES = ("a", "b", "c", "d", "e")
_PARTITION = 600
_LOADED = [
    "pytest",
    "duckdb",
    "numpy",
    *(f"gpuherd.history.tables.{name}" for name in ("compaction", "retention")),
]


def append(tables: Tables, number: int) -> None:
    """Write the rows of one number and, of these, their sum; both count with one step, or neither."""
    values = np.arange(number * ROWS_PER_NUMBER, (number + 1) * ROWS_PER_NUMBER)
    columns: dict[str, Sortable] = {
        "time": number + (np.arange(ROWS_PER_NUMBER) // len(_NAMES)) / 10,
        "name": Coded(np.arange(ROWS_PER_NUMBER) % len(_NAMES), _NAMES),
        "value": values,
    }
    partition = number // _PARTITION * _PARTITION
    rows = tables.write("rows", columns, partition=partition)
    sums = tables.write_query(
        "sums",
        "SELECT ?::DOUBLE AS time, sum(value) AS total FROM given",
        {},
        [number],
        arrays={"given": {"value": values}},
        partition=partition,
    )
    tables.commit(add=[rows, sums], settled={"test": number + 1})


def _work(folder: Path, seed: int, told: Connection) -> None:
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    tables = Tables(folder, [ROWS, SUMS], threads=1)
    number = tables.catalogue.settled("test")
    told.send(number)
    while True:
        choice = chance.random()
        if choice < 0.7:
            append(tables, number)
            number += 1
            told.send(number)
        elif choice < 0.9:
            _merge(tables, chance.choice(["rows", "sums"]))
        elif choice < 0.95:
            tables.query("SELECT count(*) AS n FROM {rows}", {"rows": Part("rows")})
        else:
            forget(tables, {"rows": KEPT_NUMBERS, "sums": KEPT_NUMBERS}, number)
        tables.tend(0.0)


def _merge(tables: Tables, table: str) -> None:
    for segments in crowded(tables, table, least=3):
        merge(tables, segments)


def _work_to_step(folder: Path, step: int, told: Connection) -> None:
    """Append, merge and forget, each once, and be killed before a certain step that changes the folder."""
    tables = Tables(folder, [ROWS, SUMS], threads=1)
    number = tables.catalogue.settled("test")
    told.send(number)
    steps_left = step

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps_left
        if event in _CHANGES and str(folder) in f"{arguments[0]}":
            steps_left -= 1
            if steps_left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    append(tables, number)
    told.send(number + 1)
    _merge(tables, "rows")
    forget(tables, {"rows": 2.0, "sums": 2.0}, number)
    told.send(OVER)
    signal.pause()


class TableWriter:
    """The process; numbers that it has committed come one by one."""

    def __init__(self, folder: Path, *, seed: int = 0, to_step: int | None = None) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self._told, child = context.Pipe(duplex=False)
        work, number = (_work, seed) if to_step is None else (_work_to_step, to_step)
        self._process = context.Process(target=work, args=(folder, number, child), daemon=True)
        self._process.start()
        child.close()
        self.committed = self._next(PATIENCE_SECONDS)

    def _next(self, seconds: float) -> int:
        if not self._told.poll(seconds):
            raise TimeoutError("the writer says nothing")
        number = self._told.recv()
        assert isinstance(number, int)
        return number

    def wait_for(self, commits: int) -> None:
        """Let it commit some more numbers."""
        for _ in range(commits):
            self.committed = self._next(PATIENCE_SECONDS)

    def wait_for_end(self) -> bool:
        """Wait until it was killed by its own step, or has come to the end without: then it is true."""
        try:
            while (number := self._next(PATIENCE_SECONDS)) != OVER:
                self.committed = number
        except EOFError:
            return False
        return True

    def kill(self) -> int:
        """Kill -9, wherever it is; give the number up to which it has said that all is committed."""
        self._process.kill()
        self._process.join()
        try:
            while True:
                self.committed = self._next(0.0)
        except (TimeoutError, EOFError):
            pass
        self._told.close()
        self._process.close()
        return self.committed
