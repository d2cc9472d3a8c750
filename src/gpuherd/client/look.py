"""One look at the herd and its bookings by someone who wants to take something: fresh, or refused."""

from __future__ import annotations

import re

from msgspec import Struct

from gpuherd.client.booked_times import BookedTimes
from gpuherd.client.herd_views import Herd, Node
from gpuherd.client.hub import HubClient
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.text import clean

__all__ = ["Look", "look_at", "node_called", "warnings_of"]

MOST_NAMED = 20
"""Nodes that are named in one question."""
_HARMLESS_NOTICES = frozenset({"open_door", "known_password", "list_remark"})
_NAMELESS = frozenset({"", "localhost", "localhost.localdomain"})
_ADDRESS = re.compile(r"(?:\d+\.){3}\d+|[0-9a-f:.]*:[0-9a-f:.]*", re.ASCII)
"""An IP address; its first part says nothing."""


class Look(Struct, frozen=True, kw_only=True):
    """The herd, what is booked, and what time it is there."""

    herd: Herd
    booked: BookedTimes
    now: float
    """By the hub's clock, epoch seconds."""


def look_at(hub: HubClient, *, ahead_seconds: int, max_age_seconds: float, node: str | None = None) -> Look:
    """Ask a hub for the herd and for what is booked so far ahead; only for what ``node`` may mean, if it is given.

    If there is no such node, all of the herd is told, so that it can be said what there is. ``Failed`` if what the hub
    tells is old, although it answers: its clockwork or its records stand still.
    """
    herd = hub.herd(node=node)
    if node is not None and not herd.nodes:
        herd = hub.herd()
    since = int(herd.time)
    # An older hub tells of all nodes, too many to be named in an address.
    ids = [each.id for each in herd.nodes] if node is not None and len(herd.nodes) <= MOST_NAMED else None
    timeline = hub.timeline(since, since + ahead_seconds, node=ids)
    now = herd.time if timeline.time is None else timeline.time
    if abs(now - herd.time) > max_age_seconds:
        raise Failed(
            f"the hub at {hub.line.url} responds, but its data about the GPUs is "
            f"{abs(now - herd.time):.0f} s old, too old to choose GPUs by. Its health is at /api/v1/health"
        )
    if not timeline.is_current:
        raise Failed(
            f"the hub at {hub.line.url} cannot read its bookings right now, so nobody knows what is booked; "
            "try again when its database is back"
        )
    return Look(herd=herd, booked=BookedTimes(timeline), now=now)


def warnings_of(herd: Herd) -> list[str]:
    """Give the notices of the hub that may tell why something is not to be seen."""
    return [clean(notice.message, 300) for notice in herd.notices if notice.code not in _HARMLESS_NOTICES][:3]


def node_called(herd: Herd, name: str, *, is_this_host: bool = False) -> Node:
    """Give the node that goes by a name: its id, shown name or host name, or the first part of one of these.

    ``Refused`` if there is none or more than one. ``is_this_host``: it is the name that this machine has.
    """
    told = clean(name, 60)
    if is_this_host and name.casefold() in _NAMELESS:
        raise Refused(
            "unknown_node", "this machine has no usable host name; give its name in the herd with --node"
        )
    wanted = name.casefold()
    exact = [node for node in herd.nodes if wanted in _names(node)]
    short = [node for node in herd.nodes if _is_called_in_short(node, wanted)]
    if is_this_host:
        short = [node for node in short if not _is_elsewhere(node, wanted)]
    for found in (exact, short):
        if len(found) > 1:
            names = ", ".join(clean(node.name, 60) for node in found[:5])
            raise Refused("ambiguous_node", f"{told} matches several nodes: {names}; choose one with --node")
        if found:
            return found[0]
    if is_this_host:
        raise Refused(
            "unknown_node",
            f"the hub has no node called {told}, which is the name of this machine. If the hub calls it something "
            "else, give that name with --node; to use another machine's GPUs, log in there (pick and wait can also "
            "look --anywhere)",
        )
    known = ", ".join(clean(node.name, 60) for node in herd.nodes[:5]) or "none"
    more = ", …" if len(herd.nodes) > 5 else ""
    raise Refused("unknown_node", f'there is no node "{told}"; there are {known}{more}')


def _names(node: Node) -> set[str]:
    names = {node.id, node.name, node.host.hostname if node.host is not None else ""}
    return {name.casefold() for name in names} - _NAMELESS


def _is_called_in_short(node: Node, wanted: str) -> bool:
    """Compare first parts where one name has no more than that: gpu01.lab-a is not gpu01.lab-b."""
    if _ADDRESS.fullmatch(wanted):
        return False
    if "." in wanted:
        return wanted.partition(".")[0] in _names(node)
    return any(name.partition(".")[0] == wanted for name in _names(node) if not _ADDRESS.fullmatch(name))


def _is_elsewhere(node: Node, this_host: str) -> bool:
    """Tell whether a node that this host may be says of itself that it is in another domain."""
    return "." in this_host and node.host is not None and "." in node.host.hostname
