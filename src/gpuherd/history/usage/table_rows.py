# ruff: noqa: S608 - SQL is put together of names in this file only
"""Rows of a report: sums by key, and how many users, devices and stays are behind each.

The engine adds up and counts. What is handled one by one here is bounded, however many users and jobs nodes make up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuherd.history.batch import USE_MEASURES
from gpuherd.history.tables.engine import Columns
from gpuherd.history.usage.answers import UseRow, UseSums
from gpuherd.history.usage.counting import JOULES
from gpuherd.history.usage.view import KeysOf, objects
from gpuherd.model.history import UsageKey

__all__ = [
    "KEY_SQL",
    "MAX_ROWS",
    "MAX_USERS",
    "SUMS",
    "TOTALS",
    "KeyPlaces",
    "UsedKeys",
    "key_places",
    "largest_users",
    "table_rows",
]

MAX_ROWS = 10_000
MAX_USERS = 50_000
"""Users who are looked at one by one, those with most GPU-hours; all others are in totals only."""

KEY_SQL: Mapping[UsageKey, str] = {
    "user": '"user"',
    "group": '"user"',
    "node": "node_id",
    "type": "type",
    "job": "job",
    "device": "(node_id || chr(0) || uuid)",
}
SUMS = ", ".join(f"sum({name}) AS {name}" for name in USE_MEASURES)


class KeyPlaces(NamedTuple):
    """What users are counted as."""

    keys: list[str | None]
    table: Columns
    """Which users (``name``) have which of the keys (``place``)."""


def largest_users(limit: int) -> str:
    """Ask who used most, and how many ``people`` there are in all."""
    return (
        'SELECT "user" AS name, count(*) OVER () AS people FROM '
        '(SELECT "user", sum(gpu_seconds) AS gpu FROM ({view}) GROUP BY "user") '
        f"ORDER BY gpu DESC, name LIMIT {limit:d}"
    )


def key_places(users: Sequence[str | None], keys_of: KeysOf) -> KeyPlaces:
    """Number the keys that these users are counted under."""
    known: dict[str | None, int] = {}
    names: list[str | None] = []
    places: list[int] = []
    for user in users:
        for key in dict.fromkeys(keys_of(user)):
            names.append(user)
            places.append(known.setdefault(key, len(known)))
    # A table of nothing has no columns of their kinds: one row that is nobody's.
    table = {"name": objects(names or [None]), "place": np.array(places or [-1], np.int64)}
    return KeyPlaces(list(known), table)


class UsedKeys(NamedTuple):
    """Use with the key that it counts under, in SQL: ``place`` stands for the key."""

    view: str

    @classmethod
    def of(cls, by: UsageKey, *, is_placed: bool) -> UsedKeys:
        """``is_placed``: users count as the array ``key_places`` says."""
        if is_placed:
            return cls(
                "SELECT used.*, place, NULL::VARCHAR AS name FROM ({view}) AS used "
                'JOIN key_places ON used."user" IS NOT DISTINCT FROM key_places.name WHERE place >= 0'
            )
        # That two keys of a report have the same hash of 64 bits does not happen.
        return cls(f"SELECT *, hash({KEY_SQL[by]}) AS place, {KEY_SQL[by]} AS name FROM ({{view}})")

    def rows(self, limit: int) -> str:
        """Ask for the largest keys, by type, with what is behind each."""
        return (
            f"WITH sums AS MATERIALIZED (SELECT place, any_value(name) AS name, type, {SUMS} FROM ({self.view}) "
            "GROUP BY place, type), "
            "most AS MATERIALIZED (SELECT place, sum(gpu_seconds) AS gpu, count(*) OVER () AS places FROM sums "
            f"GROUP BY place ORDER BY gpu DESC, place LIMIT {limit:d}), "
            'stays AS (SELECT DISTINCT place, hash(session) AS stay, hash("user") AS who, '
            f"hash(node_id, uuid) AS device FROM ({self.view}) WHERE place IN (SELECT place FROM most)), "
            "counts AS (SELECT place, count(DISTINCT who) AS users, count(DISTINCT device) AS devices, "
            "count(DISTINCT stay) AS stays FROM stays GROUP BY place) "
            "SELECT sums.*, users, devices, stays, places FROM sums JOIN most USING (place) JOIN counts USING (place) "
            "ORDER BY gpu DESC, place, type"
        )


_COUNTS = (
    'SELECT count(DISTINCT hash("user")) AS users, count(DISTINCT hash(node_id, uuid)) AS devices, '
    "count(DISTINCT hash(session)) AS stays FROM ({view})"
)
TOTALS = (f"SELECT type, {SUMS} FROM ({{view}}) GROUP BY type", _COUNTS)


def table_rows(
    told: Columns, totals: Columns, counts: Columns, keys: Sequence[str | None] | None
) -> tuple[tuple[UseRow, ...], UseRow, int]:
    """Make rows of what ``UsedKeys.rows`` and ``TOTALS`` answer, and tell how many there would be.

    ``keys``: what places are called, if not as the rows say themselves.
    """
    places = told["place"].tolist()
    starts = [row for row, place in enumerate(places) if not row or places[row - 1] != place]
    by_type, joined = _summed(told, starts)
    types, names = told["type"].tolist(), told["name"].tolist()
    counted = [told[name].tolist() for name in ("users", "devices", "stays")]
    rows = tuple(
        UseRow(
            names[start] if keys is None else keys[places[start]],
            joined[number],
            _typed(by_type[start:end], types[start:end]),
            *(int(each[start]) for each in counted),
        )
        for number, (start, end) in enumerate(itertools.pairwise([*starts, len(places)]))
    )
    every_type, every = _summed(totals, [0] if len(totals["type"]) else [])
    total = UseRow(
        None,
        every[0] if every else UseSums(),
        _typed(every_type, totals["type"].tolist()),
        *(int(counts[name][0]) for name in ("users", "devices", "stays")),
    )
    return rows, total, int(told["places"][0]) if places else 0


def _summed(columns: Columns, starts: list[int]) -> tuple[list[UseSums], list[UseSums]]:
    """Give the sums of each line, and those of the lines from each start to the next."""
    measures = np.column_stack([columns[name].astype(np.float64) for name in USE_MEASURES])
    if not starts:
        return [], []
    joined = np.add.reduceat(np.nan_to_num(measures), starts, axis=0)
    is_told = np.logical_or.reduceat(~np.isnan(measures[:, JOULES]), starts)
    joined[~is_told, JOULES] = np.nan
    return [UseSums.of(line) for line in measures.tolist()], [UseSums.of(line) for line in joined.tolist()]


def _typed(by_type: Sequence[UseSums], types: Sequence[Any]) -> dict[str, UseSums]:
    return {str(kind): sums for kind, sums in zip(types, by_type, strict=True) if sums.held_seconds > 0}
