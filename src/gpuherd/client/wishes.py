"""From what someone types to what the hub is asked for: ``gpu07/0,1``, ``gpu07``, ``GPU-4f…``, ``2xA100-80G``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpuherd.client.views import Device
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

__all__ = ["device_named", "node_named", "read_wish"]

_COUNTED = re.compile(r"(\d{1,4})\s*[x×*]\s*(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)
_DASHED = re.compile(r"(?P<node>.+)-(?P<index>\d{1,4}(?:\.\d{1,4})?)")
_PLACE = re.compile(r"(?P<node>.+?)[:/](?P<parts>[\d.,\s-]+|all|\*)")
_UUID = re.compile(r"(GPU|MIG)-[\w./-]+", re.IGNORECASE)


def node_named(name: str, devices: Iterable[Device]) -> str:
    """Give the id of a node by its id, shown name or the first part of either; ``Refused`` if there is not one."""
    found = _find_node(name, devices)
    if found is None:
        raise Refused("unknown_node", f'there is no node "{clean(name, 60)}"')
    return found


def device_named(name: str, devices: Iterable[Device]) -> str:
    """Give the UUID of the one device that a place such as ``gpu07/3.1`` means; a whole UUID is itself.

    ``Refused`` if there is no such device, or several.
    """
    place = None if _UUID.fullmatch(name) else _PLACE.fullmatch(name)
    if place is None:
        return name
    found = _by_place(tuple(devices), place["node"], place["parts"])
    if len(found) > 1:
        raise Refused("ambiguous_device", f"{clean(name, 60)} is several devices; write one, such as gpu07/3")
    return found[0]["uuid"]


def _find_node(name: str, devices: Iterable[Device]) -> str | None:
    wanted, devices = name.casefold(), tuple(devices)
    for names in (_whole_names, _first_names):
        found = sorted({one.node_id for one in devices if wanted in names(one)})
        if len(found) > 1:
            raise Refused(
                "ambiguous_node",
                f"{clean(name, 60)} matches several nodes: {', '.join(found[:5])}; use the full name",
            )
        if found:
            return found[0]
    return None


def _whole_names(device: Device) -> set[str]:
    return {device.node_id.casefold(), device.node_name.casefold()}


def _first_names(device: Device) -> set[str]:
    return {name.partition(".")[0] for name in _whole_names(device)}


def read_wish(
    words: Sequence[str], devices: Callable[[], tuple[Device, ...]], *, same_node: bool = False
) -> dict[str, Any]:
    """Give the fields of a booking that say which devices are meant; ``Refused`` says what is not understood.

    ``devices`` is asked only if names have to be looked up.
    """
    text = " ".join(words)
    counted = _COUNTED.fullmatch(text)
    if counted is not None:
        return _any(text, counted, same_node=same_node)
    known = devices()
    named: list[dict[str, str]] = []
    nodes: list[str] = []
    for number, word in enumerate(words):
        if _UUID.fullmatch(word):
            named.append(_by_uuid(known, word))
        elif (place := _PLACE.fullmatch(word)) is not None:
            named += _by_place(known, place["node"], place["parts"])
        elif (node := _find_node(word, known)) is not None:
            nodes.append(node)
        elif (dashed := _DASHED.fullmatch(word)) is not None and (
            node := _find_node(dashed["node"], known)
        ) is not None:
            raise Refused(
                "unknown_device",
                f'"{clean(word, 60)}" is not a GPU; did you mean {clean(dashed["node"], 60)}/{dashed["index"]}?',
            )
        elif number == 0:
            return _any(text, None, same_node=same_node)  # the name of a model, as the hub will see
        else:
            raise Refused(
                "unknown_node", f'there is no node "{clean(word, 60)}"; gpuherd status lists the nodes'
            )
    return {key: value for key, value in (("devices", named), ("nodes", nodes)) if value}


def _any(text: str, counted: re.Match[str] | None, *, same_node: bool) -> dict[str, Any]:
    if not same_node:
        return {"any": text}
    if counted is not None:
        count, model = int(counted[1]), counted[2].strip()
    else:
        count, model = (int(text), "") if _NUMBER.fullmatch(text) else (1, text)
    return {"any": {"count": count, "model": model or None, "same_node": True}}


def _by_uuid(known: Sequence[Device], uuid: str) -> dict[str, str]:
    found = [one for one in known if one.uuid.casefold().startswith(uuid.casefold())]
    whole = [one for one in found if one.uuid.casefold() == uuid.casefold()]
    found = whole or found
    if len(found) != 1:
        told = "no device" if not found else f"{len(found)} devices"
        raise Refused("unknown_device", f"{told} have a UUID that begins with {clean(uuid, 60)}")
    return _ref(found[0])


def _by_place(known: Sequence[Device], name: str, parts: str) -> list[dict[str, str]]:
    node = node_named(name, known)
    there = [one for one in known if one.node_id == node]
    if parts in ("all", "*"):
        return [_ref(one) for one in there]
    chosen: list[Device] = []
    for part in filter(None, (part.strip() for part in parts.split(","))):
        found = [one for one in there for place in _places(part) if _is_at(one, place)]
        if not found:
            raise Refused("unknown_device", f"{clean(name, 60)} has no GPU {part}")
        chosen += found
    return [_ref(one) for one in dict.fromkeys(chosen)]


def _places(part: str) -> list[str]:
    """Give the places that ``3``, ``0-3`` or ``3.1`` mean."""
    first, dash, last = part.partition("-")
    if not dash:
        return [part]
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < 4096):
        raise Refused("unreadable_wish", f"{part} is not a range of GPUs; write for example 0-3")
    return [str(index) for index in range(int(first), int(last) + 1)]


def _is_at(device: Device, place: str) -> bool:
    if device.parent_index is None:
        return place == str(device.index)
    return place in (f"{device.parent_index}.{device.index}", str(device.parent_index))


def _ref(device: Device) -> dict[str, str]:
    return {"node_id": device.node_id, "uuid": device.uuid}
