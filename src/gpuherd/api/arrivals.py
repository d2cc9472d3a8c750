"""Nodes that nobody listed and that came by themselves: old protocols, dropped files."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from msgspec import structs

from gpuherd.api.contact import ContactFleet, contact_problem
from gpuherd.api.known_nodes import Arrival
from gpuherd.auth.enrolment import node_id_for
from gpuherd.fleet.clock import Clock
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem, Report
from gpuherd.model.targets import NodeWay
from gpuherd.model.text import clean
from gpuherd.sources.following import ContactFailed

__all__ = ["ArrivalFleet", "ArrivedNode", "ArrivedNodes"]

ARRIVAL_KEPT_SECONDS = 7 * 86_400.0
MAX_ARRIVALS = 10_000
NAMESAKE_SILENT_SECONDS = 60.0
"""How long a node must have been silent, and for three intervals, before another takes over whose name makes its id."""
_UNPROVEN = {
    "gpustat": "anyone in the allowed networks could have sent this, because the old gpustat protocol has no "
    "credentials; install the gpuherd agent or use SSH",
}


class ArrivalFleet(ContactFleet, Protocol):
    """What arrived nodes need of the fleet."""

    def add_node(
        self, node_id: str, name: str, way: NodeWay = "push", list_position: int | None = None
    ) -> None:
        """Know a node from now on."""


class ArrivedNode:
    """Where the reports of a node go that came by itself."""

    def __init__(self, node_id: str, arrival: Arrival, fleet: ContactFleet, known_at: float) -> None:
        self._node_id = node_id
        self.arrival = arrival
        self._fleet = fleet
        self.known_at = known_at
        self.failing_since: float | None = None

    @property
    def node_id(self) -> str:
        """The id made of the name under which it came."""
        return self._node_id

    def take(self, report: Report) -> None:
        """Take a report of right now; ``Refused`` if its parts do not line up."""
        self._fleet.accept_report(self._node_id, report, self.arrival.interval_seconds)
        self.failing_since = None


class ArrivedNodes:
    """All of them, by id. Whether an id is free otherwise is for the roster to say."""

    def __init__(self, fleet: ArrivalFleet, *, clock: Clock, changed: Callable[[], None]) -> None:
        """``changed`` is called when the nodes to be remembered are others than before."""
        self._fleet = fleet
        self._clock = clock
        self._changed = changed
        self._nodes: dict[str, ArrivedNode] = {}

    @property
    def node_ids(self) -> frozenset[str]:
        """Their ids."""
        return frozenset(self._nodes)

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._nodes

    def kept(self) -> tuple[Arrival, ...]:
        """Give what is remembered of them."""
        return tuple(node.arrival for node in self._nodes.values())

    def senders(self, way: NodeWay) -> dict[str, str]:
        """Give those that have come one way, with the addresses that speak for them."""
        return {
            node_id: node.arrival.sender for node_id, node in self._nodes.items() if node.arrival.way == way
        }

    def take_up(self, arrival: Arrival) -> ArrivedNode:
        """Know a node from now on; ``Refused`` if one that comes another way or is called otherwise has its id."""
        node_id = node_id_for(arrival.name)
        arrival = structs.replace(arrival, name=clean(arrival.name))
        node = self._nodes.get(node_id)
        if node is not None:
            self._renew(node, arrival)
            return node
        if len(self._nodes) >= MAX_ARRIVALS:
            raise Refused("too_many_nodes", f"more than {MAX_ARRIVALS} unlisted nodes")
        self._fleet.add_node(node_id, arrival.shown or arrival.name, arrival.way)
        if arrival.way in _UNPROVEN:
            self._fleet.note(node_id, "trust", Problem(code="unproven", message=_UNPROVEN[arrival.way]))
        node = self._nodes[node_id] = ArrivedNode(node_id, arrival, self._fleet, self._clock.monotonic())
        self._changed()
        return node

    def _renew(self, node: ArrivedNode, arrival: Arrival) -> None:
        known = node.arrival
        if known.way != arrival.way:
            raise Refused("name_taken", f"{node.node_id} is already connected in another way ({known.way})")
        is_namesake = known.name.casefold() != arrival.name.casefold() or known.place != arrival.place
        longest_silence = max(NAMESAKE_SILENT_SECONDS, 3 * known.interval_seconds)
        if is_namesake and self._silent_seconds(node) <= longest_silence:
            raise Refused(
                "name_taken",
                f"{_told(arrival)} would become node {node.node_id} here, but so would {_told(known)}; "
                "give one of them another name",
            )
        if is_namesake or known.shown != arrival.shown:
            self._fleet.add_node(node.node_id, arrival.shown or arrival.name, arrival.way)
        is_changed = (known.interval_seconds, known.sender, known.shown) != (
            arrival.interval_seconds,
            arrival.sender,
            arrival.shown,
        )
        if is_namesake or is_changed:
            node.arrival = arrival
            self._changed()

    def trouble(self, name: str, failure: ContactFailed | None) -> None:
        """Show of a node that has arrived why there is nothing new of it, and since when."""
        node = self._nodes.get(node_id_for(name))
        if node is None:
            return
        if failure is None:
            node.failing_since = None
            self._fleet.note(node.node_id, "contact", None)
            return
        if node.failing_since is None:
            node.failing_since = self._clock.wall()
        self._fleet.note(node.node_id, "contact", contact_problem(failure, node.failing_since))

    def silent(self) -> list[str]:
        """Name those that have been silent for so long that they are to be forgotten."""
        return [
            node_id
            for node_id, node in self._nodes.items()
            if self._silent_seconds(node) > ARRIVAL_KEPT_SECONDS
        ]

    def _silent_seconds(self, node: ArrivedNode) -> float:
        heard_at = self._fleet.received_at(node.node_id) or -math.inf
        return self._clock.monotonic() - max(heard_at, node.known_at)

    def remove(self, node_id: str) -> None:
        """Leave a node to whoever speaks for it now, or to nobody."""
        del self._nodes[node_id]
        self._fleet.note(node_id, "trust", None)
        self._changed()


def _told(arrival: Arrival) -> str:
    return f"{arrival.name} of {arrival.place}" if arrival.place else arrival.name
