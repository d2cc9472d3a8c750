"""Use in files: the tables, and how rows in memory become theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import USE_MEASURES, SessionKey
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.writing import Coded, Sortable
from gpuherd.history.usage.pages import Rows
from gpuherd.history.usage.slots import SLOT_SECONDS

__all__ = [
    "COMMANDS",
    "DAYS",
    "DAY_SECONDS",
    "KEY_COLUMNS",
    "SHAPES",
    "STANDING",
    "USAGE",
    "coded",
    "key_columns",
    "row_columns",
]

DAY_SECONDS = 86_400
KEY_COLUMNS = ("node_id", "uuid", "type", "user", "container", "job")

USAGE = Shape(
    "usage",
    {
        "session": "VARCHAR",
        **dict.fromkeys(KEY_COLUMNS, "VARCHAR"),
        "opened_at": "DOUBLE",
        "slot": "BIGINT",
        "slot_seconds": "INTEGER",
        "first": "DOUBLE",
        "last": "DOUBLE",
        **dict.fromkeys(USE_MEASURES, "DOUBLE"),
    },
    order_by=("node_id", "uuid", "session", "slot"),
    time="slot",
)
"""A row is one stay within one slot; the same may be in several rows, which add up."""
DAYS = Shape(
    "usage_days", USAGE.columns, order_by=("node_id", "uuid", "session"), time="slot", is_derived=True
)
"""The same by days, in UTC: of each day, what those of its files hold that are merged."""
COMMANDS = Shape(
    "commands",
    {"session": "VARCHAR", "user": "VARCHAR", "command": "VARCHAR", "seen_at": "DOUBLE"},
    order_by=("session", "seen_at"),
    time="seen_at",
)
STANDING = Shape(
    "usage_standing",
    {
        "node_id": "VARCHAR",
        "seen": "DOUBLE",
        "notes": "VARCHAR",
        **dict.fromkeys(KEY_COLUMNS[1:], "VARCHAR"),
        "opened_at": "DOUBLE",
        "last": "DOUBLE",
    },
    time="seen",
)
"""Where counting goes on after a restart: rows of nodes, with notes; of open stays, with a uuid; of the erased."""
SHAPES = (USAGE, DAYS, COMMANDS, STANDING)


def coded(values: Sequence[str | None]) -> Coded:
    """Write strings as positions in a list of the different ones."""
    known: dict[str, int] = {}
    codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
    return Coded(np.array(codes, np.int32), list(known))


def key_columns(keys: Sequence[SessionKey]) -> dict[str, Sortable]:
    """Give the columns that say whose stays these are."""
    columns: dict[str, Sortable] = {
        name: coded([key[place] for key in keys])  # type: ignore[misc]
        for place, name in enumerate(KEY_COLUMNS)
    }
    columns["opened_at"] = np.array([key.opened_at for key in keys], np.float64)
    return columns


def row_columns(rows: Rows, as_strings: Callable[[Coded], Any] = lambda column: column) -> dict[str, Any]:
    """Give the columns of table ``usage``; ``as_strings`` makes of positions in a list what is wanted."""
    stays = list(dict.fromkeys(rows.keys))
    position = {key: place for place, key in enumerate(stays)}
    stay = np.array([position[key] for key in rows.keys], np.int64)
    columns: dict[str, Any] = {"session": as_strings(_spread(coded([_id_of(key) for key in stays]), stay))}
    for name, column in key_columns(stays).items():
        columns[name] = as_strings(_spread(column, stay)) if isinstance(column, Coded) else column[stay]
    columns |= {"slot": rows.slot, "slot_seconds": np.full(len(rows.slot), SLOT_SECONDS, np.int32)}
    columns |= {"first": rows.first, "last": rows.last}
    columns |= {name: rows.measures[:, place] for place, name in enumerate(USE_MEASURES)}
    return columns


@lru_cache(maxsize=2**16)
def _id_of(key: SessionKey) -> str:
    return key.id


def _spread(column: Coded, rows: NDArray[np.int64]) -> Coded:
    return Coded(column.codes[rows], column.values)
