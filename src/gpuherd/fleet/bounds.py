"""Values that cannot be: shown as unknown, and counted against the node that sent them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import Bools, Floats, Ints
from gpuherd.model.columns import COLUMNS

__all__ = ["drop_lies", "is_lie"]

_BOUNDS = {
    part: (np.array([column.low for column in columns]), np.array([column.high for column in columns]))
    for part, columns in COLUMNS.items()
}


def is_lie(values: Floats, part: str) -> Bools:
    """Tell which values are outside of their column's bounds; unknown ones are not."""
    low, high = _BOUNDS[part]
    with np.errstate(invalid="ignore"):
        lies: Bools = (values < low) | (values > high)
    return lies


def drop_lies(values: Floats, part: str, owner: Ints, nodes: Iterable[Node], now: float) -> Bools:
    """Turn values outside of their column's bounds into unknown, and tell which they were.

    ``owner``: the node's row of each row.
    """
    lies = is_lie(values, part)
    if not lies.any():
        return lies
    by_row = {node.row: node for node in nodes}
    for row, column in np.argwhere(lies).tolist():
        node = by_row.get(int(owner[row]))
        if node is not None:
            node.counts["values_refused"] += 1
            name = COLUMNS[part][column].name
            node.last_error = f"{name} = {values[row, column]:g} is impossible; shown as unknown"
            node.last_error_at = now
    values[lies] = np.nan
    return lies
