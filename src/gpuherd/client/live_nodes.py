"""Nodes, GPUs and processes of the live herd: what is not a number, made fit to be shown once and not at every tick."""

from __future__ import annotations

import re
import unicodedata

from gpuherd.client.herd_views import Problem
from gpuherd.client.live_columns import NumberColumns
from gpuherd.client.live_messages import Inventory, ProcessFacts
from gpuherd.model.devices import in_order
from gpuherd.model.text import clean

__all__ = ["LiveGpu", "LiveNode", "LiveUse", "natural", "shown"]

USE_NUMBERS = ("gpu_memory_bytes", "utilization_sm", "cpu_cores", "memory_bytes")
MEBIBYTE = 2.0**20


def shown(text: str, length: int = 128) -> str:
    """Make text fit to be shown in cells: nothing in it acts on a terminal or on the width of its neighbours."""
    text = clean(text, length)
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFC", text)
    return "".join(letter for letter in composed if unicodedata.category(letter) not in ("Mn", "Me"))


class LiveUse:
    """One process on one GPU; ``position`` is where its numbers arrive."""

    __slots__ = (
        "command",
        "container",
        "is_gone",
        "is_own",
        "job",
        "kind",
        "pid",
        "position",
        "started_at",
        "user",
    )

    def __init__(
        self, position: int, kind: str, process: ProcessFacts, own_command: str | None, *, is_own: bool
    ) -> None:
        self.position = position
        self.kind = kind
        self.pid = process.pid
        self.started_at = process.started_at
        self.user = None if process.user is None else shown(process.user, 64)
        command = own_command if is_own and own_command is not None else process.command
        self.command = None if command is None else shown(command, 512)
        self.container = None if process.container is None else shown(process.container, 64)
        self.job = None if process.job is None else shown(process.job, 64)
        self.is_gone = process.is_gone
        self.is_own = is_own


class LiveGpu:
    """A GPU or slice; its numbers are in the herd's columns at ``row``."""

    __slots__ = (
        "facts",
        "index",
        "is_countable",
        "label",
        "memory_total_mebibytes",
        "name",
        "node",
        "row",
        "search_text",
        "users",
        "uses",
    )

    def __init__(
        self, node: LiveNode, row: int, inventory: Inventory, position: int, uses: list[LiveUse]
    ) -> None:
        told = inventory.devices[position]
        facts = told.facts
        self.node = node
        self.row = row
        self.facts = facts
        self.index = facts.index
        self.name = shown(told.short_name or facts.name, 40)
        self.label = _label(inventory, position)
        total = facts.memory_total_bytes
        self.memory_total_mebibytes = None if total is None or total <= 0 else total / MEBIBYTE
        self.is_countable = not facts.is_partitioned
        self.uses = uses
        computing = (use.user for use in uses if use.kind == "compute")
        self.users: tuple[str | None, ...] = tuple(dict.fromkeys(computing))
        who = " ".join(user or "unknown" for user in self.users)
        self.search_text = f"{node.name}/{self.label} {self.name} {who} {facts.uuid}".lower()

    @property
    def place(self) -> str:
        """Give ``gpu07/3``, of a slice ``gpu07/3.1``."""
        return f"{self.node.name}/{self.label}"


class LiveNode:
    """A node with its GPUs, the positions of its inventory resolved once and not at every tick."""

    __slots__ = (
        "gpus",
        "host",
        "id",
        "inventory",
        "name",
        "notes",
        "numbers",
        "problems",
        "row",
        "sort_key",
        "way",
    )

    def __init__(self, inventory: Inventory, own: dict[int, tuple[float | None, str | None]]) -> None:
        self.inventory = inventory
        self.row = inventory.row
        self.id = inventory.id
        self.name = shown(inventory.name, 64)
        self.way = inventory.way
        self.host = inventory.host
        self.problems: tuple[Problem, ...] = inventory.problems
        self.notes: tuple[Problem, ...] = inventory.notes
        self.sort_key = (inventory.place, natural(self.name), inventory.id)
        self.numbers = NumberColumns(USE_NUMBERS)
        self.numbers.make_room(len(inventory.uses))
        uses: list[list[LiveUse]] = [[] for _ in inventory.devices]
        for position, use in enumerate(inventory.uses):
            if use.process >= len(inventory.processes) or use.device >= len(uses):
                continue
            process = inventory.processes[use.process]
            ours = own.get(process.pid)
            is_own = ours is not None and ours[0] == process.started_at
            command = ours[1] if ours is not None else None
            uses[use.device].append(LiveUse(position, use.kind, process, command, is_own=is_own))
        self.gpus = [
            LiveGpu(self, inventory.devices[position].row, inventory, position, uses[position])
            for position in in_order([gpu.facts for gpu in inventory.devices])
        ]

    def number(self, name: str, use: LiveUse) -> float | None:
        """Give a number of one process on one GPU."""
        return self.numbers.get(name, use.position)

    def models(self) -> list[tuple[str, int]]:
        """Give what the node carries, most of them first; slices are not counted."""
        counts: dict[str, int] = {}
        for gpu in self.gpus:
            if gpu.facts.kind != "slice":
                counts[gpu.name] = counts.get(gpu.name, 0) + 1
        return sorted(counts.items(), key=lambda item: -item[1])


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Give a key by which names sort as people count: n2 before n10."""
    parts = re.split(r"(\d{1,18})", name.lower())
    return tuple(
        (0, int(part)) if part.isdecimal() and part.isascii() else (1, part) for part in parts if part
    )


def _label(inventory: Inventory, position: int) -> str:
    facts = inventory.devices[position].facts
    if facts.parent_uuid is None:
        return str(facts.index)
    for other in inventory.devices:
        if other.facts.uuid == facts.parent_uuid:
            return f"{other.facts.index}.{facts.index}"
    return shown(facts.uuid, 13)
