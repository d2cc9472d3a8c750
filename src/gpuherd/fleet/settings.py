"""When a device counts as busy, held, stale or offline, and under which names things are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Label
from gpuherd.model.units import Ratio

__all__ = ["AvailabilitySettings", "DisplaySettings", "PrivacySettings"]

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
        PositiveSeconds,
        Meta(description="A taken device that has hardly worked in this rolling window is held idle."),
    ] = 600.0
    idle_work_share: Annotated[
        Ratio,
        Meta(description="Up to this share of the window at work is a blip and leaves a device idle."),
    ] = 0.02
    stale_after_intervals: Annotated[
        float, Meta(gt=1, le=1000, description="A node that misses this many reports is stale.")
    ] = 3.0
    offline_after_seconds: Annotated[
        PositiveSeconds, Meta(description="A node silent for this long is offline.")
    ] = 60.0


class DisplaySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[display]`` table of gpuherd.toml: names and order for people; nothing is known by them."""

    nodes: Annotated[
        dict[str, Label], Meta(description="Shown names of nodes, by the name in the list or the node's id.")
    ] = {}
    order: Annotated[
        tuple[str, ...],
        Meta(
            description="Nodes that come first, in this order; patterns such as a100-* stand for several. "
            "The others follow by name."
        ),
    ] = ()
    keep_list_order: Annotated[
        bool, Meta(description="Nodes of a list keep its order instead of being sorted by name.")
    ] = False
    gpus: Annotated[
        dict[str, Label], Meta(description="Short names of GPUs, by the name that the driver gives.")
    ] = {}
    users: Annotated[
        dict[str, Label],
        Meta(description="Other names of the same person: what nodes call a user, and who it is."),
    ] = {}
    aliases_file: Annotated[
        Path | None,
        Meta(description="File with further lines `alias1,alias2,user # comment`."),
    ] = None


class PrivacySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[privacy]`` table of gpuherd.toml: what people see of each other."""

    command_lines: Annotated[
        Literal["owner", "members"],
        Meta(
            description="Who reads the full command line of a process: its owner and admins, or everyone who sees "
            "names. The others see the program's name."
        ),
    ] = "owner"
