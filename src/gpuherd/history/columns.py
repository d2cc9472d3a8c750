"""Columns of numbers as few bytes, without losing a bit: one number if all are the same, whole numbers of a unit if
they are, runs of the same, else as they are.

Cheap rather than small: what is written here lives for an hour. Ratios are percents, power milliwatts, clocks
megahertz and memory kibibytes on nearly every card, so most columns shrink to one to four bytes a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Floats

__all__ = ["UNITS", "Packed", "pack", "pack_all", "pack_codes", "pack_runs", "unpack", "unpack_codes"]

Packed = tuple[int, float, bytes]
"""How it is written, the unit, and the bytes."""

SAME, RUNS, AS_IS, COUNTED = range(4)
"""All the same; neighbours the same; eight bytes each; 0, 1, 2… Whole numbers: ``WHOLE`` and the bytes of each."""
WHOLE = 10

UNITS: dict[str, tuple[float, ...]] = {
    "ratio": (-100.0, -10_000.0),
    "cores": (-100.0,),
    "bytes": (1024.0,),
    "bytes/second": (1024.0,),
    "celsius": (1.0, -10.0),
    "watts": (-1000.0,),
    "hertz": (1e6,),
    "count": (1.0,),
    "level": (1.0,),
    "seconds": (1.0, -100.0),
}
"""Units to try, by what the column is measured in: a number is so many times the unit; below 0, such parts of one."""

_WIDTHS = (1, 2, 4)


def pack(values: Floats, units: tuple[float, ...] = ()) -> Packed:
    """Write numbers; NaN is unknown and stays it."""
    return pack_all(values[np.newaxis], [units])[0]


def pack_all(columns: Floats, units: Sequence[tuple[float, ...]]) -> list[Packed]:
    """Write columns, each a row of the matrix, with the units to try for it.

    All of them at once: columns are short, and to look at each by itself takes longer than to look at all numbers.
    """
    if columns.shape[1] == 0:
        return [(AS_IS, 0.0, b"")] * len(columns)
    unknown = np.isnan(columns)
    is_same = (columns == columns[:, :1]).all(axis=1) | unknown.all(axis=1)
    packed: dict[int, Packed] = {
        place: (SAME, 0.0, columns[place, :1].astype("<f8").tobytes())
        for place in np.flatnonzero(is_same).tolist()
    }
    for turn in range(max(map(len, units))):
        places = [place for place, own in enumerate(units) if place not in packed and len(own) > turn]
        tried = [units[place][turn] for place in places]
        for place, unit, written in zip(
            places, tried, _whole(columns[places], unknown[places], tried), strict=True
        ):
            if written is not None:
                packed[place] = (WHOLE + written.itemsize, unit, written.tobytes())
    return [
        packed.get(place) or (AS_IS, 0.0, columns[place].astype("<f8").tobytes())
        for place in range(len(columns))
    ]


def _whole(
    columns: Floats, unknown: NDArray[np.bool_], units: Sequence[float]
) -> Iterator[NDArray[Any] | None]:
    """Give each column as whole numbers of its unit; none if they are not, or too large."""
    if not len(columns):
        return
    by = np.array(units)[:, np.newaxis]
    unit, parts = np.where(by > 0, by, 1.0), np.where(by < 0, -by, 1.0)
    with np.errstate(over="ignore"):
        whole = np.rint(columns / unit * parts)
    is_exact: list[bool] = np.logical_or(whole * unit / parts == columns, unknown).all(axis=1).tolist()
    lows = np.fmin.reduce(whole, axis=1).tolist()
    highs = np.fmax.reduce(whole, axis=1).tolist()
    has_unknown = np.flatnonzero(unknown.any(axis=1)).tolist()
    for place, (low, high) in enumerate(zip(lows, highs, strict=True)):
        width = next((width for width in _WIDTHS if low >= 0 and high < 256**width - 1), None)
        if width is None or not is_exact[place]:
            yield None
            continue
        if place in has_unknown:
            whole[place, unknown[place]] = 256**width - 1
        yield whole[place].astype(f"<u{width}")


def pack_runs(values: Floats) -> Packed:
    """Write numbers of which neighbours are often the same, such as times."""
    if len(values) == 0:
        return AS_IS, 0.0, b""
    if _is_same(values):
        return SAME, 0.0, values[:1].astype("<f8").tobytes()
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    if 2 * len(starts) > len(values):
        return AS_IS, 0.0, values.astype("<f8").tobytes()
    lengths = np.diff(starts, append=len(values)).astype("<u4")
    return RUNS, float(len(starts)), lengths.tobytes() + values[starts].astype("<f8").tobytes()


def unpack(packed: Packed, length: int) -> Floats:
    """Read ``length`` numbers; ``ValueError`` if they are not that many."""
    kind, unit, content = packed
    if kind == SAME:
        return np.full(length, np.frombuffer(content, "<f8", 1)[0])
    if kind == AS_IS:
        values = np.frombuffer(content, "<f8").astype(np.float64)
    elif kind == RUNS:
        runs = int(unit)
        lengths = np.frombuffer(content, "<u4", runs)
        if int(lengths.sum(dtype=np.int64)) != length:
            raise ValueError("runs have an unexpected length")
        values = np.repeat(np.frombuffer(content, "<f8", runs, 4 * runs), lengths).astype(np.float64)
    elif kind - WHOLE in _WIDTHS:
        cells = np.frombuffer(content, f"<u{kind - WHOLE}")
        values = _times(cells.astype(np.float64), unit)
        values[cells == 256 ** (kind - WHOLE) - 1] = np.nan
    else:
        raise ValueError("unknown number encoding")
    if len(values) != length:
        raise ValueError("unexpected number of values")
    return values


def pack_codes(codes: NDArray[Any]) -> Packed:
    """Write whole numbers from 0 on."""
    if len(codes) == 0:
        return AS_IS, 0.0, b""
    high = int(codes.max())
    if high == len(codes) - 1 and bool((codes == np.arange(len(codes))).all()):
        return COUNTED, 0.0, b""
    if int(codes.min()) == high:
        return SAME, float(high), b""
    width = next(width for width in _WIDTHS if high < 256**width)
    return WHOLE + width, 0.0, codes.astype(f"<u{width}").tobytes()


def unpack_codes(packed: Packed, length: int) -> NDArray[np.int64]:
    """Read ``length`` whole numbers; ``ValueError`` if they are not that many."""
    kind, same, content = packed
    if length == 0 or kind == COUNTED:
        return np.arange(length, dtype=np.int64)
    if kind == SAME:
        return np.full(length, int(same), dtype=np.int64)
    if kind - WHOLE not in _WIDTHS or len(content) != length * (kind - WHOLE):
        raise ValueError("unknown code encoding")
    return np.frombuffer(content, f"<u{kind - WHOLE}").astype(np.int64)


def _is_same(values: Floats) -> bool:
    first = values[0]
    return bool(np.isnan(values).all() if np.isnan(first) else (values == first).all())


def _times(whole: Floats, unit: float) -> Floats:
    return whole * unit if unit > 0 else whole / -unit
