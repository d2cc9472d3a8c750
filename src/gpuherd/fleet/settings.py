"""When a device counts as busy, held, stale or offline, and under which names things are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Label
from gpuherd.model.units import Bytes, Ratio

__all__ = ["AvailabilitySettings", "DisplaySettings", "PrivacySettings"]

PositiveSeconds = Annotated[float, Meta(gt=0, le=1e7)]


class AvailabilitySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[availability]`` table of gpuherd.toml."""

    busy_utilization: Annotated[
        Ratio, Meta(description="A device with at least this utilisation is busy.")
    ] = 0.05
    busy_memory: Annotated[
        Ratio, Meta(description="A device with more than this share of its memory in use is in use.")
    ] = 0.02
    busy_memory_bytes: Annotated[
        Bytes,
        Meta(
            description="A device is also in use if more memory than this is used without a visible "
            "process, however small the share: 2 % of 192 GB is 3.8 GB, enough for a whole "
            "job. Not applied if the driver counts its own reserve as used."
        ),
    ] = 512 * 2**20
    idle_window_seconds: Annotated[
        PositiveSeconds,
        Meta(
            description="Length of the rolling window, in seconds. A device in use that hardly computed in it "
            "is held idle."
        ),
    ] = 600.0
    idle_work_share: Annotated[
        Ratio,
        Meta(description="A device that computes for up to this share of the window is still held idle."),
    ] = 0.02
    stale_after_intervals: Annotated[
        float, Meta(gt=1, le=1000, description="A node that has missed this many reports is stale.")
    ] = 3.0
    offline_after_seconds: Annotated[
        PositiveSeconds, Meta(description="A node without a report for this long is offline, in seconds.")
    ] = 60.0


class DisplaySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[display]`` table of gpuherd.toml: display names and order. They do not change ids."""

    nodes: Annotated[
        dict[str, Label],
        Meta(description="Display names of nodes, by the name in the list or the node's id."),
    ] = {}
    order: Annotated[
        tuple[str, ...],
        Meta(
            description="Nodes that come first, in this order; patterns such as a100-* match several. The others "
            "follow by name."
        ),
    ] = ()
    keep_list_order: Annotated[
        bool | None,
        Meta(
            description="Nodes of a list keep its order instead of being sorted by name. Default: only if a "
            "config.ini lists them."
        ),
    ] = None
    short_node_names: Annotated[
        bool,
        Meta(
            description="Show gpu01.example.org as gpu01. Nodes in `nodes` keep that name, and IP "
            "addresses are not shortened. Hosts with the same first label get the same name."
        ),
    ] = False
    gpus: Annotated[dict[str, Label], Meta(description="Short names of GPUs, by the driver's name.")] = {}
    users: Annotated[
        dict[str, Label],
        Meta(description="Aliases of users: a user name on the nodes, and the user it belongs to."),
    ] = {}
    aliases_file: Annotated[
        Path | None,
        Meta(description="File with more aliases, in lines `alias1,alias2,user # comment`."),
    ] = None


class PrivacySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[privacy]`` table of gpuherd.toml: what people see of each other."""

    command_lines: Annotated[
        Literal["owner", "members"],
        Meta(
            description="Who can read the full command line of a process: its owner and admins (owner), or "
            "everyone who sees names (members). The others see the program's name."
        ),
    ] = "owner"
