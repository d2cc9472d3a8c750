"""A node's report, made of what its script prints."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gpuherd.collect.amd_smi import AmdSmiCollector
from gpuherd.collect.node import NodeCollector
from gpuherd.collect.nvidia_smi import NvidiaSmiCollector
from gpuherd.collect.processes import CommandLines
from gpuherd.collect.reading import GpuCollector
from gpuherd.collect.remote.answers import RoundRunner
from gpuherd.collect.remote.host import RemoteHost
from gpuherd.collect.remote.processes import RemoteProcesses
from gpuherd.collect.rocm_smi import RocmSmiCollector
from gpuherd.model.errors import Refused
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem, Report
from gpuherd.model.text import clean
from gpuherd.wire.blocks import Round

__all__ = ["RemoteNode"]

T = TypeVar("T", bound=msgspec.Struct)


class RemoteNode:
    """Reads rounds of one channel. Facts and table are the same objects as long as nothing changed."""

    def __init__(
        self,
        *,
        command_lines: CommandLines = "full",
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` is only asked when the node does not tell its own time."""
        self._command_lines: CommandLines = command_lines
        self._clock = clock
        self._monotonic = monotonic
        self._runner = RoundRunner()
        self._host = RemoteHost()
        self._processes = RemoteProcesses(command_lines)
        self._tools: frozenset[str] | None = None
        self._node: NodeCollector | None = None
        self._facts: NodeFacts | None = None
        self._table: ProcessTable | None = None

    def read(self, round_: Round) -> Report:
        """Make a report of a round. What is wrong on the node becomes a problem within it; ``Refused`` with
        ``garbled`` if what the node says cannot be (it is hostile, or its script is not ours)."""
        self._runner.take(round_)
        self._host.take(round_)
        self._processes.take(round_, self._host.machine, self._host.uptime_seconds)
        if self._node is None or self._runner.tools != self._tools:
            self._tools = self._runner.tools
            self._node = self._make_node()
        report = self._node.read()
        if report.facts is not self._facts:
            _check(report.facts, NodeFacts)
            self._facts = report.facts
        if report.table is not self._table:
            _check(report.table, ProcessTable)
            self._table = report.table
        for problem in report.sample.problems:
            _check(problem, Problem)
        return report

    def close(self) -> None:
        """Forget everything."""
        if self._node is not None:
            self._node.close()
            self._node = None

    def _make_node(self) -> NodeCollector:
        """The tools that are there decide which collectors make sense; a change of them starts afresh."""
        tools = self._tools or frozenset()
        collectors: list[GpuCollector] = []
        if "nvidia-smi" in tools or not tools & {"amd-smi", "rocm-smi"}:
            collectors.append(
                NvidiaSmiCollector(runner=self._runner, host_memory=self._host.memory, log_seconds=0.0)
            )
        if "amd-smi" in tools:
            collectors.append(AmdSmiCollector(runner=self._runner))
        elif "rocm-smi" in tools:
            collectors.append(RocmSmiCollector(runner=self._runner))
        return NodeCollector(
            collectors,
            processes=self._processes,
            host=self._host,
            retry_seconds=0.0,  # looking again costs the node nothing
            clock=self._now,
            monotonic=self._monotonic,
        )

    def _now(self) -> float:
        now = self._host.now()
        return self._clock() if now is None else now


def _check(part: T, kind: type[T]) -> None:
    """Hold what was parsed against the bounds of the model; parsers keep most of them by themselves."""
    try:
        msgspec.convert(_builtins(part), kind)
    except msgspec.ValidationError as error:
        raise Refused("garbled", f"the node sent invalid data: {clean(str(error), 300)}") from error


def _builtins(part: msgspec.Struct) -> Any:
    return msgspec.to_builtins(part)
