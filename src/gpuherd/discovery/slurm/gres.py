"""Generic resources as Slurm writes them: ``gpu:a100:8(S:0-1)``, ``gpu:8``, ``gpu:a100:2,gpu:v100:4``, ``(null)``."""

from __future__ import annotations

import re

from msgspec import Struct

__all__ = ["GpuResources", "parse_gres"]

_REMARK = re.compile(r"\([^()]*\)")
_SLICE = re.compile(r"\d+g\.\d+gb|^mig", re.IGNORECASE)
_MOST_GPUS = 512


class GpuResources(Struct, frozen=True):
    """``has_gpus``: any GPU is configured. ``count``: how many, None if it cannot be told."""

    has_gpus: bool
    count: int | None


def parse_gres(text: str) -> GpuResources:
    """Add up the GPUs of a node. Slices of GPUs are counted by Slurm, not by us: their number is unknown here."""
    total: int | None = None
    has_gpus = is_countable = False
    for entry in _REMARK.sub("", text).split(","):
        kind, *words = entry.strip().removeprefix("gres/").removeprefix("gres:").split(":")
        if kind != "gpu":
            continue
        if not has_gpus:
            has_gpus = is_countable = True
            total = 0
        last = words[-1] if words else ""
        count = int(last) if last.isascii() and last.isdigit() and len(last) <= 6 else 1
        if total is not None:
            total += count
        if any(_SLICE.search(word) for word in words[:1]):
            is_countable = False
    if not is_countable or total is None or total > _MOST_GPUS:
        total = None
    return GpuResources(has_gpus=has_gpus and total != 0, count=total)
