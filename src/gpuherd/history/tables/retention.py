"""Forgetting: by age, and by size, the finest and oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Tables

__all__ = ["forget", "shrink"]


def forget(tables: Tables, keep_seconds: Mapping[str, float], now: float) -> tuple[Segment, ...]:
    """Remove the segments of each table whose last row is older than that; works on a full disk.

    What was lost and would have been forgotten by now is not told any more.
    """
    due = [
        segment
        for table, seconds in keep_seconds.items()
        for segment in tables.segments(table)
        if segment.end < now - seconds
    ]
    told = [
        lost
        for lost in tables.catalogue.lost()
        if lost.table in keep_seconds and lost.end < now - keep_seconds[lost.table]
    ]
    if due or told:
        tables.catalogue.commit(remove=due, forgotten=told)
    return tuple(due)


def shrink(
    tables: Tables,
    ranks: Sequence[Sequence[str]],
    max_bytes: int,
    *,
    may_go: Callable[[Segment], bool] = lambda segment: True,
) -> tuple[Segment, ...]:
    """Remove segments until these tables together have no more than so many bytes; works on a full disk.

    ``ranks`` are groups of tables, the first to go first; within a group it is the oldest. ``may_go`` spares segments
    that are still needed, such as those which have not been rolled up.
    """
    excess = tables.catalogue.size_bytes([table for rank in ranks for table in rank]) - max_bytes
    due: list[Segment] = []
    for rank in ranks:
        candidates = [s for table in rank for s in tables.segments(table) if may_go(s)]
        for segment in sorted(candidates, key=lambda each: each.end):
            if excess <= 0:
                break
            due.append(segment)
            excess -= segment.size_bytes
    if due:
        tables.commit(remove=due)
    return tuple(due)
