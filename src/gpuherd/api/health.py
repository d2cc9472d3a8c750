"""How the hub itself is doing: the structs of GET /api/v1/health."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from gpuherd.api.overload import LoadHealth
from gpuherd.fleet.node import NodeHealth
from gpuherd.history.historian import HistoryHealth
from gpuherd.history.tables.catalogue import CANNOT_BE_READ
from gpuherd.model.people import PrivacyClass
from gpuherd.model.targets import NodeWay

__all__ = [
    "GroupHealth",
    "Health",
    "HealthSummary",
    "LinkHealth",
    "LoopHealth",
    "StoreHealth",
    "ViewerHealth",
    "failing_reason",
    "health_for",
]

HubTime = Annotated[float, Meta(description="Hub time, UTC epoch seconds.")]


class LoopHealth(Struct, frozen=True, kw_only=True):
    """One of the hub's own loops; each is restarted when it fails."""

    name: str
    state: Literal["starting", "ok", "failing", "stopped"]
    rounds: Annotated[int, Meta(description="Successful rounds since the hub started.")]
    errors: int
    consecutive_errors: int
    last_error: str | None
    last_error_at: HubTime | None
    last_success_at: HubTime | None


class StoreHealth(Struct, frozen=True, kw_only=True):
    """Whether the hub saves what nodes send. If not, nodes get no acknowledgements and send it again."""

    state: Literal["ok", "failing"]
    saved_at: HubTime | None
    waiting_nodes: Annotated[int, Meta(description="Nodes with data that is not saved yet.")]
    last_error: str | None


class LinkHealth(Struct, frozen=True, kw_only=True):
    """The nodes' connections."""

    open: int
    replaced: Annotated[int, Meta(description="Connections closed because the same node connected again.")]
    refused_credentials: int
    flapping: Annotated[
        tuple[str, ...],
        Meta(description="Nodes that replace each other's connection: two machines share one credential."),
    ]


class GroupHealth(Struct, frozen=True, kw_only=True):
    """One list of nodes that the hub polls."""

    name: str
    way: NodeWay
    nodes: int
    failing: Annotated[
        int, Meta(description="Nodes that cannot be reached right now, or whose data cannot be read.")
    ]
    missing: Annotated[
        int, Meta(description="Nodes that are no longer in the list and will be removed soon.")
    ]
    refused: Annotated[dict[str, str], Meta(description="Entries that are left out, and why.")]
    found_at: Annotated[HubTime | None, Meta(description="When the list was last read.")]
    trouble: Annotated[str | None, Meta(description="Why the last good list is still in use.")]
    trouble_since: HubTime | None


class ViewerHealth(Struct, frozen=True, kw_only=True):
    """The live streams."""

    open: int
    limit: int
    resyncs: Annotated[int, Meta(description="Snapshots sent to viewers too slow for every change.")]


class Health(Struct, frozen=True, kw_only=True):
    """The hub's own state; ``degraded`` comes with reasons that say what to do."""

    status: Literal["ok", "degraded"]
    reasons: tuple[str, ...]
    version: str
    time: HubTime
    uptime_seconds: float
    tick: int
    loops: tuple[LoopHealth, ...]
    store: StoreHealth
    history: Annotated[HistoryHealth | None, Meta(description="Null: no history is recorded.")] = None
    load: LoadHealth = LoadHealth()
    links: LinkHealth
    lists: tuple[GroupHealth, ...]
    viewers: ViewerHealth
    nodes: tuple[NodeHealth, ...]


class HealthSummary(Struct, frozen=True, kw_only=True):
    """The public part of the hub's health, for monitoring and for nodes that check the hub and its clock."""

    status: Literal["ok", "degraded"]
    version: str
    time: HubTime
    uptime_seconds: float


def health_for(health: Health, privacy: PrivacyClass | None) -> Health | HealthSummary:
    """Give what someone may know: admins all; who sees names, no errors of the hub's own parts; others a summary."""
    if privacy == "admin":
        return health
    if privacy != "member":
        return HealthSummary(
            status=health.status,
            version=health.version,
            time=health.time,
            uptime_seconds=health.uptime_seconds,
        )
    hidden = {
        failing_reason(loop): f"{loop.name}: failing; the hub's log says why"
        for loop in health.loops
        if loop.state == "failing"
    }
    if health.history is not None:
        hidden |= dict.fromkeys(health.history.reasons(), "history: failing; the hub's log says why")
    return structs.replace(
        health,
        reasons=tuple(hidden.get(reason, reason) for reason in health.reasons),
        loops=tuple(structs.replace(loop, last_error=None) for loop in health.loops),
        store=structs.replace(health.store, last_error=None),
        history=None if health.history is None else _without_errors(health.history),
    )


def _without_errors(history: HistoryHealth) -> HistoryHealth:
    return structs.replace(
        history,
        journal=structs.replace(history.journal, last_error=None),
        sinks=tuple(
            structs.replace(
                sink,
                last_error=None,
                unreadable=tuple(structs.replace(part, reason=CANNOT_BE_READ) for part in sink.unreadable),
            )
            for sink in history.sinks
        ),
    )


def failing_reason(loop: LoopHealth) -> str:
    """Say that a loop fails, and why."""
    return f"{loop.name}: {loop.last_error}"
