"""The same GPU on two nodes: one machine listed twice, or one host's data under another's name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuherd.fleet.node import Node
from gpuherd.model.reports import Problem

__all__ = ["find_twins"]

# Ids that a vendor gives to one card in the world; those made up for tools that tell none are not compared.
_WORLDWIDE = re.compile(
    r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


def find_twins(nodes: Iterable[Node]) -> dict[str, Problem]:
    """Give for each node of which a GPU is also another's what to say of it. ``nodes`` are those alive now."""
    owners: dict[str, Node] = {}
    told: dict[str, Problem] = {}
    for node in nodes:
        for device in node.devices:
            if not _WORLDWIDE.fullmatch(device.uuid):
                continue
            other = owners.setdefault(device.uuid, node)
            if other is not node:
                for one, twin in ((node, other), (other, node)):
                    told.setdefault(one.id, _problem(device.uuid, twin))
    return told


def _problem(uuid: str, twin: Node) -> Problem:
    return Problem(
        code="same_gpu",
        message=f"{uuid} is also reported by {twin.id}: either one machine is listed twice, or one of them passes on "
        "the other's data; keep one",
    )
