"""Counts of attacks and faults, and the table that a test run prints of them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Tally", "table_of"]

_PROPERTY = "tally"
_HEAD = ["attack or fault", "tries", "held", "lost", "doubled", "misdated", "figure"]


class Tally:
    """Counts of one test. Add a row before you assert, so that a failed test has its row, too."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def add(
        self,
        what: str,
        *,
        tries: int,
        held: int,
        lost: int | None = None,
        doubled: int | None = None,
        misdated: int | None = None,
        figure: str = "",
    ) -> None:
        """Add a row: what was tried, how often, how often it held, and what of that which had been acknowledged is
        lost, there twice or at a wrong time. ``None``: the test does not count that.
        """
        counts = ["–" if count is None else str(count) for count in (lost, doubled, misdated)]
        self._properties.append((_PROPERTY, [what, str(tries), str(held), *counts, figure]))


def table_of(properties: Iterable[Iterable[tuple[str, object]]]) -> list[str]:
    """Return the lines of the table, none if no test has added a row."""
    rows = [
        [str(cell) for cell in value]
        for of_test in properties
        for name, value in of_test
        if name == _PROPERTY and isinstance(value, list)
    ]
    if not rows:
        return []
    rows = [_HEAD, *sorted(rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
