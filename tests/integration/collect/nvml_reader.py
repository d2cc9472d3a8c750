"""Runs the NVML collector in a process of its own, one command per line of standard input.

Commands: ``open``, ``read`` (a GpuReading), ``report`` (a whole Report), ``skip 1 2``, ``close``, ``calls`` (what the
driver was asked since the last ``calls``). Each answers one line of JSON, an error
``{"error": [type, code, text]}``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from gpuherd.collect.node import NodeCollector
from gpuherd.collect.nvml import NvmlCollector
from gpuherd.model.errors import GpuherdError


class Session:
    def __init__(self, options: dict[str, Any]) -> None:
        self.calls: list[tuple[int, str]] = []
        sys_root = Path(options.pop("sys_root", "/nowhere"))
        self.collector = NvmlCollector(self.progress, sys_root=sys_root, **options)
        self.node = NodeCollector([self.collector], trust_pids=True)

    def progress(self, device: int, call: str) -> None:
        self.calls.append((device, call))

    def answer(self, command: str, *arguments: str) -> object:
        if command == "read":
            return self.collector.read()
        if command == "report":
            return self.node.read()
        if command == "open":
            self.collector.open()
        elif command == "skip":
            self.collector.skip(frozenset(map(int, arguments)))
        elif command == "close":
            self.collector.close()
        if command != "calls":
            return None
        calls, self.calls = self.calls, []
        return calls


def main() -> None:
    session = Session(json.loads(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = session.answer(*line.split())
        except GpuherdError as error:
            answer = {"error": [type(error).__name__, getattr(error, "code", None), str(error)]}
        sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
