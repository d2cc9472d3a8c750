"""Herds as a client is told of them, put together by hand."""

from __future__ import annotations

from typing import Any

from gpuherd.client.herd_views import (
    Availability,
    Gpu,
    GpuBooking,
    GpuFacts,
    GpuSample,
    Herd,
    Node,
    UsingProcess,
)

GIB = 2**30
NOW = 1_794_848_531.0
"""Mon 2026-11-16 17:02:11 UTC."""


def using(*users: str | None, is_gone: bool = False, **values: Any) -> tuple[UsingProcess, ...]:
    """Give one process for each user."""
    return tuple(
        UsingProcess(pid=1000 + number, user=user, is_gone=is_gone, **values)
        for number, user in enumerate(users)
    )


def shown_gpu(
    index: int = 0,
    state: str = "free",
    processes: tuple[UsingProcess, ...] = (),
    *,
    reason: str = "",
    since: float | None = None,
    bookings: tuple[GpuBooking, ...] = (),
    facts: dict[str, Any] | None = None,
    **sample: Any,
) -> Gpu:
    """Give a GPU; what is not said of it is unknown."""
    known = {"uuid": f"GPU-{index}", "index": index, "name": "NVIDIA A100", "memory_total_bytes": 80 * GIB}
    return Gpu(
        node_id="node",
        short_name="A100",
        facts=GpuFacts(**{**known, **(facts or {})}),
        sample=GpuSample(**sample),
        availability=Availability(state=state, reason=reason, since=since),
        processes=processes,
        bookings=bookings,
    )


def shown_node(name: str = "gpu01", *gpus: Gpu, state: str = "live", **values: Any) -> Node:
    """Give a node."""
    return Node(id=name, name=name, state=state, devices=gpus, **values)


def shown_herd(*nodes: Node, **values: Any) -> Herd:
    """Give a herd."""
    return Herd(time=NOW, nodes=nodes, **values)
