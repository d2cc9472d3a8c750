"""What viewers are told of processes: the uses of all nodes as one table.

Taken together, because thousands of small tables cost a hundred times what one large one does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import Array
from gpuherd.fleet.stream_columns import PROCESSES, USES, differs, visible_matrix
from gpuherd.model.processes import ProcessTable

__all__ = ["ToldUses", "UseReader"]


class ToldUses:
    """One row a use: what it takes of the device, then what its process costs the host. A node's stand together."""

    def __init__(self, counts: Mapping[str, int], node_rows: Array, positions: Array, values: Array) -> None:
        """``counts``: how many each node has, by its id, in the order of the rows."""
        self.counts = counts
        self.node_rows = node_rows
        self.positions = positions
        self.values = values

    def _slices(self) -> dict[str, slice]:
        slices, start = {}, 0
        for node_id, count in self.counts.items():
            slices[node_id] = slice(start, start + count)
            start += count
        return slices

    def changed(self, before: ToldUses, told_again: Collection[str]) -> Array:
        """Tell the rows that differ from what was told before; all of nodes that are told again."""
        slices = self._slices() if told_again or self.counts != before.counts else {}
        if self.counts == before.counts and [*self.counts] == [*before.counts]:
            rows = differs(self.values, before.values)
        else:
            rows = np.ones(len(self.values), dtype=np.bool_)
            old = before._slices()
            for node_id, place in (slices or self._slices()).items():
                if before.counts.get(node_id) == self.counts[node_id]:
                    rows[place] = differs(self.values[place], before.values[old[node_id]])
        for node_id in told_again:
            if node_id in slices:
                rows[slices[node_id]] = True
        return rows

    def without(self, node_id: str) -> ToldUses:
        """Give the same without a node."""
        place = self._slices().get(node_id)
        if place is None:
            return self
        kept = np.ones(len(self.values), dtype=np.bool_)
        kept[place] = False
        counts = {other: count for other, count in self.counts.items() if other != node_id}
        return ToldUses(counts, self.node_rows[kept], self.positions[kept], self.values[kept])


class UseReader:
    """Reads the uses of nodes as they are now."""

    def __init__(self) -> None:
        self._processes: dict[str, tuple[ProcessTable, Array]] = {}

    def forget(self, node_id: str) -> None:
        """Drop what is kept of a node."""
        self._processes.pop(node_id, None)

    def read(self, nodes: Iterable[Node]) -> ToldUses:
        """Read all uses of these nodes."""
        # Nodes of one version have their columns in common; hardly ever is there more than one.
        by_layout: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Node]] = {}
        for node in nodes:
            by_layout.setdefault((node.layout.uses, node.layout.processes), []).append(node)
        blocks = [self._read_alike(alike, *names) for names, alike in by_layout.items()]
        ordered = [node for alike in by_layout.values() for node in alike]
        counts = {node.id: len(node.table.uses) for node in ordered}
        lengths = list(counts.values())
        starts = np.cumsum([0, *lengths])[:-1]
        return ToldUses(
            counts,
            np.repeat([node.row for node in ordered], lengths),
            np.arange(sum(lengths)) - np.repeat(starts, lengths),
            np.concatenate(blocks) if blocks else np.empty((0, len(USES) + len(PROCESSES))),
        )

    def _read_alike(self, nodes: list[Node], use_names: tuple[str, ...], names: tuple[str, ...]) -> Array:
        use_counts = [len(node.table.uses) for node in nodes]
        counts = [len(node.table.processes) for node in nodes]
        uses = visible_matrix(b"".join(node.uses for node in nodes), sum(use_counts), use_names, USES)
        processes = visible_matrix(b"".join(node.processes for node in nodes), sum(counts), names, PROCESSES)
        first = np.repeat(np.cumsum([0, *counts])[:-1], use_counts)
        owners = np.concatenate([self._process_positions(node) for node in nodes])
        return np.column_stack([uses, processes[first + owners]])

    def _process_positions(self, node: Node) -> Array:
        kept = self._processes.get(node.id)
        if kept is None or kept[0] is not node.table:
            positions = np.array([use.process for use in node.table.uses], dtype=np.int64)
            kept = self._processes[node.id] = (node.table, positions)
        return kept[1]
