"""Which frames of each node are safely kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuherd.history.batch import FrameMark

__all__ = ["MAX_RUNS", "Marks"]

MAX_RUNS = 8
"""Runs remembered per node, as many as the fleet remembers."""


class Marks:
    """The highest number kept of each run of each node."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, int]] = {}

    def raise_to(self, marks: Iterable[FrameMark]) -> None:
        """Take numbers as kept; lower ones than known change nothing. The runs named last are remembered longest."""
        for mark in marks:
            node_id, boot_id, seq = mark
            runs = self._nodes.setdefault(node_id, {})
            runs[boot_id] = max(seq, runs.pop(boot_id, -1))
            if len(runs) > MAX_RUNS:
                del runs[next(iter(runs))]

    def know(self, node_id: str, runs: Mapping[str, int]) -> None:
        """Take what was saved elsewhere of a node, some time ago, as kept."""
        later = self._nodes.get(node_id, {})
        merged = {boot_id: seq for boot_id, seq in runs.items() if boot_id not in later}
        merged.update((boot_id, max(seq, runs.get(boot_id, -1))) for boot_id, seq in later.items())
        self._nodes[node_id] = dict(list(merged.items())[-MAX_RUNS:])

    def runs(self, node_id: str) -> dict[str, int]:
        """Give the highest kept number of each of a node's runs."""
        return dict(self._nodes.get(node_id, {}))

    def cap(self, node_id: str, runs: Mapping[str, int]) -> dict[str, int]:
        """Give these numbers of a node's runs, none higher than what is kept; -1 is nothing."""
        kept = self._nodes.get(node_id, {})
        return {boot_id: min(seq, kept.get(boot_id, -1)) for boot_id, seq in runs.items()}

    def forget(self, node_id: str) -> None:
        """Forget a node that was removed."""
        self._nodes.pop(node_id, None)

    def __iter__(self) -> Iterator[FrameMark]:
        for node_id, runs in self._nodes.items():
            for boot_id, seq in runs.items():
                yield FrameMark(node_id, boot_id, seq)

    def __len__(self) -> int:
        return sum(map(len, self._nodes.values()))

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The nodes of which anything is kept."""
        return tuple(self._nodes)
