"""The list of users: who holds what right now."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from rich.segment import Segment

from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_nodes import LiveGpu, LiveNode
from gpuherd.tui.cells import UNKNOWN, Column, Piece, ago, bar, fit, gibibytes, percent
from gpuherd.tui.listing import Line, Scene, columns_of
from gpuherd.tui.palette import Pen
from gpuherd.tui.wish import Wish, user_key

__all__ = ["Holding", "UserList", "holdings", "left_out"]

SILENT_STATES = frozenset({"stale", "offline"})

_COLUMNS = (
    Column("user", "user", 8, 24),
    Column("gpus", "GPUs", 4, 5, is_right=True),
    Column("share", "of the herd", 6, 20, 6),
    Column("busy", "busy", 5, 5, 3, is_right=True),
    Column("held", "held idle", 9, 9, is_right=True),
    Column("idle", "idle for", 8, 8, 4, is_right=True),
    Column("util", "load", 5, 5, 5, is_right=True),
    Column("memory", "gpu mem", 7, 7, 2, is_right=True),
    Column("processes", "procs", 5, 5, 7, is_right=True),
    Column("places", "where", 8, 400, 1),
)


class Holding:
    """What one user holds; user none gathers the processes whose owner is not known."""

    __slots__ = ("busy", "gpus", "held", "idle_since", "memory_bytes", "processes", "user", "utilization")

    def __init__(self, user: str | None) -> None:
        self.user = user
        self.gpus: list[LiveGpu] = []
        self.busy = 0
        self.held = 0
        self.idle_since: float | None = None
        self.memory_bytes: float | None = None
        self.processes: set[tuple[str, int]] = set()
        self.utilization: list[float] = []

    @property
    def mean_utilization(self) -> float | None:
        """The mean load of the GPUs whose load is known."""
        return sum(self.utilization) / len(self.utilization) if self.utilization else None

    def places(self) -> str:
        """Name where: ``h100-01/0,1 a100-02/3``."""
        nodes: dict[str, list[str]] = {}
        for gpu in self.gpus:
            nodes.setdefault(gpu.node.name, []).append(gpu.label)
        return " ".join(f"{node}/{','.join(labels)}" for node, labels in nodes.items())


def holdings(herd: LiveHerd) -> dict[str | None, Holding]:
    """Gather what is held by whoever computes on it, as ``gpuherd users`` does.

    Silent nodes are left out: who was there when one was last heard of need not be there now.
    """
    found: dict[str | None, Holding] = {}
    util, since = herd.numbers["utilization_gpu"], herd.numbers["since"]
    for gpu in herd.gpus():
        if not gpu.is_countable or herd.states[gpu.row] in SILENT_STATES:
            continue
        seen: set[str | None] = set()
        for use in gpu.uses:
            if use.kind != "compute":
                continue
            holding = found.get(use.user)
            if holding is None:
                holding = found[use.user] = Holding(use.user)
            holding.processes.add((gpu.node.id, use.pid))
            memory = gpu.node.number("gpu_memory_bytes", use)
            if memory is not None:
                holding.memory_bytes = (holding.memory_bytes or 0.0) + memory
            if use.user not in seen:
                seen.add(use.user)
                _note(holding, gpu, herd.states[gpu.row], util[gpu.row], since[gpu.row])
    return found


def left_out(herd: LiveHerd) -> str:
    """Say how many GPUs nobody is counted on, because their nodes are silent; empty if there are none."""
    count = sum(herd.totals.devices.get(state, 0) for state in SILENT_STATES)
    return f"{count} GPU{'s' if count != 1 else ''} on offline nodes not shown" if count else ""


def _note(holding: Holding, gpu: LiveGpu, state: str, load: float | None, since: float | None) -> None:
    holding.gpus.append(gpu)
    if load is not None:
        holding.utilization.append(load)
    if state == "busy":
        holding.busy += 1
    elif state == "held":
        holding.held += 1
        if since is not None and (holding.idle_since is None or since < holding.idle_since):
            holding.idle_since = since


class UserList:
    """Everyone who computes on a GPU."""

    title = "Users"
    nothing = "nobody holds a GPU here"

    def lines(self, scene: Scene, folded: Collection[str]) -> list[Line]:
        """Make one line per user; most GPUs first, unless another order is wished for."""
        wish = scene.wish
        found = [holding for holding in holdings(scene.herd).values() if _is_wanted(holding, wish)]
        found.sort(key=lambda holding: user_key(holding.user))
        found.sort(key=_key(wish))
        if wish.is_reversed:
            found.reverse()
        return found

    def key(self, line: Line) -> tuple[object, ...]:
        """Give what a line is of."""
        return (line.user,)

    def subject(self, line: Line) -> LiveGpu | LiveNode | None:
        """Users have no details of their own: their GPUs are searched for instead."""
        return None

    def fold_key(self, line: Line) -> str | None:
        """Users are not folded."""
        return None

    def columns(self, width: int, wish: Wish) -> list[tuple[Column, int]]:
        """Give the columns that fit."""
        return _columns(width)

    def draw(self, line: Line, width: int, pen: Pen, scene: Scene) -> list[Piece]:
        """Draw one user."""
        holding: Holding = line
        all_gpus = sum(scene.herd.totals.devices.values())
        pieces = []
        for column, cells in _columns(width):
            if column.name == "share":
                share = len(holding.gpus) / all_gpus if all_gpus else None
                state = "held" if holding.held > holding.busy else "busy"
                pieces += [*bar(share, cells, pen, state), Segment(" ")]
                continue
            style = pen.text
            if column.name == "user" and holding.user in scene.wish.me:
                style = pen.strong
            elif column.name in ("held", "idle") and holding.held:
                style = pen.state("held")
            elif column.name in ("places", "processes", "held", "idle"):
                style = pen.muted
            text = fit(_text(column.name, holding, scene), cells, is_right=column.is_right)
            pieces.append(Segment(text + " ", style))
        return pieces


@lru_cache(64)
def _columns(width: int) -> list[tuple[Column, int]]:
    return columns_of(_COLUMNS, width)


def _is_wanted(holding: Holding, wish: Wish) -> bool:
    if wish.node_id is not None and all(gpu.node.id != wish.node_id for gpu in holding.gpus):
        return False
    if wish.filter == "held" and not holding.held:
        return False
    if wish.filter == "mine" and holding.user not in wish.me:
        return False
    if wish.filter == "free":
        return False
    if not wish.words:
        return True
    text = f"{holding.user or 'unknown'} {holding.places()}".lower()
    return all(word in text for word in wish.words)


def _key(wish: Wish) -> Callable[[Holding], float]:
    match wish.sorting:
        case "user":
            return lambda holding: 0.0
        case "memory":
            return lambda holding: -(holding.memory_bytes or 0.0)
        case "util":
            return lambda holding: -(holding.mean_utilization or 0.0)
        case "age" | "state":
            return lambda holding: 1e30 if holding.idle_since is None else holding.idle_since
        case _:
            return lambda holding: -float(len(holding.gpus))


def _text(name: str, holding: Holding, scene: Scene) -> str:
    match name:
        case "user":
            return holding.user or "unknown owner"
        case "gpus":
            return str(len(holding.gpus))
        case "busy":
            return str(holding.busy)
        case "held":
            return str(holding.held) if holding.held else UNKNOWN
        case "idle":
            return "" if holding.idle_since is None else ago(scene.now - holding.idle_since)
        case "util":
            return percent(holding.mean_utilization)
        case "memory":
            return gibibytes(None if holding.memory_bytes is None else holding.memory_bytes / 2**20)
        case "processes":
            return str(len(holding.processes))
        case _:
            return holding.places()
