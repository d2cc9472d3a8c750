"""What ``scontrol`` and ``sinfo`` print about nodes, as JSON or as text, made into targets."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.hosts import is_host, is_name
from gpuherd.discovery.slurm.gres import parse_gres
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.targets import Target

__all__ = ["SlurmNode", "parse_json", "parse_text", "to_targets"]

_FIELDS = {"name": "NodeName", "address": "NodeAddr", "hostname": "NodeHostName", "gres": "Gres"}


class SlurmNode(Struct, frozen=True, kw_only=True):
    """A node as Slurm knows it; whatever its state is, it stays listed."""

    name: str
    address: str = ""
    hostname: str = ""
    gres: str = ""
    partitions: tuple[str, ...] = ()


def parse_json(output: bytes) -> tuple[SlurmNode, ...]:
    """Read ``scontrol show nodes --json`` or ``sinfo --json``; ``Failed`` if the nodes are not in it.

    Only what all versions write alike is read: other parts changed with every release.
    """
    try:
        answer = msgspec.json.decode(output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed("slurm: the response is not JSON") from error
    nodes = answer.get("nodes") if isinstance(answer, dict) else None
    if isinstance(nodes, dict):  # some releases wrap the list
        nodes = nodes.get("nodes")
    if not isinstance(nodes, list):
        raise Failed("slurm: the response has no list of nodes")
    if answer.get("errors"):
        # sinfo ends with status 0 and an empty list when it cannot reach the controller.
        raise Failed("slurm: the response contains errors; is the controller (slurmctld) up?")
    return tuple(_from_json(node) for node in nodes if isinstance(node, dict))


def parse_text(output: bytes) -> tuple[SlurmNode, ...]:
    """Read ``scontrol show node --oneliner``."""
    nodes = []
    for line in output.decode(errors="replace").split("\n"):
        if not line.startswith("NodeName="):
            continue
        # The first mention counts: remarks that people write stand at the end and may look like fields.
        values = {
            key: match[1] if (match := re.search(rf"(?:^|\s){field}=(\S*)", line)) else ""
            for key, field in _FIELDS.items()
        }
        partitions = re.search(r"\sPartitions=(\S*)", line)
        nodes.append(
            SlurmNode(
                name=values["name"],
                address=values["address"],
                hostname=values["hostname"],
                gres=values["gres"],
                partitions=tuple(part for part in (partitions[1] if partitions else "").split(",") if part),
            )
        )
    if not nodes and output.strip() and b"No nodes" not in output:
        raise Failed("slurm: scontrol did not print nodes")
    return tuple(nodes)


def to_targets(
    nodes: tuple[SlurmNode, ...], *, partition: str | None = None, all_nodes: bool = False
) -> tuple[tuple[Target, ...], tuple[str, ...]]:
    """Give the nodes with GPUs (or all), and a sentence for each that cannot be used.

    ``Misconfigured`` if no node at all is in the partition: its name is likely misspelt.
    """
    if partition is not None and nodes:
        there = sorted({part for node in nodes for part in node.partitions})
        if partition not in there:
            raise Misconfigured(
                f"slurm: there is no node in the partition {quoted(partition)}; known: "
                f"{', '.join(there[:20]) or 'none'}"
            )
        nodes = tuple(node for node in nodes if partition in node.partitions)
    targets: dict[str, Target] = {}
    complaints = []
    for node in nodes:
        gpus = parse_gres(node.gres)
        if not gpus.has_gpus and not all_nodes:
            continue
        address = node.address or node.hostname or node.name
        if not is_name(node.name) or not is_host(address):
            complaints.append(
                f"slurm: {quoted(node.name)} at {quoted(address)} is not a usable address; skipped"
            )
            continue
        target = Target(name=node.name, address=address, expected_gpus=gpus.count, place="slurm")
        targets.setdefault(node.name.lower(), target)
    return tuple(targets.values()), tuple(complaints)


def _from_json(node: dict[str, Any]) -> SlurmNode:
    partitions = node.get("partitions")
    return SlurmNode(
        name=_word(node.get("name")),
        address=_word(node.get("address")),
        hostname=_word(node.get("hostname")),
        gres=_word(node.get("gres")),
        partitions=tuple(_word(part) for part in partitions) if isinstance(partitions, list) else (),
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
