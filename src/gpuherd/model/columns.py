"""Samples as columns: the names, units and bounds of a sample struct's fields, read from their declaration."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostSample
from gpuherd.model.processes import ProcessSample, UseSample

__all__ = ["COLUMNS", "Column", "columns_of"]


class Column(Struct, frozen=True):
    """One number of a sample."""

    name: str
    unit: str
    description: str
    low: float
    high: float
    is_integer: bool


def _metas(annotation: Any) -> list[msgspec.Meta]:
    found = list(getattr(annotation, "__metadata__", ()))
    for part in getattr(annotation, "__args__", ()):
        found += _metas(part)
    return found


def _bases(annotation: Any) -> set[Any]:
    parts = getattr(annotation, "__args__", ())
    return {annotation}.union(*(_bases(part) for part in parts)) if parts else {annotation}


def columns_of(sample: type[Struct]) -> tuple[Column, ...]:
    """List the fields of a sample struct as columns, in the order of declaration."""
    hints = get_type_hints(sample, include_extras=True)
    columns = []
    for name in sample.__struct_fields__:
        metas = _metas(hints[name])
        unit = next(m for m in metas if m.extra and "unit" in m.extra)
        description = next(m.description for m in metas if m.description)
        if unit.extra is None or unit.ge is None or unit.le is None:
            raise TypeError(f"{sample.__name__}.{name} lacks a unit with bounds")
        columns.append(
            Column(
                name,
                unit.extra["unit"],
                description,
                float(unit.ge),
                float(unit.le),
                int in _bases(hints[name]),
            )
        )
    return tuple(columns)


COLUMNS = {
    "host": columns_of(HostSample),
    "devices": columns_of(DeviceSample),
    "processes": columns_of(ProcessSample),
    "uses": columns_of(UseSample),
}
"""The parts of a sample that travel and are kept as number matrices, one row a host, device, process or use."""
