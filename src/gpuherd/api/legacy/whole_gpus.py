"""Nodes as the older tools know them: whole GPUs with whole numbers in their units."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from gpuherd.fleet.views import DeviceView, NodeView, ProcessView

__all__ = ["WholeGpu", "local_time", "mebibytes", "percent", "rounded", "whole_gpus"]


class WholeGpu(NamedTuple):
    """A GPU with all processes on it, those on its slices included."""

    device: DeviceView
    processes: tuple[ProcessView, ...]


def whole_gpus(node: NodeView) -> list[WholeGpu]:
    """List a node's GPUs. The older tools know no slices, so these show as processes on what they are cut from."""
    on_slices: dict[str, list[ProcessView]] = {}
    for device in node.devices:
        if device.facts.parent_uuid is not None:
            on_slices.setdefault(device.facts.parent_uuid, []).extend(device.processes)
    return [
        WholeGpu(device, (*device.processes, *on_slices.get(device.facts.uuid, ())))
        for device in node.devices
        if device.facts.kind == "gpu"
    ]


def mebibytes(size_bytes: int | None) -> int | None:
    """Give bytes as whole MiB."""
    return None if size_bytes is None else size_bytes // 2**20


def percent(ratio: float | None) -> int | None:
    """Give a share of 1 in percent."""
    return None if ratio is None else round(ratio * 100)


def rounded(value: float | None) -> int | None:
    """Give a whole number."""
    return None if value is None else round(value)


def local_time(moment: float) -> str:
    """Give a time as the older tools write it: ISO 8601, local, without a zone."""
    return datetime.fromtimestamp(moment).astimezone().replace(tzinfo=None).isoformat()
