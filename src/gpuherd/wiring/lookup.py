"""Finding a node of the configuration by what a person calls it."""

from __future__ import annotations

import asyncio

from msgspec import Struct, structs

from gpuherd.auth.node_ids import node_id_for
from gpuherd.discovery.hosts import parse_host
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.model.targets import Target
from gpuherd.sources.settings import SshSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.finders import make_finder
from gpuherd.wiring.settings import NodesSettings

__all__ = ["FoundList", "ListedNode", "find_lists", "matching", "ssh_target", "ssh_targets"]

FIND_SECONDS = 30.0


class ListedNode(Struct, frozen=True, kw_only=True):
    """A node with the table of the configuration that brings it in."""

    settings: NodesSettings
    place: str
    target: Target


class FoundList(Struct, frozen=True, kw_only=True):
    """What one ``[[nodes]]`` table names now, or why that cannot be said."""

    name: str
    way: str
    nodes: tuple[ListedNode, ...] = ()
    trouble: str | None = None


async def find_lists(config: Config) -> list[FoundList]:
    """Ask every finder once, all at the same time: one that hangs must not hide the others."""
    return await asyncio.gather(
        *(_find(config, number, settings) for number, settings in enumerate(config.nodes))
    )


async def _find(config: Config, number: int, settings: NodesSettings) -> FoundList:
    place, way = f"nodes[{number}]", str(settings.reach.__struct_config__.tag)
    try:
        finder, _ = make_finder(settings, f"{place}.hosts", config.folder)
    except Misconfigured as error:
        return FoundList(name=place, way=way, trouble=config.source.located(str(error), place))
    try:
        async with asyncio.timeout(FIND_SECONDS):
            targets = await finder.find()
    except (Failed, Misconfigured) as error:
        return FoundList(name=finder.name, way=way, trouble=str(error))
    except TimeoutError:
        return FoundList(name=finder.name, way=way, trouble=f"no response within {FIND_SECONDS:g} s")
    finally:
        await finder.close()
    nodes = (ListedNode(settings=settings, place=finder.name, target=target) for target in targets)
    return FoundList(name=finder.name, way=way, nodes=tuple(nodes))


def matching(lists: list[FoundList], host: str) -> ListedNode | None:
    """Find a node by its name, id, address, or address and port."""
    wanted = {host, _id_of(host)}
    every = [node for found in lists for node in found.nodes]
    for node in every:
        if node.target.name in wanted or _id_of(node.target.name) in wanted:
            return node
    return next((node for node in every if host in _addresses(node.target)), None)


def _addresses(target: Target) -> tuple[str, str]:
    host = f"[{target.address}]" if ":" in target.address else target.address
    return target.address, f"{host}:{target.port}"


def _id_of(name: str) -> str:
    try:
        return node_id_for(name)
    except Refused:
        return name


async def ssh_target(config: Config, host: str) -> tuple[Target, SshSettings]:
    """Find whom to reach over SSH: a listed node, or just any host, with the settings of the list if there is one."""
    node = matching(await find_lists(config), host)
    if node is not None and isinstance(node.settings.reach, SshSettings):
        return node.target, node.settings.reach
    usual = next(
        (group.reach for group in config.nodes if isinstance(group.reach, SshSettings)), SshSettings()
    )
    return structs.replace(parse_host(host, "the command line"), place="the command line"), usual


async def ssh_targets(config: Config) -> list[tuple[Target, SshSettings]]:
    """Find everyone who is reached over SSH; ``Misconfigured`` if a list cannot be had, or nobody is."""
    lists = await find_lists(config)
    troubles = [found.trouble for found in lists if found.trouble is not None]
    if troubles:
        raise Misconfigured("; ".join(troubles))
    every = (node for found in lists for node in found.nodes)
    targets = [
        (one.target, one.settings.reach) for one in every if isinstance(one.settings.reach, SshSettings)
    ]
    if not targets:
        raise Misconfigured(f"{config.source.name}: no [[nodes]] table has hosts that are reached over SSH")
    return targets
