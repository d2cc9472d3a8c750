"""Which numbers viewers are told, in which unit, and how finely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuherd.fleet.rows import DEVICE_COLUMN, HOST_COLUMN, Array
from gpuherd.model.columns import COLUMNS

__all__ = [
    "DETAILS",
    "DEVICES",
    "HOSTS",
    "HOST_DETAILS",
    "PROCESSES",
    "STEP",
    "USES",
    "Numbers",
    "StreamColumn",
    "differs",
    "named_numbers",
    "numbers",
    "visible",
    "visible_matrix",
]

Numbers = list[float | None]
MEBIBYTE = 2.0**20
MEGAHERTZ = 1e6
STEP = {"ratio": 0.01, "bytes": MEBIBYTE, "hertz": MEGAHERTZ, "seconds": 60.0, "cores": 0.05}
"""What a viewer can tell apart, by unit; all else is rounded to whole numbers."""


class StreamColumn(NamedTuple):
    """One number of the stream."""

    source: str
    name: str
    unit: float
    """What one of the stream's unit is in the model's."""
    step: float
    """In the stream's unit."""
    place: int
    """Column in the rows; -1 where there are no rows."""
    low: float
    high: float


def _columns(part: str, names: dict[str, tuple[str, float]] | tuple[str, ...]) -> tuple[StreamColumn, ...]:
    known = {column.name: column for column in COLUMNS[part]}
    places = {"devices": DEVICE_COLUMN, "host": HOST_COLUMN}.get(part, {})
    wanted = names if isinstance(names, dict) else {name: (name, 1.0) for name in names}
    return tuple(
        StreamColumn(
            source=source,
            name=name,
            unit=unit,
            step=STEP.get(known[source].unit, 1.0) / unit,
            place=places.get(source, -1),
            low=known[source].low,
            high=known[source].high,
        )
        for source, (name, unit) in wanted.items()
    )


DEVICES = _columns(
    "devices",
    {
        "utilization_gpu": ("utilization_gpu", 1.0),
        "utilization_memory": ("utilization_memory", 1.0),
        "memory_used_bytes": ("memory_used_mebibytes", MEBIBYTE),
        "temperature_celsius": ("temperature_celsius", 1.0),
        "power_watts": ("power_watts", 1.0),
        "fan_ratio": ("fan_ratio", 1.0),
        "clock_sm_hertz": ("clock_sm_megahertz", MEGAHERTZ),
    },
)
DETAILS = _columns(
    "devices", ("power_limit_watts", "performance_state", "throttle_reasons", "ecc_uncorrected")
)
HOSTS = _columns(
    "host",
    {
        "cpu_ratio": ("cpu_ratio", 1.0),
        "load_1m": ("load_1m", 1.0),
        "memory_used_bytes": ("memory_used_mebibytes", MEBIBYTE),
    },
)
HOST_DETAILS = _columns("host", ("swap_used_bytes", "uptime_seconds"))
USES = _columns("uses", ("gpu_memory_bytes", "utilization_sm"))
PROCESSES = _columns("processes", ("cpu_cores", "memory_bytes"))


def _rounded(values: Array, columns: tuple[StreamColumn, ...]) -> Array:
    steps = np.array([column.step for column in columns])
    units = np.array([column.unit for column in columns])
    rounded: Array = np.round(np.round(values / units / steps) * steps, 6)
    return rounded


def visible(values: Array, columns: tuple[StreamColumn, ...]) -> Array:
    """Pick columns out of the rows, in the stream's units, as finely as can be seen."""
    return _rounded(values[:, [column.place for column in columns]], columns)


def visible_matrix(
    matrix: bytes, rows: int, names: tuple[str, ...], columns: tuple[StreamColumn, ...]
) -> Array:
    """Read a matrix that was kept as it came; columns that the node does not send are unknown."""
    source = np.frombuffer(matrix, dtype="<f8").reshape(rows, len(names))
    values = np.full((rows, len(columns)), np.nan)
    for place, column in enumerate(columns):
        if column.source in names:
            found = source[:, names.index(column.source)]
            with np.errstate(invalid="ignore"):
                values[:, place] = np.where((found >= column.low) & (found <= column.high), found, np.nan)
    return _rounded(values, columns)


def differs(new: Array, old: Array) -> Array:
    """Tell the rows in which any value differs from what was told; those never told differ."""
    rows = np.ones(len(new), dtype=np.bool_)
    if not len(old):
        return rows
    same = (new[: len(old)] == old) | (np.isnan(new[: len(old)]) & np.isnan(old))
    rows[: len(old)] = ~same.all(axis=1)
    return rows


def numbers(values: Array, *, is_whole: bool = False) -> Numbers:
    """Give a column as a list; unknown becomes none, whole numbers lose their decimal point."""
    is_known = ~np.isnan(values)
    # Most columns are known of all or of none, and then need not be looked at one by one.
    if is_known.all():
        listed: Numbers = (values.astype(np.int64) if is_whole else values).tolist()
        return listed
    if not is_known.any():
        return [None] * len(values)
    if is_whole:
        return [int(value) if value == value else None for value in values.tolist()]  # noqa: PLR0124 - NaN is not itself
    return [value if value == value else None for value in values.tolist()]  # noqa: PLR0124


def named_numbers(block: Array, columns: tuple[StreamColumn, ...]) -> dict[str, Numbers]:
    """Give the columns of a block by their names in the stream."""
    return {
        column.name: numbers(block[:, place], is_whole=column.step >= 1)
        for place, column in enumerate(columns)
    }
