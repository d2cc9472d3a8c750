# ruff: noqa: S608 - SQL is put together of quoted names only
"""What of a table a question is about, and how DuckDB is told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuherd.history.tables.catalogue import Snapshot
from gpuherd.history.tables.engine import named, quoted
from gpuherd.history.tables.segments import Segment, Shape

__all__ = ["Part", "filled_in", "may_agree", "nothing_of", "overlapping"]


@dataclass(frozen=True, slots=True)
class Part:
    """What of a table a question is about: the segments with rows in a range, or some by name."""

    table: str
    start: float = -math.inf
    end: float = math.inf
    segments: tuple[Segment, ...] | None = None
    """Only these, instead of those in the range."""
    with_serial: bool = False
    """Adds a column ``serial``: that of the segment which a row is in."""
    among: tuple[str, ...] | None = None
    """Only segments that may have rows with one of these in the first column of the table's order."""

    def _is_meant(self, segment: Segment) -> bool:
        return self.among is None or any(segment.may_hold(text) for text in self.among)

    def chosen(self, snapshot: Snapshot) -> tuple[Segment, ...]:
        """The segments that it means, of those which are listed."""
        if self.segments is None:
            found = snapshot.segments(self.table, self.start, self.end)
            return found if self.among is None else tuple(filter(self._is_meant, found))
        wanted = {segment.file for segment in self.segments}
        return tuple(segment for segment in snapshot.segments(self.table) if segment.file in wanted)


def filled_in(
    sql: str,
    parts: Mapping[str, Part],
    chosen: Mapping[str, Iterable[Segment]],
    shapes: Mapping[str, Shape],
    folder: Path,
) -> str:
    """Put the chosen segments where the SQL says ``{name}``."""
    for name, part in parts.items():
        source = _source(shapes[part.table], folder, tuple(chosen[name]), with_serial=part.with_serial)
        sql = sql.replace("{" + name + "}", source)
    return sql


def nothing_of(shape: Shape, *, with_serial: bool = False) -> str:
    """A SELECT that gives a shape's columns and no rows."""
    kinds = [*shape.columns.items(), *([("serial", "BIGINT")] if with_serial else [])]
    return f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {named(name)}' for name, kind in kinds)} WHERE false"


def _source(shape: Shape, folder: Path, chosen: tuple[Segment, ...], *, with_serial: bool) -> str:
    if not chosen:
        return f"({nothing_of(shape, with_serial=with_serial)})"
    paths = ", ".join(quoted(str(folder / segment.file)) for segment in chosen)
    is_uniform = all(segment.shape == shape.fingerprint for segment in chosen)
    options = "" if is_uniform else ", union_by_name = true"
    options += ", filename = true" if with_serial else ""
    source = f"read_parquet([{paths}]{options})"
    if with_serial:
        # The last 16 characters of a file's name are its serial in hexadecimal and ".parquet".
        serial = "CAST(concat('0x', filename[-16:-9]) AS BIGINT)"
        source = f"(SELECT * EXCLUDE (filename), {serial} AS serial FROM {source})"
    if is_uniform:
        return source
    return f"({nothing_of(shape, with_serial=with_serial)} UNION ALL BY NAME SELECT * FROM {source})"


def may_agree(shape: Shape, segments: Sequence[Segment]) -> bool:
    """Whether rows of two files can be the same: each file has a row once, and files that are apart share none."""
    if not shape.unique_by:
        return False
    return shape.time not in shape.unique_by or overlapping(segments)


def overlapping(segments: Iterable[Segment]) -> bool:
    """Whether any two may have rows of the same owners in the same stretch of time."""
    lasting: list[Segment] = []
    for segment in sorted(segments, key=lambda each: each.start):
        lasting = [earlier for earlier in lasting if earlier.end >= segment.start]
        if any(earlier.shares_owners(segment) for earlier in lasting):
            return True
        lasting.append(segment)
    return False
