"""Nodes that come by themselves, in the hub's own words: one line for all that are well, one for each that is not."""

from __future__ import annotations

from collections.abc import Collection

from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, NoHub, names_of
from gpuherd.wiring.doctor.hub_word import HubWord
from gpuherd.wiring.doctor.steps import Journal, is_well, plural
from gpuherd.wiring.doctor.summary import summed_up

__all__ = ["tell_arrivals"]

COMING = frozenset({"push", "gpustat", "file"})
"""The other ways are the hub's own to its lists, also to the last good one of a list that cannot be read now."""
MOST_TOLD = 20
"""More that are ill have one cause, most often."""


async def tell_arrivals(api: HubApi, health: HubHealth, journal: Journal, listed: Collection[str]) -> None:
    """Tell of the nodes that are enrolled, or came in another way that no list names."""
    try:
        nodes = await api.nodes()
    except NoHub as error:
        journal.skipped("nodes", f"unknown: {error}")
        return
    known: set[str] = set().union(*map(names_of, listed))
    arrivals = [node for node in nodes if node.way in COMING and known.isdisjoint((node.id, node.name))]
    well, ill = 0, 0
    for node in arrivals:
        seen = Journal()
        word = HubWord(api, health, node, seen)
        word.tell_now()
        if node.received_at is not None:
            word.clock()
        if is_well(seen.steps):
            well += 1
            continue
        ill += 1
        if ill <= MOST_TOLD:
            journal.take(summed_up(node.name, seen.steps))
    if ill > MOST_TOLD:
        journal.skipped("node", f"and {plural(ill - MOST_TOLD, 'more node')} with problems")
    if well:
        journal.ok("nodes", "1 node reports by itself" if well == 1 else f"{well} nodes report by themselves")
    elif not arrivals and not listed:
        journal.skipped("nodes", "none yet: `gpuherd token create` here, then `gpuherd install agent` there")
