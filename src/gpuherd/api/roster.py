"""Who is asked: finders' lists become nodes of the fleet, each with a contact of its own.

A list that cannot be had, or is suddenly empty, changes nothing: the last good one stays in force, and everyone is
told. A node that a list no longer names is asked on for an hour and marked, then forgotten.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Protocol

from gpuherd.api.arrivals import ArrivalFleet, ArrivedNode, ArrivedNodes
from gpuherd.api.contact import Contact
from gpuherd.api.health import GroupHealth
from gpuherd.api.known_nodes import Arrival, KnownNodes, load_known, save_known
from gpuherd.api.node_groups import Group, leads_elsewhere
from gpuherd.api.supervision import Supervisor
from gpuherd.auth.enrolment import node_id_for
from gpuherd.fleet.clock import Clock
from gpuherd.fleet.views import FleetNotice
from gpuherd.model.errors import Failed, GpuherdError, Refused
from gpuherd.model.reports import Problem
from gpuherd.model.targets import NodeWay, Target
from gpuherd.model.text import SENTENCE_LENGTH, clean
from gpuherd.sources.following import ContactFailed

__all__ = ["FINDING", "Roster", "RosterFleet"]

log = logging.getLogger(__name__)

FINDING = "find nodes: "
"""How the names of the finders' loops begin."""
FIND_SECONDS = 310.0
"""Longer than any finder allows itself: what has no end of its own is given up then."""
STOP_SECONDS = 10.0
"""How long contacts and what they share may take to end."""
MISSING_KEPT_SECONDS = 3600.0
"""How long a node is asked on that its list no longer names."""
EMPTY_DOUBTED_SECONDS = 86_400.0
"""How long a list must stay empty to be believed: a token without rights answers with an empty list, too."""


class RosterFleet(ArrivalFleet, Protocol):
    """What the roster needs of the fleet."""

    def remove_node(self, node_id: str) -> None:
        """Forget a node."""

    def expect_gpus(self, node_id: str, count: int | None) -> None:
        """Know how many GPUs a node has according to a list."""

    def gpu_count(self, node_id: str) -> int | None:
        """Tell how many whole GPUs a node shows; none before its first report."""


class Roster:
    """Every node that is not enrolled. All methods run on the event loop that owns the fleet."""

    def __init__(
        self,
        fleet: RosterFleet,
        groups: Sequence[Group],
        *,
        file: Path,
        clock: Clock,
        random: Random | None = None,
        forget: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``forget`` is told of every node that is removed for good."""
        self._fleet = fleet
        self._groups = list(groups)
        self._file = file
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - jitter
        self._forget = forget
        self._enrolled: set[str] = set()
        self._arrivals = ArrivedNodes(fleet, clock=clock, changed=self._save_soon)
        self._left_out: dict[str, FleetNotice] = {}
        self._is_running = False
        self._saved = KnownNodes()
        self._saving: asyncio.Task[None] | None = None
        self._unsaved = False
        self._ending: set[asyncio.Task[None]] = set()

    # -- life --------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Know the nodes of last time again, before their last states are brought back."""
        known = self._saved = load_known(self._file)
        for group in self._groups:
            # A list in the configuration itself needs no memory: what was taken out of it is gone.
            fixed = group.fixed
            self._adopt(group, known.groups.get(group.name, ()) if fixed is None else fixed)
        for arrival in known.arrivals:
            try:
                self._arrive(arrival)
            except Refused as error:
                log.info("not reconnecting to %s: %s", arrival.name, error)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to look for nodes and to ask them."""
        self._is_running = True
        for group in self._groups:
            for contact in group.contacts.values():
                contact.start()
            supervisor.add(
                f"{FINDING}{group.name}",
                lambda group=group: self._look(group),  # type: ignore[misc]
                every_seconds=1.0,
                deadline_seconds=None,
                pause=group.finder.wait,
            )
        self._save_soon()  # the configuration may have lost lists since last time

    async def stop(self) -> None:
        """End every contact, then what they share. The loops of the supervisor must have ended before."""
        self._is_running = False
        contacts = [contact for group in self._groups for contact in group.contacts.values()]
        await _ended([*(asyncio.ensure_future(contact.stop()) for contact in contacts), *self._ending])
        parts = [part for group in self._groups for part in (group.finder, group.way)]
        await _ended([asyncio.ensure_future(part.close()) for part in parts])
        if self._saving is not None:
            await asyncio.gather(self._saving, return_exceptions=True)

    # -- lists -------------------------------------------------------------------------------------------------

    async def _look(self, group: Group) -> None:
        """Look once; whatever keeps us from it is everyone's business, also what nobody has thought of."""
        try:
            async with asyncio.timeout(FIND_SECONDS):
                targets = await group.finder.find()
            self._found(group, targets)
        except TimeoutError as error:
            failure = Failed(f"no response within {FIND_SECONDS:g} s")
            group.troubled(str(failure), self._clock)
            raise failure from error
        except GpuherdError as error:
            group.troubled(str(error), self._clock)
            raise
        except Exception as error:
            group.troubled(f"{type(error).__name__} in the hub, see its log", self._clock)
            raise

    def _found(self, group: Group, targets: Sequence[Target]) -> None:
        """Make a list the one in force, unless it is suddenly empty."""
        now = self._clock.monotonic()
        if not targets and group.targets:
            group.empty_since = group.empty_since if group.empty_since is not None else now
            if now - group.empty_since < EMPTY_DOUBTED_SECONDS:
                group.troubled("the list is empty", self._clock)
                return
        self._adopt(group, targets)
        group.found(self._clock)

    def _adopt(self, group: Group, targets: Sequence[Target]) -> None:
        """Take a list over, and let other lists have the nodes that it no longer names."""
        if self._take_over(group, targets):
            for other in self._groups:
                if other is not group and other.refused:
                    self._take_over(other, other.targets)
        self._save_soon()

    def _take_over(self, group: Group, targets: Sequence[Target]) -> bool:
        """Tell whether any node is missing that was named until now."""
        group.targets = tuple(targets)
        group.refused = {}
        named: set[str] = set()
        for position, target in enumerate(targets):
            try:
                node_id = node_id_for(target.name)
                self._check_free(node_id, group, named)
            except Refused as error:
                group.refused[target.name] = clean(str(error), SENTENCE_LENGTH)
                continue
            named.add(node_id)
            self._list(group, node_id, target, position)
        now = self._clock.monotonic()
        missing = group.contacts.keys() - named - group.missing.keys()
        for node_id in missing:
            group.missing[node_id] = now
            self._fleet.note(node_id, "list", self._not_named(group))
        for node_id in group.missing.keys() & named:
            del group.missing[node_id]
            self._fleet.note(node_id, "list", None)
        return bool(missing)

    def _not_named(self, group: Group) -> Problem:
        return Problem(
            code="not_discovered",
            message=clean(f"this node is no longer in {group.name}; it is removed within the hour", 400),
            since=self._clock.wall(),
        )

    def _check_free(self, node_id: str, group: Group, named: Iterable[str]) -> None:
        if node_id in named:
            raise Refused("name_taken", f"the list has another entry named {node_id}")
        if node_id in self._enrolled:
            raise Refused(
                "name_taken",
                f"{node_id} is enrolled and reports on its own; remove it from the list, or remove the "
                "enrolled node",
            )
        for other in self._groups:
            if other is not group and node_id in other.contacts:
                if node_id not in other.missing:
                    raise Refused("name_taken", f"{node_id} is already polled because of {other.name}")
                self._unlist(other, node_id)  # it has moved from that list to this one
        if node_id in self._arrivals:
            self._arrivals.remove(node_id)  # someone has listed it since: that is the better word

    def _list(self, group: Group, node_id: str, target: Target, position: int) -> None:
        contact = group.contacts.get(node_id)
        if contact is not None and not leads_elsewhere(contact.target, target):
            contact.target = target  # only what is said of it has changed, such as its line in the file
        elif contact is not None:
            self._end(contact)
            contact = None
        self._fleet.add_node(node_id, target.name, group.way.way, position)
        if contact is None:
            contact = group.contacts[node_id] = Contact(
                node_id, target, group.way, fleet=self._fleet, clock=self._clock, random=self._random
            )
            if self._is_running:
                contact.start()

    def _end(self, contact: Contact) -> None:
        contact.end()  # at once: what it has on its way must not reach who takes its place
        task = asyncio.ensure_future(contact.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def sweep(self) -> None:
        """Forget who was missing or silent for too long, and compare GPUs with the inventory. Every few seconds."""
        now = self._clock.monotonic()
        for group in self._groups:
            for node_id, since in list(group.missing.items()):
                if now - since > MISSING_KEPT_SECONDS:
                    self._unlist(group, node_id)
                    self._remove(node_id)
            for node_id, contact in group.contacts.items():
                if contact.target.expected_gpus is not None:
                    self._compare(node_id, contact.target.expected_gpus, group)
        for node_id in self._arrivals.silent():
            self._arrivals.remove(node_id)
            self._remove(node_id)

    def _compare(self, node_id: str, expected: int, group: Group) -> None:
        self._fleet.expect_gpus(node_id, expected)
        seen = self._fleet.gpu_count(node_id)
        note = None
        if seen is not None and seen < expected:
            note = Problem(
                code="gpus_missing",
                message=f"{group.name} lists {expected} GPUs, but {seen} are visible: look for missing ones",
            )
        self._fleet.note(node_id, "inventory", note)

    def _unlist(self, group: Group, node_id: str) -> None:
        group.missing.pop(node_id, None)
        for subject in ("list", "inventory", "contact"):
            self._fleet.note(node_id, subject, None)
        contact = group.contacts.pop(node_id, None)
        if contact is not None:
            self._end(contact)

    def _remove(self, node_id: str) -> None:
        self._fleet.remove_node(node_id)
        self._forget(node_id)
        self._save_soon()

    def set_enrolled(self, enrolled: set[str]) -> None:
        """Give way to nodes that have a credential, and take up listed ones again that no longer have."""
        self._enrolled = enrolled
        self._give_way(enrolled)
        for group in self._groups:
            self._adopt(group, group.targets)

    def add_enrolled(self, node_id: str) -> None:
        """Make room for one more node that has a credential."""
        self._enrolled.add(node_id)
        self._give_way({node_id})

    def _give_way(self, enrolled: set[str]) -> None:
        for node_id in enrolled & self._arrivals.node_ids:
            self._arrivals.remove(node_id)
        for group in self._groups:
            for node_id in enrolled & group.contacts.keys():
                self._unlist(group, node_id)

    # -- nodes that come by themselves -------------------------------------------------------------------------

    def intake(
        self,
        name: str,
        way: NodeWay,
        *,
        interval_seconds: float,
        place: str = "",
        sender: str = "",
        shown: str = "",
    ) -> ArrivedNode:
        """Know a node from now on; ``Refused`` if the name cannot be had."""
        return self._arrive(
            Arrival(
                name=name,
                way=way,
                interval_seconds=interval_seconds,
                place=place,
                sender=sender,
                shown=clean(shown),
            )
        )

    def keep_only(self, place: str, names: Container[str]) -> None:
        """Forget the nodes of a place that are called otherwise."""
        for arrival in self._arrivals.kept():
            if arrival.place == place and arrival.name not in names:
                node_id = node_id_for(arrival.name)
                self._arrivals.remove(node_id)
                self._remove(node_id)

    def _arrive(self, arrival: Arrival) -> ArrivedNode:
        node_id = node_id_for(arrival.name)
        if node_id in self._enrolled:
            raise Refused("name_taken", f"{node_id} is enrolled: it must use its credential")
        if any(node_id in group.contacts for group in self._groups):
            raise Refused("name_taken", f"{node_id} is in the configuration and polled by the hub")
        return self._arrivals.take_up(arrival)

    def senders(self, way: NodeWay) -> dict[str, str]:
        """Give the nodes that have come one way, with the addresses that speak for them."""
        return self._arrivals.senders(way)

    def trouble(self, name: str, failure: ContactFailed | None) -> None:
        """Show of a node that has arrived why there is nothing new of it."""
        self._arrivals.trouble(name, failure)

    # -- what others want to know ------------------------------------------------------------------------------

    @property
    def node_ids(self) -> frozenset[str]:
        """Every node that is here because of the roster."""
        listed = (node_id for group in self._groups for node_id in group.contacts)
        return frozenset((*listed, *self._arrivals.node_ids))

    def left_out(self, place: str, message: str | None) -> None:
        """Show a notice that not all nodes of a place fit; None removes it."""
        if message is None:
            self._left_out.pop(place, None)
        elif (before := self._left_out.get(place)) is None or before.message != message:
            since = self._clock.wall() if before is None else before.since
            self._left_out[place] = FleetNotice(code="nodes_left_out", message=message, since=since)

    def left_out_notices(self) -> list[FleetNotice]:
        """Return the notices about places with too many nodes."""
        return list(self._left_out.values())

    def notices(self) -> list[FleetNotice]:
        """Tell what everyone who looks should know."""
        return [
            *(notice for group in self._groups for notice in group.notices()),
            *self.left_out_notices(),
        ]

    def health(self) -> tuple[GroupHealth, ...]:
        """Tell how the lists and contacts fare."""
        return tuple(group.health() for group in self._groups)

    # -- keeping -----------------------------------------------------------------------------------------------

    def _save_soon(self) -> None:
        self._unsaved = True
        if self._is_running and (self._saving is None or self._saving.done()):
            self._saving = asyncio.ensure_future(self._save())

    async def _save(self) -> None:
        while self._unsaved:
            self._unsaved = False
            known = KnownNodes(
                groups={group.name: group.targets for group in self._groups},
                arrivals=self._arrivals.kept(),
            )
            if known == self._saved:
                continue
            try:
                await asyncio.to_thread(save_known, self._file, known)
            except OSError as error:
                log.warning("cannot write %s: %s", self._file, error.strerror)
            else:
                self._saved = known


async def _ended(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Wait for what is ending, but not for ever: the last state is still to be saved."""
    if not tasks:
        return
    done, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
    for error in filter(None, (task.exception() for task in done if not task.cancelled())):
        log.warning("stopping: %s: %s", type(error).__name__, error)
    if late:
        log.warning("stopping: %d connections did not close within %g s", len(late), STOP_SECONDS)
