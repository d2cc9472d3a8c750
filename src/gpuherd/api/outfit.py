"""What a hub is fitted out with besides enrolled nodes: lists of nodes, watched folders, doors for older tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from gpuherd.api.node_groups import Group
from gpuherd.api.services import Services
from gpuherd.fleet.views import FleetNotice, FleetView
from gpuherd.sources.following import Arrivals
from gpuherd.sources.push import NodeLinks

__all__ = ["BareOutfit", "Door", "Outfit", "Watch"]


class Door(Protocol):
    """A listener of its own."""

    async def start(self) -> None:
        """Listen; ``Misconfigured`` if the address cannot be had."""

    async def stop(self) -> None:
        """Listen no more."""


class Watch(Protocol):
    """Something that is looked at again and again."""

    @property
    def name(self) -> str:
        """What the health calls it."""

    @property
    def look_every_seconds(self) -> float:
        """How often."""

    @property
    def look(self) -> Callable[[], Awaitable[None]]:
        """Look once, within a deadline of its own; ``Failed`` if that cannot be done now."""


class Outfit(Protocol):
    """Builds those parts. The hub calls each method once, in this order, while it starts."""

    def groups(self, links: NodeLinks) -> Sequence[Group]:
        """Give the lists of nodes that the hub asks."""

    def watches(self, arrivals: Arrivals) -> Sequence[Watch]:
        """Give what brings in nodes that nobody listed."""

    def doors(self, services: Services, arrivals: Arrivals) -> Sequence[Door]:
        """Give further listeners."""

    def chores(self, services: Services) -> Sequence[Watch]:
        """Give what the hub does again and again besides."""

    def notices(self) -> Sequence[FleetNotice]:
        """Tell what everyone who looks should know about this outfit."""

    def one_page(self, view: FleetView, zone: str) -> bytes | None:
        """Write the herd as a page that needs no other file; none if that is not wanted. Blocking."""


class BareOutfit:
    """Enrolled nodes only."""

    def groups(self, links: NodeLinks) -> Sequence[Group]:
        """Ask nobody."""
        return ()

    def watches(self, arrivals: Arrivals) -> Sequence[Watch]:
        """Watch nothing."""
        return ()

    def doors(self, services: Services, arrivals: Arrivals) -> Sequence[Door]:
        """Open nothing."""
        return ()

    def chores(self, services: Services) -> Sequence[Watch]:
        """Do nothing besides."""
        return ()

    def notices(self) -> Sequence[FleetNotice]:
        """Say nothing."""
        return ()

    def one_page(self, view: FleetView, zone: str) -> bytes | None:
        """Write nothing."""
        return None
