# ruff: noqa: S608 - SQL is put together of quoted names only
"""Making one file of several: fewer to open, sorted throughout, each row once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.engine import named
from gpuherd.history.tables.parts import Part, may_agree
from gpuherd.history.tables.segments import Segment, Shape
from gpuherd.history.tables.tables import Tables

__all__ = ["crowded", "merge", "merged"]

SORTED_BYTES = 48 * 2**20
"""Sorted at a time: with several times as much, DuckDB spills to disk and takes several times as long."""
_STRING_BYTES = 48
_NUMBER_BYTES = 8


def crowded(
    tables: Tables, table: str, *, least: int = 2, before: float | None = None
) -> list[tuple[Segment, ...]]:
    """List partitions with at least so many segments, oldest first; ``before``: only those that start before it."""
    partitions: dict[int, list[Segment]] = {}
    for segment in tables.segments(table):
        partitions.setdefault(segment.partition, []).append(segment)
    return [
        tuple(segments)
        for partition, segments in sorted(partitions.items())
        if len(segments) >= least and (before is None or partition < before)
    ]


def merge(
    tables: Tables,
    segments: Iterable[Segment],
    *,
    partition: int | None = None,
    row_group_rows: int | None = None,
) -> Segment | None:
    """Replace several segments of a table by one. ``Outdated`` if one of them went away meanwhile."""
    chosen = tuple(segments)
    segment = merged(tables, chosen, partition=partition, row_group_rows=row_group_rows)
    tables.commit(add=[segment], remove=chosen)
    return segment


def merged(
    tables: Tables,
    segments: Sequence[Segment],
    *,
    partition: int | None = None,
    row_group_rows: int | None = None,
) -> Segment | None:
    """Make one segment of several of a table: sorted; of rows that agree in what is unique, the one written last.

    It is durable and not listed: ``commit(add=[it], remove=segments)``. Blocking, in one thread and bounded memory.
    ``Outdated`` if one of them is not listed any more, ``Unreadable`` if one is damaged and was set aside.
    """
    shape = tables.shapes[segments[0].table]
    is_doubtful = may_agree(shape, segments)
    part = Part(shape.name, segments=tuple(segments), with_serial=is_doubtful)
    columns = ", ".join(map(named, shape.columns))
    latest = ""
    if is_doubtful:
        keys = ", ".join(map(named, shape.unique_by))
        latest = f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY serial DESC) = 1"
    return tables.write_query(
        shape.name,
        f"SELECT {columns} FROM {{part}} WHERE {{stretch}}{latest}",
        {"part": part},
        partition=segments[0].partition if partition is None else partition,
        level=max(segment.level for segment in segments) + 1,
        row_group_rows=row_group_rows,
        stretches=_stretches(tables, shape, part),
    )


def _stretches(tables: Tables, shape: Shape, part: Part) -> list[tuple[str, list[object]]]:
    """Conditions on the first column of the order that part the rows into pieces which are quick to sort."""
    segments = part.segments or ()
    strings = sum(kind.upper().startswith("VARCHAR") for kind in shape.columns.values())
    row_bytes = strings * _STRING_BYTES + (len(shape.columns) - strings) * _NUMBER_BYTES
    rows_at_once = max(SORTED_BYTES // row_bytes, 1)
    first = shape.order_by[0] if shape.order_by else None
    is_splitting_safe = first is not None and (not shape.unique_by or first in shape.unique_by)
    if first is None or not is_splitting_safe or sum(segment.rows for segment in segments) <= rows_at_once:
        return [("true", [])]
    column = named(first)
    counted = tables.query(
        f"SELECT {column} AS value, count(*) AS rows FROM {{part}} WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 1",
        {"part": part},
    ).columns
    bounds = _bounds(counted["value"], counted["rows"], rows_at_once)
    if not bounds:
        return [("true", [])]
    return [
        (f"{column} < ?", [bounds[0]]),
        *((f"{column} >= ? AND {column} < ?", [low, high]) for low, high in pairwise(bounds)),
        # Nulls come last in any order.
        (f"({column} >= ? OR {column} IS NULL)", [bounds[-1]]),
    ]


def _bounds(values: NDArray[Any], rows: NDArray[Any], rows_at_once: int) -> list[object]:
    piece = (np.cumsum(rows) - rows) // rows_at_once
    return [
        values[position].item() if isinstance(values[position], np.generic) else values[position]
        for position in np.flatnonzero(piece[1:] > piece[:-1]) + 1
    ]
