"""Numbers by row, in plain lists: no further package is needed, and a tick is written in one go."""

from __future__ import annotations

from collections.abc import Iterable

from gpuherd.client.live_messages import Numbers

__all__ = ["NumberColumns"]


class NumberColumns:
    """Numbers by row; none is unknown."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._columns: dict[str, Numbers] = {name: [] for name in names}
        self._all: list[int] = []

    def __getitem__(self, name: str) -> Numbers:
        return self._columns[name]

    def make_room(self, rows: int) -> None:
        """Have at least so many rows."""
        missing = rows - len(self._all)
        if missing > 0:
            self._all = list(range(rows))
            for column in self._columns.values():
                column.extend([None] * missing)

    def write(self, told: object, names: Iterable[str], rows: list[int]) -> None:
        """Take columns out of a message; one that an older hub does not tell stays unknown."""
        if not rows:
            return
        is_all = rows == self._all
        for name in names:
            values: Numbers = getattr(told, name)
            if len(values) != len(rows):
                continue
            column = self._columns[name]
            if is_all:
                column[:] = values
            else:
                for row, value in zip(rows, values, strict=True):
                    column[row] = value

    def clear(self, row: int) -> None:
        """Forget one row."""
        for column in self._columns.values():
            if row < len(column):
                column[row] = None

    def get(self, name: str, row: int) -> float | None:
        """Give a number; none also if there is no such row."""
        column = self._columns[name]
        return column[row] if row < len(column) else None
