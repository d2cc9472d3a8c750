"""What names the nodes of a ``[[nodes]]`` table; apart from the hub, for commands that start none."""

from __future__ import annotations

from pathlib import Path

from gpuherd.agent.spec import resolve
from gpuherd.discovery.finding import Finder
from gpuherd.discovery.hosts import StaticFinder, parse_host_list
from gpuherd.model.targets import Target
from gpuherd.wiring.catalog import FINDERS
from gpuherd.wiring.settings import NodesSettings

__all__ = ["make_finder", "way_of"]


def make_finder(group: NodesSettings, place: str, folder: Path) -> tuple[Finder, tuple[Target, ...] | None]:
    """Make what names a group's nodes, and those nodes already if the configuration lists them itself."""
    if group.find is None:
        targets = parse_host_list(group.hosts, place)
        return StaticFinder(targets, place=place), targets
    kind = str(group.find.__struct_config__.tag)
    return resolve(FINDERS[kind])(group.find, base=folder, way=way_of(group)), None


def way_of(group: NodesSettings) -> str:
    """Give by which way a group's nodes are reached."""
    return str(group.reach.__struct_config__.tag)
