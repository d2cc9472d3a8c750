# ruff: noqa: S608 - SQL is put together of quoted names only
"""Making one file of several: fewer to open, sorted throughout, each row once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuherd.history.tables.engine import named
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Part, Tables

__all__ = ["crowded", "merge", "merged"]


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


def merged(tables: Tables, segments: Sequence[Segment], *, partition: int | None = None) -> Segment | None:
    """Make one segment of several of a table: sorted; of rows that agree in what is unique, the one written last.

    It is durable and not listed: ``commit(add=[it], remove=segments)``. Blocking, in one thread and bounded memory.
    """
    shape = tables.shapes[segments[0].table]
    part = Part(shape.name, segments=tuple(segments), with_serial=bool(shape.unique_by))
    columns = ", ".join(map(named, shape.columns))
    order = f" ORDER BY {', '.join(map(named, shape.order_by))}" if shape.order_by else ""
    latest = ""
    if shape.unique_by:
        keys = ", ".join(map(named, shape.unique_by))
        latest = f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY serial DESC) = 1"
    return tables.write_query(
        shape.name,
        f"SELECT {columns} FROM {{part}}{latest}{order}",
        {"part": part},
        partition=segments[0].partition if partition is None else partition,
        level=max(segment.level for segment in segments) + 1,
    )


def merge(tables: Tables, segments: Iterable[Segment], *, partition: int | None = None) -> Segment | None:
    """Replace several segments of a table by one. ``Outdated`` if one of them went away meanwhile."""
    chosen = tuple(segments)
    segment = merged(tables, chosen, partition=partition)
    tables.commit(add=[segment], remove=chosen)
    return segment
