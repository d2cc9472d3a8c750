"""What Consul answers: the catalogue's and the health endpoint's list of a service, made into targets."""

from __future__ import annotations

from typing import Any

import msgspec

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.hosts import is_host, is_name
from gpuherd.model.errors import Failed
from gpuherd.model.targets import Target

__all__ = ["parse_services"]

MAX_ENTRIES = 50_000


class _UnusableError(Exception):
    """Why one entry is left out."""


def parse_services(
    answer: bytes, place: str, *, use_node_name: bool = False, use_service_port: bool = False
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """Give the nodes of the service by name, and a sentence for each entry that cannot be used.

    Anyone who may register a service writes here: a bad entry is left out and the others stay. A node that runs
    the service several times is one node. ``Failed`` if the whole is not a list of services.
    """
    try:
        entries = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed(f"{place}: the response is not JSON; is this the address of Consul?") from error
    if not isinstance(entries, list):
        raise Failed(f"{place}: the response is not a list of services; is this the address of Consul?")
    if len(entries) > MAX_ENTRIES:
        raise Failed(
            f"{place}: the response has {len(entries)} entries, more than {MAX_ENTRIES}; is this Consul?"
        )
    targets: dict[str, Target] = {}
    complaints = []
    for number, entry in enumerate(entries, 1):
        try:
            target = _target(entry, place, use_node_name=use_node_name, use_service_port=use_service_port)
        except _UnusableError as error:
            complaints.append(f"{place}, entry {number}: {error}; skipped")
            continue
        targets.setdefault(target.name.lower(), target)
    return tuple(targets[key] for key in sorted(targets)), tuple(complaints)


def _target(entry: Any, place: str, *, use_node_name: bool, use_service_port: bool) -> Target:
    if not isinstance(entry, dict):
        raise _UnusableError("not a service")
    node = entry.get("Node")
    if isinstance(node, dict):  # the health endpoint parts node and service
        service = entry.get("Service")
        service = service if isinstance(service, dict) else {}
        name, address = node.get("Node"), service.get("Address") or node.get("Address")
        port = service.get("Port")
    else:
        name, address = node, entry.get("ServiceAddress") or entry.get("Address")
        port = entry.get("ServicePort")
    if not isinstance(name, str) or not name:
        raise _UnusableError("it has no Node")
    if not is_name(name):
        raise _UnusableError(f"{quoted(name)} is not a node name")
    if use_node_name or not address:
        address = name
    if not isinstance(address, str) or not is_host(address):
        raise _UnusableError(f"{quoted(str(address))} is not an address")
    return Target(name=name, address=address, port=_port(port) if use_service_port else None, place=place)


def _port(port: Any) -> int | None:
    is_usable = isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= 65_535
    return port if is_usable else None
