"""What is kept of devices and hosts, how finely, and in which tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, HOST_METRICS, Floats
from gpuherd.history.tables.segments import Shape
from gpuherd.model.columns import COLUMNS, Column
from gpuherd.model.devices import DEVICE_STATES

__all__ = ["DEVICES", "HOSTS", "KINDS", "SHAPES", "Kind", "rounded"]

_PARTS = {"ratio": 1000, "cores": 100, "celsius": 10, "watts": 10}
"""Parts of the unit that are kept: what sensors resolve; beneath is only noise. Of others, whole numbers."""
_ROW_GROUP_ROWS = 69_632
"""Eight devices for a day: one device is read with little more than itself, and its columns still compress."""
_OPTIONS = "PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 4096"
"""With more values than this a dictionary is no gain: times take a tenth of the room when only their steps are kept."""


@dataclass(frozen=True)
class Kind:
    """Devices or hosts."""

    name: str
    metrics: tuple[str, ...]
    keys: tuple[str, ...]
    """Columns that say whose a row is."""
    states: tuple[str, ...]

    @cached_property
    def units(self) -> dict[str, str]:
        """Unit of each metric."""
        part: tuple[Column, ...] = COLUMNS["devices" if self.states else "host"]
        return {column.name: column.unit for column in part}

    def type_of(self, metric: str) -> str:
        """Type of the column that keeps a metric."""
        unit = self.units[metric]
        return "FLOAT" if unit in _PARTS else "INTEGER" if unit == "level" else "BIGINT"

    def mean_type_of(self, metric: str) -> str:
        """Type of the column that keeps its mean."""
        unit = self.units[metric]
        return "FLOAT" if unit in _PARTS or unit == "level" else "DOUBLE" if unit == "count" else "BIGINT"

    def parts_of(self, metric: str) -> int:
        """How many parts of the unit are told apart."""
        return _PARTS.get(self.units[metric], 1)

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns that tell subjects apart."""
        return tuple(key for key in self.keys if key != "type")

    @cached_property
    def raw(self) -> Shape:
        """Every sample."""
        columns = {"time": "TIMESTAMP_MS", **dict.fromkeys(self.keys, "VARCHAR")}
        columns |= {metric: self.type_of(metric) for metric in self.metrics}
        if self.states:
            columns["state"] = "UTINYINT"
        return self._shape("raw", columns)

    @cached_property
    def minute(self) -> Shape:
        """Least, mean and greatest of each minute."""
        return self._rollup("minute")

    @cached_property
    def quarter(self) -> Shape:
        """Least, mean and greatest of each quarter of an hour."""
        return self._rollup("quarter")

    def _rollup(self, suffix: str) -> Shape:
        columns = {"time": "TIMESTAMP_MS", **dict.fromkeys(self.keys, "VARCHAR"), "samples": "INTEGER"}
        for metric in self.metrics:
            columns[f"{metric}_mean"] = self.mean_type_of(metric)
            columns[f"{metric}_low"] = columns[f"{metric}_high"] = self.type_of(metric)
        columns |= {f"state_{state}": "FLOAT" for state in self.states}
        return self._shape(suffix, columns)

    def _shape(self, suffix: str, columns: dict[str, str]) -> Shape:
        return Shape(
            name=f"{self.name}_{suffix}",
            columns=columns,
            order_by=(*self.identity, "time"),
            unique_by=(*self.identity, "time"),
            row_group_rows=_ROW_GROUP_ROWS,
            options=_OPTIONS,
        )


DEVICES = Kind("devices", DEVICE_METRICS, ("node_id", "uuid", "type"), DEVICE_STATES)
HOSTS = Kind("hosts", HOST_METRICS, ("node_id",), ())
KINDS = (DEVICES, HOSTS)
SHAPES = tuple(shape for kind in KINDS for shape in (kind.raw, kind.minute, kind.quarter))


def rounded(values: Floats, parts: int) -> NDArray[np.float64]:
    """Round to parts of the unit."""
    return np.rint(values * parts) / parts if parts != 1 else np.rint(values)
