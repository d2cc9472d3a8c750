"""Columns of numpy as DuckDB takes them: sorted, with strings as codes into a short list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.tables.engine import named
from gpuherd.history.tables.segments import Shape

__all__ = ["Coded", "Sortable", "column_query", "sorted_rows"]


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of strings: positions in a list of its values, below zero for null."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.codes)


Sortable = NDArray[Any] | Coded


def sorted_rows(columns: Mapping[str, Sortable], order_by: Sequence[str]) -> NDArray[np.intp] | None:
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


def column_query(
    shape: Shape, columns: Mapping[str, Sortable]
) -> tuple[str, dict[str, NDArray[Any]], dict[str, list[str | None]]]:
    """Give the SELECT that makes a shape's rows of table ``given``, that table, and lists of strings by variable.

    A list is looked up by position, which keeps the order of the rows; a join would not. That takes as long as writing
    objects and spares making them.
    """
    rows = {len(column) for column in columns.values()}
    if len(rows) != 1:
        raise ValueError("columns of different lengths")
    order = sorted_rows(columns, shape.order_by)
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
    return f"SELECT {', '.join(parts)} FROM given", given, lists  # noqa: S608 - names are quoted
