"""Finding nodes, devices and people in a herd by what someone types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import structs

from gpuherd.client.herd_views import Gpu, Herd, Node
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

__all__ = ["gpu_named", "is_held_by", "node_of", "nodes_named", "only"]

_PLACE = re.compile(r"(?P<node>.+?)[:/](?P<index>\d+(\.\d+)?)", re.ASCII)
MIN_UUID_LENGTH = 8


def nodes_named(herd: Herd, word: str) -> tuple[Node, ...]:
    """Give the nodes with this id or shown name, or a name of which this is the first part; ``*`` stands for any."""
    wanted = word.casefold()
    whole = tuple(node for node in herd.nodes if any(fnmatchcase(name, wanted) for name in _names(node)))
    if whole:
        return whole
    return tuple(node for node in herd.nodes if wanted in {name.partition(".")[0] for name in _names(node)})


def node_of(herd: Herd, word: str) -> Node:
    """Give the one node of this name; ``Refused`` if there is none, or several."""
    found = nodes_named(herd, word)
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(clean(node.id, 60) for node in found[:5])
        raise Refused(
            "ambiguous_node", f"{clean(word, 60)} matches several nodes: {names}; use the full name"
        )
    near = _near(word, [node.name for node in herd.nodes])
    raise Refused("unknown_node", f'there is no node "{clean(word, 60)}"{near}')


def gpu_named(herd: Herd, word: str) -> tuple[Node, Gpu]:
    """Give the device at a place such as ``gpu07/3`` or ``gpu07:3.1``, or with a UUID that begins so."""
    place = _PLACE.fullmatch(word)
    if place is not None and nodes_named(herd, place["node"]):
        node = node_of(herd, place["node"])
        for gpu in node.devices:
            if node.place(gpu) == f"{node.name}/{place['index']}":
                return node, gpu
        raise Refused("unknown_device", f"{clean(node.name, 60)} has no GPU {place['index']}")
    if len(word) >= MIN_UUID_LENGTH:
        wanted = word.casefold()
        found = [
            (node, gpu)
            for node in herd.nodes
            for gpu in node.devices
            if gpu.uuid.casefold().startswith(wanted)
        ]
        whole = [pair for pair in found if pair[1].uuid.casefold() == wanted]
        found = whole or found
        if len(found) == 1:
            return found[0]
        if found:
            raise Refused(
                "ambiguous_device", f"{len(found)} devices have a UUID that begins with {clean(word, 60)}"
            )
    raise Refused(
        "unknown_device",
        f'there is no GPU "{clean(word, 60)}"; write NODE/INDEX, such as gpu07/3, or the start of a UUID',
    )


def is_held_by(gpu: Gpu, user: str) -> bool:
    """Tell whether someone computes on a device, or has it booked now."""
    return user in gpu.users or any(
        booking.phase == "current" and booking.holder == user for booking in gpu.bookings
    )


def only(herd: Herd, words: Sequence[str]) -> Herd:
    """Give the part of a herd that is these GPUs, on these nodes or held by these users.

    ``Refused`` names a word that is none of it.

    Of a GPU whose slices are left, the GPU is left, too.
    """
    if not words:
        return herd
    whole: set[str] = set()
    users: set[str] = set()
    places: set[tuple[str, str]] = set()
    for word in words:
        place = _PLACE.fullmatch(word)
        if place is not None and nodes_named(herd, place["node"]):
            node, gpu = gpu_named(herd, word)
            places.update(
                (node.id, one.uuid) for one in node.devices if gpu.uuid in (one.uuid, one.facts.parent_uuid)
            )
            continue
        nodes = nodes_named(herd, word)
        whole.update(node.id for node in nodes)
        if any(is_held_by(gpu, word) for _, gpu in herd.units()):
            users.add(word)
        elif not nodes:
            near = _near(word, _everyone(herd))
            raise Refused(
                "unknown_name",
                f'there is no node "{clean(word, 60)}", and no user of this name holds a GPU{near}',
            )
    left = []
    for node in herd.nodes:
        if node.id in whole:
            left.append(node)
        elif users or places:
            gpus = [
                gpu
                for gpu in node.units
                if (node.id, gpu.uuid) in places or any(is_held_by(gpu, user) for user in users)
            ]
            parents = {gpu.facts.parent_uuid for gpu in gpus}
            shown = tuple(gpu for gpu in node.devices if gpu in gpus or gpu.uuid in parents)
            if shown:
                left.append(structs.replace(node, devices=shown))
    return structs.replace(herd, nodes=tuple(left))


def _names(node: Node) -> tuple[str, str]:
    return node.id.casefold(), node.name.casefold()


def _everyone(herd: Herd) -> list[str]:
    users = {user for _, gpu in herd.units() for user in gpu.users if user is not None}
    return [*users, *(node.name for node in herd.nodes)]


def _near(word: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes only

    found = get_close_matches(word, names, n=1)
    return f"; did you mean {clean(found[0], 60)}?" if found else ""
