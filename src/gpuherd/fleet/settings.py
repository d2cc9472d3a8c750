"""When a device counts as busy, held, stale or offline."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gpuherd.model.units import Ratio

__all__ = ["AvailabilitySettings"]

PositiveSeconds = Annotated[float, Meta(gt=0, le=1e7)]


class AvailabilitySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[availability]`` table of gpuherd.toml."""

    busy_utilization: Annotated[
        Ratio, Meta(description="A device at or above this utilisation is at work.")
    ] = 0.05
    busy_memory: Annotated[
        Ratio, Meta(description="A device with more than this share of its memory in use is taken.")
    ] = 0.02
    idle_window_seconds: Annotated[
        PositiveSeconds, Meta(description="A taken device without work for this long is held idle.")
    ] = 600.0
    stale_after_intervals: Annotated[
        float, Meta(gt=1, le=1000, description="A node that misses this many reports is stale.")
    ] = 3.0
    offline_after_seconds: Annotated[
        PositiveSeconds, Meta(description="A node silent for this long is offline.")
    ] = 60.0
