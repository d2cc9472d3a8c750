"""A small table for tests of tables: rows that are easy to make and to recognise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuherd.history.tables.parts import Part
from gpuherd.history.tables.segments import Segment, Shape
from gpuherd.history.tables.tables import Tables
from gpuherd.history.tables.writing import Coded

__all__ = ["ROWS", "kept", "open_rows", "put", "rows_in"]

ROWS = Shape(
    "rows",
    {"time": "DOUBLE", "name": "VARCHAR", "value": "FLOAT"},
    order_by=("name", "time"),
    unique_by=("name", "time"),
    row_group_rows=2048,
)
Row = tuple[float, str | None, float | None]


def open_rows(folder: Path, *shapes: Shape, **named: Any) -> Tables:
    """Open the tables of a folder; with none given, that of rows."""
    return Tables(folder, shapes or [ROWS], threads=1, **named)


def put(tables: Tables, rows: Sequence[Row], *, partition: int = 0, level: int = 0) -> Segment:
    """Write and list rows of time, name and value."""
    names = sorted({name for _, name, _ in rows if name is not None})
    segment = tables.write(
        "rows",
        {
            "time": np.array([time for time, _, _ in rows]),
            "name": Coded(
                np.array([-1 if name is None else names.index(name) for _, name, _ in rows]), names
            ),
            "value": np.array([np.nan if value is None else value for _, _, value in rows]),
        },
        partition=partition,
        level=level,
    )
    assert segment is not None
    tables.commit(add=[segment])
    return segment


def rows_in(columns: dict[str, Any]) -> list[Row]:
    """Read an answer as rows; unknown values are none."""
    values = [None if np.isnan(value) else value for value in columns["value"].tolist()]
    return list(zip(columns["time"].tolist(), columns["name"].tolist(), values, strict=True))


def kept(tables: Tables, segments: Iterable[Segment] | None = None) -> list[Row]:
    """Read all rows, or those of some segments, in the order in which they are in the files."""
    part = Part("rows", segments=None if segments is None else tuple(segments))
    return rows_in(tables.query("SELECT time, name, value FROM {rows}", {"rows": part}).columns)
