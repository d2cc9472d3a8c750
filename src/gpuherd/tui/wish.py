"""What of the herd someone wants to see, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from msgspec import Struct

from gpuherd.client.live_herd import LiveHerd
from gpuherd.client.live_nodes import LiveGpu, LiveNode, natural

__all__ = [
    "FILTERS",
    "GROUPINGS",
    "SORTINGS",
    "Filter",
    "Grouping",
    "Sorting",
    "Wish",
    "bare_nodes",
    "matcher",
    "sort_key",
]

Sorting = Literal["place", "util", "memory", "user", "state", "age"]
Filter = Literal["all", "free", "held", "fault", "mine"]
Grouping = Literal["node", "type", "user", "none"]

SORTINGS: dict[Sorting, str] = {
    "place": "by place: in the order of nodes and GPUs",
    "util": "by utilisation, highest first",
    "memory": "by memory in use, highest first",
    "user": "by user",
    "state": "by state, free ones first",
    "age": "by age, longest first",
}
FILTERS: dict[Filter, str] = {
    "all": "everything",
    "free": "free ones",
    "held": "held idle: held, but not computing",
    "fault": "faults, stale and offline",
    "mine": "mine: my processes and bookings",
}
GROUPINGS: dict[Grouping, str] = {
    "node": "by node",
    "type": "by GPU type",
    "user": "by user",
    "none": "no grouping: one list",
}
_TROUBLED = frozenset({"fault", "stale", "offline", "unknown"})
_STATE_ORDER = {
    state: place
    for place, state in enumerate(("free", "held", "booked", "busy", "fault", "stale", "offline", "unknown"))
}
_LAST = 1e30


class Wish(Struct, frozen=True, kw_only=True):
    """Everything that can be chosen about a list."""

    sorting: Sorting = "place"
    is_reversed: bool = False
    filter: Filter = "all"
    grouping: Grouping = "node"
    search: str = ""
    node_id: str | None = None
    """Only of this node."""
    me: frozenset[str] = frozenset()
    """Whom processes belong to that are mine."""
    my_names: frozenset[str] = frozenset()
    """What bookings call me."""

    @property
    def words(self) -> list[str]:
        """What is searched for; all of them have to be there."""
        return self.search.lower().split()

    @property
    def is_narrow(self) -> bool:
        """Whether anything is left out."""
        return self.filter != "all" or bool(self.search.strip()) or self.node_id is not None


def matcher(herd: LiveHerd, wish: Wish) -> Callable[[LiveGpu], bool] | None:
    """Give what tells whether a GPU is wanted; none if all are."""
    if not wish.is_narrow:
        return None
    states, words, node_id = herd.states, wish.words, wish.node_id
    wanted = _wanted_states(wish.filter)

    def is_wanted(gpu: LiveGpu) -> bool:
        if node_id is not None and gpu.node.id != node_id:
            return False
        if wanted is not None and (states[gpu.row] not in wanted or not gpu.is_countable):
            return False
        if wish.filter == "mine" and not is_mine(herd, wish, gpu):
            return False
        if not words:
            return True
        state = states[gpu.row]
        return all(word in gpu.search_text or state.startswith(word) for word in words)

    return is_wanted


def bare_nodes(herd: LiveHerd, wish: Wish) -> list[LiveNode]:
    """Give the wanted ones of the nodes on which no GPU can be seen, such as where the driver hangs."""
    if wish.filter not in ("all", "fault"):
        return []
    words, node_id = wish.words, wish.node_id
    found: list[LiveNode] = []
    for node in herd.nodes:
        if node.gpus or (node_id is not None and node.id != node_id):
            continue
        state, name = herd.node_states[node.row], node.name.lower()
        troubles = [*(["fault"] if node.problems else []), *([state] if state != "live" else [])]
        if wish.filter == "fault" and not troubles:
            continue
        if all(word in name or any(told.startswith(word) for told in troubles) for word in words):
            found.append(node)
    return found


def is_mine(herd: LiveHerd, wish: Wish, gpu: LiveGpu) -> bool:
    """Tell whether someone computes on a GPU or has booked it."""
    if any(use.is_own or (use.user is not None and use.user in wish.me) for use in gpu.uses):
        return True
    return any(
        booking.holder in wish.my_names and booking.phase != "past"
        for booking in herd.bookings.get(gpu.row, ())
    )


def _wanted_states(wanted: Filter) -> Collection[str] | None:
    match wanted:
        case "free":
            return ("free",)
        case "held":
            return ("held",)
        case "fault":
            return _TROUBLED
        case _:
            return None


def sort_key(herd: LiveHerd, sorting: Sorting) -> Callable[[LiveGpu], object] | None:
    """Give the key of a sorting; none if things stay as they are. What is not known comes last."""
    match sorting:
        case "util":
            util = herd.numbers["utilization_gpu"]
            return lambda gpu: _LAST if (value := util[gpu.row]) is None else -value
        case "memory":
            memory = herd.numbers["memory_used_mebibytes"]
            return lambda gpu: _LAST if (value := memory[gpu.row]) is None else -value
        case "age":
            since = herd.numbers["since"]
            return lambda gpu: _LAST if (value := since[gpu.row]) is None else value
        case "state":
            states = herd.states
            return lambda gpu: _STATE_ORDER.get(states[gpu.row], len(_STATE_ORDER))
        case "user":
            return lambda gpu: user_key(gpu.users[0]) if gpu.users else (2, ())
        case _:
            return None


def user_key(user: str | None) -> tuple[int, object]:
    """Sort users by name; who is not known comes after all who are."""
    return (1, ()) if user is None else (0, natural(user))
