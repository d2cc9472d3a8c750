"""A process of its own that writes, merges and forgets rows until it is killed.

Forked from a server that has loaded everything already: a fresh one is there within milliseconds.
"""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from gpuherd.history.tables.compaction import crowded, merge
from gpuherd.history.tables.parts import Part
from gpuherd.history.tables.retention import forget
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded, Sortable

__all__ = ["KEPT_NUMBERS", "ROWS", "ROWS_PER_NUMBER", "SUMS", "TableWriter"]

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
_NAMES = ("a", "b", "c", "d", "e")
_PARTITION = 600
_LOADED = [
    "pytest",
    "duckdb",
    "numpy",
    *(f"gpuherd.history.tables.{name}" for name in ("compaction", "retention")),
]


def _append(tables: Tables, number: int) -> None:
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
            _append(tables, number)
            number += 1
            told.send(number)
        elif choice < 0.9:
            for segments in crowded(tables, chance.choice(["rows", "sums"]), least=3):
                merge(tables, segments)
        elif choice < 0.95:
            tables.query("SELECT count(*) AS n FROM {rows}", {"rows": Part("rows")})
        else:
            forget(tables, {"rows": KEPT_NUMBERS, "sums": KEPT_NUMBERS}, number)
        tables.tend(0.0)


class TableWriter:
    """The process; numbers that it has committed come one by one."""

    def __init__(self, folder: Path, seed: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_LOADED)
        self._told, child = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(folder, seed, child), daemon=True)
        self._process.start()
        child.close()
        self.committed = self._next(30.0)

    def _next(self, seconds: float) -> int:
        if not self._told.poll(seconds):
            raise TimeoutError("the writer says nothing")
        number = self._told.recv()
        assert isinstance(number, int)
        return number

    def wait_for(self, commits: int) -> None:
        """Let it commit some more numbers."""
        for _ in range(commits):
            self.committed = self._next(60.0)

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
