"""Rows of a report: sums by key, and how many users, devices and stays are behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import USE_MEASURES, Floats
from gpuherd.history.tables.engine import Columns
from gpuherd.history.usage.answers import UseRow, UseSums
from gpuherd.history.usage.counting import JOULES
from gpuherd.history.usage.view import KeysOf

__all__ = ["MAX_ROWS", "table_rows"]

MAX_ROWS = 10_000


def table_rows(
    summed: Columns, totals: Columns, stays: Columns, keys_of: KeysOf | None, limit: int
) -> tuple[tuple[UseRow, ...], UseRow, int]:
    """Make rows, most first, the totals, and the number of rows beyond the most that are given.

    ``summed``: by ``key`` with its ``code``, and ``type``; without ``keys_of``, only the largest. ``totals``: all by
    ``type``. ``stays``: each stay once, with the codes of its ``user``, ``device`` and key.
    """
    measures = np.column_stack([summed[name].astype(np.float64) for name in USE_MEASURES])
    codes, places = np.unique(summed["code"], return_inverse=True)
    own_names = np.empty(len(codes), object)
    own_names[places] = summed["key"]
    # From what was asked by to what is told by: the same, or what users are counted as.
    if keys_of is None:
        names: list[Any] = own_names.tolist()
        of_own = [np.array([place]) for place in range(len(names))]
    else:
        known: dict[Any, int] = {}
        of_own = [
            np.array([known.setdefault(key, len(known)) for key in dict.fromkeys(keys_of(own))], np.int64)
            for own in own_names.tolist()
        ]
        names = list(known)
    row, key = _spread(of_own, places)
    types, type_ = np.unique(summed["type"].astype(str), return_inverse=True)
    by_key = _added_up(measures[row], key * len(types) + type_[row], len(names) * len(types))
    by_key = by_key.reshape(len(names), len(types), len(USE_MEASURES))
    whole = _joined(by_key)
    listed = np.flatnonzero(np.isin(stays["code"], codes))
    stay, stay_key = _spread(of_own, np.searchsorted(codes, stays["code"][listed]))
    stay = listed[stay]
    counts = np.column_stack(
        [
            _distinct(stay_key, stays["user"][stay], len(names)),
            _distinct(stay_key, stays["device"][stay], len(names)),
            np.bincount(stay_key, minlength=len(names)),
        ]
    )
    order = np.argsort(-whole[:, 1], kind="stable")
    rows = tuple(
        UseRow(names[at], UseSums.of(whole[at]), _typed(by_key[at], types), *counts[at].tolist())
        for at in order[:limit].tolist()
    )
    every_type = np.column_stack([totals[name].astype(np.float64) for name in USE_MEASURES])
    total = UseSums.of(_joined(every_type[None])[0]) if len(every_type) else UseSums()
    everyone = (len(np.unique(stays["user"])), len(np.unique(stays["device"])), len(stays["stay"]))
    whole_count = len(names) if keys_of is not None else len(np.unique(stays["code"]))
    typed = _typed(every_type, totals["type"])
    return rows, UseRow(None, total, typed, *everyone), max(0, whole_count - len(rows))


def _spread(
    of_own: Sequence[NDArray[np.int64]], own: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give rows as often as they count, and what they count as."""
    lengths = np.array([len(keys) for keys in of_own], np.int64)
    starts = np.cumsum(lengths) - lengths
    joined = np.concatenate(of_own) if of_own else np.empty(0, np.int64)
    times = lengths[own]
    rows = np.repeat(np.arange(len(own)), times)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, joined[starts[own][rows] + within].astype(np.int64)


def _added_up(measures: Floats, place: NDArray[np.int64], size: int) -> Floats:
    """Add rows up by place; energy that none of them told is NaN."""
    sums: Floats = np.column_stack(
        [np.bincount(place, np.nan_to_num(measures[:, at]), size) for at in range(measures.shape[1])]
    ).astype(np.float64, copy=False)
    told = np.bincount(place, ~np.isnan(measures[:, JOULES]), size) > 0
    sums[~told, JOULES] = np.nan
    return sums


def _joined(by_type: Floats) -> Floats:
    sums: Floats = np.nan_to_num(by_type).sum(axis=1)
    sums[np.isnan(by_type[:, :, JOULES]).all(axis=1), JOULES] = np.nan
    return sums


def _distinct(key: NDArray[np.int64], what: NDArray[Any], size: int) -> NDArray[np.int64]:
    _, codes = np.unique(what, return_inverse=True)
    pairs = np.unique(key * (int(codes.max(initial=0)) + 1) + codes)
    return np.bincount(pairs // (int(codes.max(initial=0)) + 1), minlength=size)


def _typed(measures: Floats, types: NDArray[Any]) -> dict[str, UseSums]:
    used = np.flatnonzero(measures[:, 0] > 0).tolist()
    return {str(types[at]): UseSums.of(measures[at]) for at in used}
