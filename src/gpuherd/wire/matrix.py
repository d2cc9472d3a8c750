"""Samples as number matrices: rows of little-endian float64, NaN for unknown.

NaN never leaves this representation: packing writes it for ``None`` and unpacking gives ``None`` back.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from gpuherd.model.columns import COLUMNS, Column
from gpuherd.model.errors import Refused
from gpuherd.wire.frames import Layout

__all__ = ["CELL_BYTES", "LAYOUT", "pack", "pack_numbers", "unpack", "unpack_numbers"]

CELL_BYTES = 8
LAYOUT = Layout(**{part: tuple(column.name for column in columns) for part, columns in COLUMNS.items()})
"""The columns this version sends, in order."""

_NAN = float("nan")
S = TypeVar("S", bound=Struct)


def pack_numbers(values: Iterable[float | None]) -> bytes:
    """Write numbers as float64; ``None`` becomes NaN."""
    cells = array("d", [_NAN if value is None else value for value in values])
    if sys.byteorder == "big":
        cells.byteswap()
    return cells.tobytes()


def unpack_numbers(data: bytes) -> list[float | None]:
    """Read float64 cells; NaN and the infinities become ``None``."""
    if len(data) % CELL_BYTES:
        raise Refused(
            "matrix_misshapen", f"a matrix of {len(data)} bytes does not consist of {CELL_BYTES}-byte cells"
        )
    cells = array("d")
    cells.frombytes(data)
    if sys.byteorder == "big":
        cells.byteswap()
    return [value if value - value == 0 else None for value in cells]


def pack(samples: Sequence[Struct]) -> bytes:
    """Write sample structs of one kind as a matrix, one row each, columns in declaration order."""
    return pack_numbers([value for sample in samples for value in msgspec.structs.astuple(sample)])


def unpack(
    data: bytes, names: Sequence[str], kind: type[S], columns: Sequence[Column], rows: int
) -> tuple[S, ...]:
    """Read ``rows`` sample structs from a matrix whose columns are ``names``.

    Columns that ``kind`` does not have are ignored, those it misses stay unknown, and values outside of a column's
    bounds become unknown. Raises ``Refused`` when the size does not fit.
    """
    cells = unpack_numbers(data)
    if len(cells) != rows * len(names):
        raise Refused(
            "matrix_misshapen",
            f"a matrix has {len(cells)} cells where {rows} rows of {len(names)} were announced",
        )
    position = {name: index for index, name in reversed(list(enumerate(names)))}
    wanted = [(position[column.name], column) for column in columns if column.name in position]
    samples = []
    for start in range(0, len(cells), len(names)) if names else range(0):
        values: dict[str, float | int] = {}
        for offset, column in wanted:
            value = cells[start + offset]
            if value is not None and column.low <= value <= column.high:
                values[column.name] = int(value) if column.is_integer else value
        samples.append(kind(**values))
    return tuple(samples) if names else tuple(kind() for _ in range(rows))
