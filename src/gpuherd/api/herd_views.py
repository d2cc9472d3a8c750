"""The herd as nested objects, for each privacy class made once per tick, however many ask.

For 1,000 nodes it takes 0.2 s of the loop that everyone shares: of a large herd it is made piece by piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from msgspec import structs

from gpuherd.api.command_reads import CommandReads
from gpuherd.api.errors import HttpError
from gpuherd.api.glances import Glances, SentGlance
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.own import with_own_commands
from gpuherd.fleet.recent import RecentView
from gpuherd.fleet.views import DeviceView, FleetView, NodeView, UserView
from gpuherd.model.people import PrivacyClass, Viewer
from gpuherd.model.targets import NodeWay

__all__ = ["HerdViews"]

NODES_AT_ONCE = 25
"""Put together without a pause for who is in no hurry: some 5 ms."""
SMALL_HERD = 100
"""Up to so many nodes it is not worth a pause."""


class HerdViews:
    """What each viewer may read."""

    def __init__(self, fleet: Fleet, reads: CommandReads) -> None:
        self._fleet = fleet
        self._reads = reads
        self._all: FleetView | None = None
        self._shown: dict[PrivacyClass, FleetView] = {}
        self._users: dict[PrivacyClass, tuple[UserView, ...]] = {}
        self._making: dict[PrivacyClass, asyncio.Task[FleetView]] = {}
        self._glances = Glances(fleet)

    def renew(self) -> None:
        """Forget what was made; to be called at each tick, and when nodes come or go."""
        self._all = None
        self._shown.clear()
        self._users.clear()
        self._glances.renew()

    def herd(self, viewer: Viewer) -> FleetView:
        """Give everything as of the last tick."""
        self._reads.note_herd(viewer)
        shown = self._view_of(_class_of(viewer))
        own = self._fleet.own_commands(_users_of(viewer))
        if not own.node_id:
            return shown
        own_nodes = {*own.node_id}
        nodes = tuple(with_own_commands(node, own) if node.id in own_nodes else node for node in shown.nodes)
        return structs.replace(shown, nodes=nodes)

    async def glance(self, viewer: Viewer) -> SentGlance:
        """Give what is free and who has what as of the last tick. No command lines are in it, so none are read."""
        return await self._glances.glance(_class_of(viewer))

    async def prepare(self, viewer: Viewer) -> None:
        """Have what ``herd`` and ``devices`` give next made without holding anyone up, once for all who ask."""
        privacy = _class_of(viewer)
        if privacy in self._shown or len(self._fleet.node_ids()) <= SMALL_HERD:
            return
        making = self._making.get(privacy)
        if making is None:
            making = self._making[privacy] = asyncio.create_task(self.calmly(privacy))
            making.add_done_callback(lambda _: self._making.pop(privacy, None))
        # Who gives up waiting does not take it away from the others.
        self._shown[privacy] = await asyncio.shield(making)

    async def calmly(self, privacy: PrivacyClass) -> FleetView:
        """Give everything that a class sees, put together a few nodes at a time: the loop goes on between them."""
        face, nodes = self._fleet.face(privacy), []
        for number, node_id in enumerate(self._fleet.node_ids(), 1):
            node = self._fleet.node(node_id)
            if node is not None:  # it may have been removed meanwhile
                nodes.append(face.node(node))
            if number % NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return self._fleet.frame(face, tuple(nodes))

    def called(self, viewer: Viewer, name: str) -> FleetView | None:
        """Give only the nodes that go by a name, as they are now.

        None if these are too many to be put together at once, as where all are called 10.0.0.something.
        """
        privacy = _class_of(viewer)
        ids = self._fleet.ids_called(name, with_hosts=privacy in ("member", "admin"))
        if len(ids) > SMALL_HERD:
            return None
        nodes = (self.node(viewer, node_id) for node_id in ids)
        return self._fleet.frame(self._fleet.face(privacy), tuple(node for node in nodes if node is not None))

    def node(self, viewer: Viewer, node_id: str) -> NodeView | None:
        """Give one node as it is now; none if there is no such node."""
        privacy = _class_of(viewer)
        view = self._fleet.node(node_id)
        if view is None:
            return None
        self._reads.note_node(viewer, node_id)
        shown = self._fleet.face(privacy).node(view)
        return with_own_commands(shown, self._fleet.own_commands(_users_of(viewer)))

    def devices(self, viewer: Viewer) -> tuple[DeviceView, ...]:
        """Give every device."""
        return tuple(device for node in self.herd(viewer).nodes for device in node.devices)

    def users(self, viewer: Viewer) -> tuple[UserView, ...]:
        """Give everyone who holds a device."""
        privacy = _class_of(viewer)
        if privacy not in self._users:
            self._users[privacy] = self._fleet.users(self._fleet.face(privacy))
        return self._users[privacy]

    def recent(self, viewer: Viewer, node_id: str, uuids: Collection[str] | None) -> RecentView | None:
        """Give a node's last minutes: numbers, which are the same for everyone."""
        _class_of(viewer)
        return self._fleet.recent(node_id, uuids)

    def door(self, way: NodeWay) -> FleetView:
        """Give the herd for the page of an older tool: nodes that came in its own way as that tool has always shown
        them, command lines included, and all others as members see them.
        """
        members, full = self._view_of("member"), self._full()
        nodes = tuple(
            node if node.way == way else shown for node, shown in zip(full.nodes, members.nodes, strict=True)
        )
        return structs.replace(members, nodes=nodes)

    def _full(self) -> FleetView:
        if self._all is None:
            self._all = self._fleet.view()
        return self._all

    def _view_of(self, privacy: PrivacyClass) -> FleetView:
        shown = self._shown.get(privacy)
        if shown is None:
            full, face = self._full(), self._fleet.face(privacy)
            shown = self._shown[privacy] = FleetView(
                time=full.time,
                tick=full.tick,
                notices=face.notices(full.notices),
                totals=full.totals,
                nodes=tuple(face.node(node) for node in full.nodes),
            )
        return shown


def _class_of(viewer: Viewer) -> PrivacyClass:
    """Give the viewer's class. Routes have asked already; who sees totals alone gets nothing here."""
    if viewer.privacy is None or viewer.privacy == "counts":
        raise HttpError(403, "forbidden", "you can only see totals")
    return viewer.privacy


def _users_of(viewer: Viewer) -> tuple[str, ...]:
    return () if viewer.account is None else viewer.account.linux_names
