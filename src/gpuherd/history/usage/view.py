# ruff: noqa: S608 - SQL is put together of names in this file only
"""Rows of use, in files and in memory, as one table that SQL is asked of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import USE_MEASURES
from gpuherd.history.tables.engine import Columns
from gpuherd.history.tables.tables import Answer, Part, Tables
from gpuherd.history.tables.writing import Coded
from gpuherd.history.usage.answers import UseFilter
from gpuherd.history.usage.book import OpenUse, UsageBook
from gpuherd.history.usage.rows import DAY_SECONDS, DAYS, USAGE, row_columns
from gpuherd.history.usage.slots import HOUR_SECONDS, SLOT_SECONDS, ceiled, floored
from gpuherd.history.usage.upkeep import HOURS_LEVEL, MERGED_LEVEL
from gpuherd.model.errors import Failed

__all__ = ["KeysOf", "Span", "UseView", "objects"]

KeysOf = Callable[[str | None], Sequence[str | None]]
"""From a user as nodes call it to the keys it is counted under: one for an alias, any number for groups."""

_ATTEMPTS = 8
_COLUMNS = ", ".join(f'"{name}"' for name in USAGE.columns)


class Span:
    """A range in whole slots, and the files and rows in memory that are in it."""

    def __init__(self, start: float, end: float, use: OpenUse, watched_from: float | None = None) -> None:
        hours_until = max(
            (s.partition + DAY_SECONDS for s in use.segments if s.level >= HOURS_LEVEL), default=-np.inf
        )
        self.start = floored(start, HOUR_SECONDS if start < hours_until else SLOT_SECONDS)
        self.end = ceiled(end, HOUR_SECONDS if end < hours_until else SLOT_SECONDS)
        self.use = use
        self.part = Part(
            USAGE.name,
            segments=tuple(s for s in use.segments if s.start < self.end and s.end >= self.start),
        )
        # Days that are wholly in the range have been added up; only what came after that has not.
        added_up = {
            s.partition
            for s in use.days
            if s.partition >= self.start and s.partition + DAY_SECONDS <= self.end
        }
        self.days = Part(DAYS.name, segments=tuple(s for s in use.days if s.partition in added_up))
        self.rest = Part(
            USAGE.name,
            segments=tuple(
                s for s in self.part.segments or () if s.partition not in added_up or s.level < MERGED_LEVEL
            ),
        )
        starts = [s.start for s in use.segments]
        starts += [float(use.rows.slot.min())] if len(use.rows) else []
        # Watching may have begun long before anyone came.
        starts += [] if watched_from is None else [watched_from]
        self.begins_at = min(starts, default=None)


class UseView:
    """What can be asked. From any thread."""

    def __init__(self, book: UsageBook, watched_from: Callable[[], float | None]) -> None:
        self._book = book
        self._tables: Tables = book.tables
        self._watched_from = watched_from

    def begins_at(self) -> float | None:
        """Tell from when on it is known who used what; none if nothing is."""
        return Span(0.0, 0.0, self._book.open_use(), self._watched_from()).begins_at

    def ask(
        self,
        questions: Sequence[str],
        start: float,
        end: float,
        where: UseFilter,
        *,
        arrays: Mapping[str, Columns] | None = None,
        by_days: bool = False,
        deadline: float,
    ) -> tuple[list[Answer], Span]:
        """Run SQL over ``{view}``: the rows of files and memory in a range that a filter lets through.

        All questions are about the same. ``by_days``: when within a day something was does not matter.
        """
        for _ in range(_ATTEMPTS):
            use = self._book.open_use()
            span = Span(start, end, use, self._watched_from())
            conditions, filters = _conditions(where)
            given: dict[str, Columns] = {**filters, **(arrays or {})}
            within = f"slot >= {int(span.start)} AND slot < {int(span.end)}{conditions}"
            view = f"SELECT {_COLUMNS} FROM {{rows}} WHERE {within}"
            parts = {"rows": span.part}
            if by_days:
                view += f" UNION ALL SELECT {_COLUMNS} FROM {{days}} WHERE {within}"
                parts = {"rows": span.rest, "days": span.days}
            if len(use.rows):
                given["open_rows"] = row_columns(use.rows, _objects_of)
                numbers = ", ".join(f"if(isnan({name}), NULL, {name}) AS {name}" for name in USE_MEASURES)
                view += f" UNION ALL SELECT * REPLACE ({numbers}) FROM open_rows WHERE {within}"
            answers = [
                self._tables.query(
                    sql.replace("{view}", view), parts, arrays=given, deadline_seconds=deadline
                )
                for sql in questions
            ]
            # Files may have taken the place of others meanwhile; then the questions were about neither.
            if self._book.is_current(use):
                missing = self._tables.missing(USAGE.name, span.start, span.end)
                return [Answer(answer.columns, missing) for answer in answers], span
        raise Failed("history: usage files keep being replaced; try again")


def _conditions(where: UseFilter) -> tuple[str, dict[str, Columns]]:
    conditions = ""
    tables: dict[str, Columns] = {}
    choices: dict[str, Collection[str | None] | None] = {
        "user": where.users,
        "node_id": where.nodes,
        "type": where.types,
        "job": where.jobs,
        "container": where.containers,
    }
    for column, chosen in choices.items():
        if chosen is not None:
            known = sorted(each for each in chosen if each is not None)
            tables[f"chosen_{column}"] = {"name": objects(known or [""])}
            inside = f'"{column}" IN (SELECT name FROM chosen_{column})' if known else "false"
            conditions += (
                f" AND ({inside}{f' OR {chr(34)}{column}{chr(34)} IS NULL' if None in chosen else ''})"
            )
    if where.devices is not None:
        devices = sorted(where.devices) or [("", "")]
        tables["chosen_devices"] = {
            "node": objects([node for node, _ in devices]),
            "device": objects([uuid for _, uuid in devices]),
        }
        conditions += " AND (node_id, uuid) IN (SELECT (node, device) FROM chosen_devices)"
    return conditions, tables


def objects(values: Sequence[str | None]) -> NDArray[Any]:
    """Make a column of strings."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _objects_of(column: Coded) -> NDArray[Any]:
    found: NDArray[Any] = objects([*column.values, None])[column.codes]
    return found
