"""What is kept of the whole herd: sums that may be added up over types and time."""

from __future__ import annotations

from gpuherd.history.tables.segments import Shape
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.model.history import DISTRIBUTION_EDGES

__all__ = ["CLASSES", "HERD_SHAPES", "MINUTE", "QUARTER", "SUMS"]

CLASSES = len(DISTRIBUTION_EDGES) - 1
SUMS = (
    *(f"state_{state}" for state in DEVICE_STATES),  # device-seconds in each
    "state_not_judged",  # device-seconds that came late
    "utilization_seconds",  # utilisation × device-seconds
    "utilization_known_seconds",
    "power_joules",
    "power_known_seconds",
    "memory_used_byte_seconds",  # where the total is known too
    "memory_total_byte_seconds",
    *(f"in_use_{number}_seconds" for number in range(CLASSES)),  # GPU-seconds in use, by class of utilisation
    "covered_seconds",  # how much of the time anything is known of this type
    *(f"gpu_{state}" for state in DEVICE_STATES),  # GPU-seconds in each: a slice is a part of a GPU
    "gpu_not_judged",
)


def _shape(name: str) -> Shape:
    return Shape(
        name=name,
        columns={"time": "TIMESTAMP_MS", "type": "VARCHAR", **dict.fromkeys(SUMS, "DOUBLE")},
        order_by=("time", "type"),
        options="PARQUET_VERSION V2",
    )


MINUTE = _shape("herd_minute")
QUARTER = _shape("herd_quarter")
HERD_SHAPES = (MINUTE, QUARTER)
