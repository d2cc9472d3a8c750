# ruff: noqa: S608 - SQL is put together of quoted names only
"""Making a file: from columns of numpy, with strings as codes into a short list, or from an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.disk import DiskFull, is_full, sync_file, sync_folder
from gpuherd.history.tables.engine import Columns, Engine, named, quoted
from gpuherd.history.tables.parts import nothing_of
from gpuherd.history.tables.segments import Segment, Shape, checksum_of, segment_file
from gpuherd.model.errors import Failed

__all__ = ["Coded", "SegmentWriter", "Sortable", "extent_of"]


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of strings: positions in a list of its values, below zero for null."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.codes)


Sortable = NDArray[Any] | Coded


class SegmentWriter:
    """Writes files beside, and puts them in their table's folder when they are whole and durable."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine

    def of_columns(
        self, shape: Shape, columns: Mapping[str, Sortable], *, partition: int, serial: int, level: int
    ) -> Segment | None:
        """Write columns, sorted; none if there are no rows."""
        sql, given, lists = _column_query(shape, columns)
        return self._make(shape, sql, partition, serial, level, arrays={"given": given}, lists=lists)

    def of_answer(
        self,
        shape: Shape,
        sql: str,
        parameters: Sequence[object],
        arrays: Mapping[str, Columns] | None,
        *,
        partition: int,
        serial: int,
        level: int,
    ) -> Segment | None:
        """Write what a SELECT gives, sorted; none if it gives no rows."""
        typed = ", ".join(
            f"CAST({named(name)} AS {kind}) AS {named(name)}" for name, kind in shape.columns.items()
        )
        order = f" ORDER BY {', '.join(map(named, shape.order_by))}" if shape.order_by else ""
        whole = f"SELECT {typed} FROM (({nothing_of(shape)}) UNION ALL BY NAME ({sql})){order}"
        return self._make(shape, whole, partition, serial, level, parameters=parameters, arrays=arrays)

    def _make(
        self,
        shape: Shape,
        sql: str,
        partition: int,
        serial: int,
        level: int,
        *,
        parameters: Sequence[object] = (),
        arrays: Mapping[str, Columns] | None = None,
        lists: Mapping[str, list[str | None]] | None = None,
    ) -> Segment | None:
        if partition % 60:
            raise ValueError("a partition starts at a full minute: its file is named by it")
        beside = self._folder / "writing" / f"{serial:08x}.parquet"
        file = segment_file(shape.name, partition, serial)
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {shape.row_group_rows}"
        options += f", {shape.options}" if shape.options else ""
        try:
            target = f"{quoted(str(beside))} ({options})"
            self._engine.execute(f"COPY ({sql}) TO {target}", parameters, arrays=arrays, lists=lists)
            start, end, rows = extent_of(self._engine, shape, beside)
            if not rows:
                return None
            sync_file(beside)
            segment = Segment(
                file=file,
                table=shape.name,
                partition=partition,
                start=start,
                end=end,
                rows=rows,
                size_bytes=beside.stat().st_size,
                checksum=checksum_of(beside),
                serial=serial,
                level=level,
                shape=shape.fingerprint,
            )
            beside.rename(self._folder / file)
            sync_folder(self._folder / shape.name)
        except OSError as error:
            if is_full(error):
                raise DiskFull(f"history: the disk of {self._folder} is full; make room on it") from error
            raise Failed(f"history: cannot write in {self._folder}: {error.strerror}") from error
        finally:
            beside.unlink(missing_ok=True)
        return segment


def extent_of(engine: Engine, shape: Shape, path: Path) -> tuple[float, float, int]:
    """Read from a file's statistics the times of its first and last row, and how many there are."""
    time = f"epoch({named(shape.time)})" if shape.has_timestamps else named(shape.time)
    found = engine.query(
        f"SELECT min({time})::DOUBLE AS start, max({time})::DOUBLE AS end, count(*) AS rows "
        f"FROM read_parquet({quoted(str(path))})"
    )
    return float(found["start"][0]), float(found["end"][0]), int(found["rows"][0])


def _sorted_rows(columns: Mapping[str, Sortable], order_by: Sequence[str]) -> NDArray[np.intp] | None:
    """Give the order in which rows are to be written; none if they are in it."""
    if not order_by:
        return None
    keys = [_sort_key(columns[name]) for name in order_by]
    order = np.lexsort(keys[::-1])
    return None if bool((order[1:] > order[:-1]).all()) else order


def _sort_key(column: Sortable) -> NDArray[Any]:
    if not isinstance(column, Coded):
        return column
    values = ["" if value is None else value for value in column.values]
    ranks = np.empty(len(values) + 1, np.int64)
    # As DuckDB sorts: by the bytes of UTF-8, which is the order of code points; nulls last.
    ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    ranks[-1] = len(values)
    return ranks[np.where(column.codes < 0, len(values), column.codes)]


def _column_query(
    shape: Shape, columns: Mapping[str, Sortable]
) -> tuple[str, dict[str, NDArray[Any]], dict[str, list[str | None]]]:
    """Give the SELECT that makes a shape's rows of table ``given``, that table, and lists of strings by variable.

    A list is looked up by position, which keeps the order of the rows; a join would not. That takes as long as writing
    objects and spares making them.
    """
    rows = {len(column) for column in columns.values()}
    if len(rows) != 1:
        raise ValueError("columns of different lengths")
    order = _sorted_rows(columns, shape.order_by)
    parts: list[str] = []
    given: dict[str, NDArray[Any]] = {}
    lists: dict[str, list[str | None]] = {}
    for position, (name, kind) in enumerate(shape.columns.items()):
        column = columns.get(name)
        if column is None:
            parts.append(f"CAST(NULL AS {kind}) AS {named(name)}")
            continue
        if isinstance(column, Coded):
            variable = f"strings_{position}"
            lists[variable] = list(column.values)
            array = np.where(column.codes < 0, 0, column.codes + 1)
            source = f"getvariable('{variable}')[{named(name)}]"
        else:
            array, source = column, named(name)
        given[name] = np.ascontiguousarray(array if order is None else array[order])
        # Numbers that nobody knows are NaN in numpy and null in a file, where they cost next to nothing.
        if given[name].dtype.kind == "f" and name != shape.time:
            source = f"CASE WHEN isnan({source}) THEN NULL ELSE {source} END"
        parts.append(f"CAST({source} AS {kind}) AS {named(name)}")
    return f"SELECT {', '.join(parts)} FROM given", given, lists
