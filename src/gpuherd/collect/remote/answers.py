"""Commands that a node ran by itself: a runner that answers from the blocks of a round."""

from __future__ import annotations

from collections.abc import Sequence

from gpuherd.collect.commands import CommandFailed, NotAsked
from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.text import clean
from gpuherd.wire.blocks import Block, Round

__all__ = ["RoundRunner"]

NO_SUCH_COMMAND = 127
ENDED_AT_DEADLINE = frozenset({124, 137})

# Blocks by the command's arguments; what is sent less often than each round is remembered.
_COMMANDS = {
    ("nvidia-smi", "-q", "-x"): "nvidia.log",
    ("nvidia-smi", "-L"): "nvidia.list",
    ("amd-smi", "metric", "--json"): "amd.metric",
    ("amd-smi", "process", "--json"): "amd.process",
    ("amd-smi", "static", "--json"): "amd.static",
    ("amd-smi", "list", "--json"): "amd.list",
}
_REMEMBERED = ("amd.static", "amd.list", "nvidia.fields")


class RoundRunner:
    """Answers what collectors ask with what the node's script asked already; a ``Runner``."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._remembered: dict[str, Block] = {}
        self._fields: list[str] = []
        self._in_same_order = ""
        self.tools: frozenset[str] = frozenset()
        """The tools that the node has."""

    def take(self, round_: Round) -> None:
        """Answer from this round from now on."""
        self._blocks = round_.blocks
        tools = round_.blocks.get("tools")
        self.tools = (
            frozenset() if tools is None else frozenset(tools.content.decode(errors="replace").split())
        )
        for name in _REMEMBERED:
            if name in round_.blocks:
                self._remembered[name] = round_.blocks[name]
        if "nvidia.fields" in round_.blocks:
            text = round_.blocks["nvidia.fields"].content.decode(errors="replace")
            self._fields = [field.strip() for field in text.split(",")]
            self._in_same_order = ",".join(self._fields)

    def run(self, arguments: Sequence[str], deadline_seconds: float) -> bytes:
        """See ``Runner.run``. The deadline was kept on the node."""
        program, *options = arguments
        if program not in self.tools:
            raise Unavailable(f"there is no {program} on this node")
        if program == "nvidia-smi" and options[0].startswith("--"):
            return self._query(options)
        # The script chooses the options of rocm-smi by itself.
        name = "rocm.all" if program == "rocm-smi" else _COMMANDS.get(tuple(arguments))
        if name is None:
            raise Failed(f"{program} {options[0]} is not run on nodes without an agent")
        return self._content(program, name)

    def _content(self, program: str, name: str) -> bytes:
        block = self._blocks.get(name) or self._remembered.get(name)
        if block is None:
            raise NotAsked(f"the node's script did not query {program} for {name}")
        if block.status == NO_SUCH_COMMAND:
            raise Unavailable(f"there is no {program} on this node")
        if block.status in ENDED_AT_DEADLINE:
            words = clean(" ".join(block.content.decode(errors="replace").split()), 200)
            raise Failed(words or f"{program} did not finish before its deadline")
        if block.status:
            raise CommandFailed(program, block.status, block.content, b"")
        return block.content

    def _query(self, options: list[str]) -> bytes:
        """Answer nvidia-smi's queries; GPUs chosen with ``--id=`` are in a block of their own."""
        what, _, fields = options[0].partition("=")
        chosen = next((option[5:].split(",") for option in options if option.startswith("--id=")), None)
        if what == "--help-query-gpu":
            if not self._fields:
                raise Failed("the node's script has not yet determined which fields nvidia-smi supports")
            return "".join(f'"{field}"\n' for field in self._fields).encode()
        if what == "--query-compute-apps":
            return self._content("nvidia-smi", "nvidia.apps")
        if what != "--query-gpu":
            raise Failed(f"nvidia-smi {what} is not run on nodes without an agent")
        if chosen is None:
            return self._in_order(self._content("nvidia-smi", "nvidia.gpus"), fields)
        rows = self._content("nvidia-smi", "nvidia.some")
        found = {self._uuid(line): line for line in rows.splitlines()}
        if any(uuid not in found for uuid in chosen):
            lost = self._blocks.get("nvidia.gpus")
            raise CommandFailed("nvidia-smi", 15, b"" if lost is None else lost.content, b"")
        return self._in_order(b"\n".join(found[uuid] for uuid in chosen), fields)

    def _uuid(self, line: bytes) -> str:
        words = line.decode(errors="replace").split(",")
        place = self._fields.index("uuid") if "uuid" in self._fields else len(words)
        return words[place].strip() if len(words) > place else ""

    def _in_order(self, content: bytes, fields: str) -> bytes:
        """Give the columns that were asked for: a script that is installed on the node may ask for others."""
        if fields == self._in_same_order:
            return content
        places = [self._fields.index(field) if field in self._fields else None for field in fields.split(",")]
        lines = []
        for line in content.split(b"\n"):
            words = line.split(b",")
            if len(words) == len(self._fields):
                lines.append(b",".join(b"[N/A]" if place is None else words[place] for place in places))
        return b"\n".join(lines)
