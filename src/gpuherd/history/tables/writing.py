# ruff: noqa: S608 - SQL is put together of quoted names only
"""Making a file: from columns of numpy, with strings as codes into a short list, or from an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.disk import DiskFull, is_full, sync_file, sync_folder
from gpuherd.history.tables.engine import Columns, Engine, named, quoted
from gpuherd.history.tables.parts import nothing_of
from gpuherd.history.tables.segments import Segment, Shape, checksum_of, segment_file
from gpuherd.model.errors import Failed

__all__ = ["Coded", "Origin", "Place", "SegmentWriter", "Sortable", "Statement", "extent_of", "origin_of"]

_ORIGIN_WORD = "gpuherd"


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of strings: positions in a list of its values, below zero for null."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.codes)


Sortable = NDArray[Any] | Coded


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new segment belongs."""

    partition: int
    serial: int
    level: int = 0
    row_group_rows: int | None = None
    """Other than its table's."""
    settled: Mapping[str, int] = field(default_factory=dict)
    """How far sinks have settled with this segment and those before it."""


class Origin(msgspec.Struct, frozen=True):
    """What every file says of its making, for the day on which all lists of files are lost."""

    level: int = 0
    settled: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class Statement:
    """A SELECT with all that it needs."""

    sql: str
    parameters: Sequence[object] = ()
    arrays: Mapping[str, Columns] | None = None
    lists: Mapping[str, list[str | None]] | None = None


class SegmentWriter:
    """Writes files beside, and puts them in their table's folder when they are whole and durable."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine

    def of_columns(self, shape: Shape, columns: Mapping[str, Sortable], place: Place) -> Segment | None:
        """Write columns, sorted; none if there are no rows."""
        return self._make(shape, _column_statement(shape, columns), place, _owners_of(shape, columns))

    def of_answers(self, shape: Shape, answers: Sequence[Statement], place: Place) -> Segment | None:
        """Write what SELECTs give, each sorted, one after the other; none if there are no rows."""
        kinds = shape.columns.items()
        typed = ", ".join(f"CAST({named(name)} AS {kind}) AS {named(name)}" for name, kind in kinds)
        order = f" ORDER BY {', '.join(map(named, shape.order_by))}" if shape.order_by else ""
        statements = [
            replace(
                answer,
                sql=f"SELECT {typed} FROM (({nothing_of(shape)}) UNION ALL BY NAME ({answer.sql})){order}",
            )
            for answer in answers
        ]
        if len(statements) == 1:
            return self._make(shape, statements[0], place)
        # By way of files, because only the order of one scan is kept by COPY: that of a UNION ALL is not.
        pieces = [self._beside(place, f"-{number:04x}") for number in range(len(statements))]
        try:
            for piece, statement in zip(pieces, statements, strict=True):
                self._copy(statement, piece, "FORMAT parquet, COMPRESSION lz4_raw")
            paths = ", ".join(quoted(str(piece)) for piece in pieces)
            return self._make(shape, Statement(f"FROM read_parquet([{paths}])"), place)
        finally:
            for piece in pieces:
                piece.unlink(missing_ok=True)

    def _make(
        self,
        shape: Shape,
        statement: Statement,
        place: Place,
        owners: tuple[str | None, str | None] = (None, None),
    ) -> Segment | None:
        if place.partition % 60:
            raise ValueError("a partition starts at a full minute: its file is named by it")
        beside = self._beside(place)
        file = segment_file(shape.name, place.partition, place.serial)
        rows_per_group = shape.row_group_rows if place.row_group_rows is None else place.row_group_rows
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {rows_per_group}"
        origin = msgspec.json.encode(Origin(level=place.level, settled=dict(place.settled))).decode()
        options += f", KV_METADATA {{{_ORIGIN_WORD}: {quoted(origin)}}}"
        options += f", {shape.options}" if shape.options else ""
        try:
            self._copy(statement, beside, options)
            start, end, rows = extent_of(self._engine, shape, beside)
            if not rows:
                return None
            sync_file(beside)
            segment = Segment(
                file=file,
                table=shape.name,
                partition=place.partition,
                start=start,
                end=end,
                rows=rows,
                size_bytes=beside.stat().st_size,
                checksum=checksum_of(beside),
                serial=place.serial,
                level=place.level,
                shape=shape.fingerprint,
                least=owners[0],
                most=owners[1],
            )
            beside.rename(self._folder / file)
            sync_folder(self._folder / shape.name)
        except OSError as error:
            if is_full(error):
                raise DiskFull(f"history: the disk of {self._folder} is full; free some space") from error
            raise Failed(f"history: cannot write to {self._folder}: {error.strerror}") from error
        finally:
            beside.unlink(missing_ok=True)
        return segment

    def _beside(self, place: Place, suffix: str = "") -> Path:
        return self._folder / "writing" / f"{place.serial:08x}{suffix}.parquet"

    def _copy(self, statement: Statement, path: Path, options: str) -> None:
        self._engine.execute(
            f"COPY ({statement.sql}) TO {quoted(str(path))} ({options})",
            statement.parameters,
            arrays=statement.arrays,
            lists=statement.lists,
        )


def origin_of(engine: Engine, path: Path) -> Origin:
    """Read what a file says of its making; ``Failed`` if that cannot be read."""
    found = engine.query(
        f"SELECT decode(value) AS origin FROM parquet_kv_metadata({quoted(str(path))}) WHERE decode(key) = ?",
        [_ORIGIN_WORD],
    )["origin"]
    try:
        return msgspec.json.decode(found[0], type=Origin) if len(found) else Origin()
    except msgspec.DecodeError as error:
        raise Failed(f"history: {path} lacks its description: {error}") from error


def extent_of(engine: Engine, shape: Shape, path: Path) -> tuple[float, float, int]:
    """Read from a file's statistics the times of its first and last row, and how many there are."""
    time = f"epoch({named(shape.time)})" if shape.has_timestamps else named(shape.time)
    found = engine.query(
        f"SELECT min({time})::DOUBLE AS start, max({time})::DOUBLE AS end, count(*) AS rows "
        f"FROM read_parquet({quoted(str(path))})"
    )
    return float(found["start"][0]), float(found["end"][0]), int(found["rows"][0])


def _owners_of(shape: Shape, columns: Mapping[str, Sortable]) -> tuple[str | None, str | None]:
    """Give the least and the greatest text of the first column of the order; none if that is no text, or null."""
    column = columns.get(shape.order_by[0]) if shape.order_by else None
    if not isinstance(column, Coded) or not len(column):
        return None, None
    texts = [
        None if code < 0 or (text := column.values[code]) is None else _encodable(text)
        for code in np.unique(column.codes)
    ]
    known = [text for text in texts if text is not None]
    return (min(known), max(known)) if len(known) == len(texts) else (None, None)


def _sorted_rows(columns: Mapping[str, Sortable], shape: Shape) -> NDArray[np.intp] | None:
    """Give the rows to be written, in order and each once; none if they are so already.

    Of rows that agree in what is unique, the last one given counts.
    """
    order: NDArray[np.intp] | None = None
    # Columns that are not given are the same in all rows.
    order_by = [name for name in shape.order_by if name in columns]
    unique_by = [name for name in shape.unique_by if name in columns]
    sort_keys = {name: _sort_key(columns[name]) for name in {*order_by, *unique_by}}
    if order_by and _is_in_order([sort_keys[name] for name in order_by]):
        if frozenset(order_by) == frozenset(unique_by) or not unique_by:
            return None
    elif order_by:
        order = np.lexsort([sort_keys[name] for name in reversed(order_by)])
        if bool((order[1:] > order[:-1]).all()):
            order = None
    if not unique_by:
        return order
    keys = [sort_keys[name] for name in unique_by]
    is_by_key = frozenset(order_by[: len(keys)]) == frozenset(unique_by)
    by_key = order if is_by_key else np.lexsort(keys[::-1])
    # The order of sorting is stable: the last of those that agree was given last.
    ordered = [key if by_key is None else key[by_key] for key in keys]
    is_doubled = np.logical_and.reduce([key[1:] == key[:-1] for key in ordered])
    if not is_doubled.any():
        return order
    is_kept = np.ones(len(keys[0]), np.bool_)
    rows = np.arange(len(keys[0])) if by_key is None else by_key
    is_kept[rows[:-1][is_doubled]] = False
    whole = np.arange(len(keys[0])) if order is None else order
    return whole[is_kept[whole]]


def _is_in_order(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether each row comes after the one before it; rows that agree in everything are not in order."""
    if not len(keys[0]):
        return True
    is_after = np.zeros(len(keys[0]) - 1, np.bool_)
    for key in reversed(keys):
        is_after = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & is_after)
    return bool(is_after.all())


def _sort_key(column: Sortable) -> NDArray[Any]:
    if not isinstance(column, Coded):
        return column
    values = ["" if value is None else value for value in column.values]
    ranks = np.empty(len(values) + 1, np.int64)
    # As DuckDB sorts: by the bytes of UTF-8, which is the order of code points; nulls last.
    ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    ranks[-1] = len(values)
    return ranks[np.where(column.codes < 0, len(values), column.codes)]


def _column_statement(shape: Shape, columns: Mapping[str, Sortable]) -> Statement:
    """Give the SELECT that makes a shape's rows of columns, in order.

    Strings are looked up in a list by position, which keeps the order of the rows; a join would not. That takes next to
    no time, while an object for each string would take half as long as all numbers.
    """
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError("columns of different lengths")
    order = _sorted_rows(columns, shape)
    parts: list[str] = []
    given: dict[str, NDArray[Any]] = {}
    lists: dict[str, list[str | None]] = {}
    for position, (name, kind) in enumerate(shape.columns.items()):
        column = columns.get(name)
        if column is None:
            parts.append(f"CAST(NULL AS {kind}) AS {named(name)}")
            continue
        array = np.where(column.codes < 0, 0, column.codes + 1) if isinstance(column, Coded) else column
        given[name] = np.ascontiguousarray(array if order is None else array[order])
        if isinstance(column, Coded):
            variable = f"strings_{position}"
            lists[variable] = [None if value is None else _encodable(value) for value in column.values]
            # Not cast to what it is in the file: that would make strings of numbers before it is time.
            parts.append(f"getvariable('{variable}')[{named(name)}] AS {named(name)}")
            continue
        source = named(name)
        # Numbers that nobody knows are NaN in numpy and null in a file, where they cost next to nothing.
        if given[name].dtype.kind == "f" and np.isnan(given[name]).any():
            source = f"CASE WHEN isnan({source}) THEN NULL ELSE {source} END"
        parts.append(f"CAST({source} AS {kind}) AS {named(name)}")
    return Statement(f"SELECT {', '.join(parts)} FROM given", arrays={"given": given}, lists=lists)


def _encodable(text: str) -> str:
    """One name that is no text must not keep all the others from being written."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
