"""The units of every number we keep, each with the range outside of which a value is a sentinel or a lie."""

from typing import Annotated

from msgspec import Meta

__all__ = [
    "Bytes",
    "BytesPerSecond",
    "Celsius",
    "Count",
    "Hertz",
    "Joules",
    "Level",
    "Load",
    "Ratio",
    "Seconds",
    "Timestamp",
    "Watts",
]


def _unit(name: str, low: float, high: float) -> Meta:
    return Meta(ge=low, le=high, extra={"unit": name}, extra_json_schema={"x-unit": name})


Ratio = Annotated[float, _unit("ratio", 0, 1)]
Load = Annotated[float, _unit("cores", 0, 1e6)]
"""How many cores' worth of work: 1.0 is one core fully used."""
Bytes = Annotated[int, _unit("bytes", 0, 2**53)]
BytesPerSecond = Annotated[float, _unit("bytes/second", 0, 2**53)]
Celsius = Annotated[float, _unit("celsius", -60, 250)]
Watts = Annotated[float, _unit("watts", 0, 100_000)]
Hertz = Annotated[float, _unit("hertz", 0, 1e12)]
Joules = Annotated[float, _unit("joules", 0, 1e15)]
Seconds = Annotated[float, _unit("seconds", 0, 1e10)]
Timestamp = Annotated[float, _unit("unix seconds", 0, 1e11)]
Count = Annotated[int, _unit("count", 0, 2**53)]
Level = Annotated[int, _unit("level", 0, 2**31)]
"""A small number with a meaning of its own (a performance state, a set of flags)."""
