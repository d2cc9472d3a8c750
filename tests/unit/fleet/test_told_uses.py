"""The uses of all nodes, read as one table, say what each node's own table would."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from gpuherd.fleet.node import Node
from gpuherd.fleet.told_uses import ToldUses, UseReader
from gpuherd.model.processes import Process, ProcessTable, ProcessUse
from gpuherd.wire.matrix import LAYOUT
from support.herd import GIB

MEMORY = LAYOUT.uses.index("gpu_memory_bytes")
CORES = LAYOUT.processes.index("cpu_cores")


def _node(row: int, memory_gib: list[float], processes: list[int] | None = None) -> Node:
    """Make a node with one use for each number; ``processes`` says whose they are."""
    node = Node(f"n{row}", f"n{row}", row)
    owners = list(range(len(memory_gib))) if processes is None else processes
    count = max(owners, default=-1) + 1
    node.table = ProcessTable(
        processes=tuple(Process(pid=pid) for pid in range(count)),
        uses=tuple(ProcessUse(process=owner, device=0) for owner in owners),
    )
    uses = np.full((len(memory_gib), len(LAYOUT.uses)), np.nan)
    uses[:, MEMORY] = np.array(memory_gib) * GIB
    costs = np.full((count, len(LAYOUT.processes)), np.nan)
    costs[:, CORES] = np.arange(count) + 10 * row
    node.uses, node.processes = uses.tobytes(), costs.tobytes()
    return node


def _told(uses: ToldUses) -> list[tuple[int, int, float, float]]:
    """Give node row, position, GiB on the device and cores of every use."""
    memory, cores = uses.values[:, 0] / GIB, uses.values[:, 2]
    return list(
        zip(uses.node_rows.tolist(), uses.positions.tolist(), memory.tolist(), cores.tolist(), strict=True)
    )


def _of_another_version(node: Node) -> Node:
    """Let a node send its columns the other way round."""
    node.layout = structs.replace(LAYOUT, uses=LAYOUT.uses[::-1], processes=LAYOUT.processes[::-1])
    for part, names in (("uses", LAYOUT.uses), ("processes", LAYOUT.processes)):
        matrix = np.frombuffer(getattr(node, part)).reshape(-1, len(names))
        setattr(node, part, matrix[:, ::-1].tobytes())
    return node


def test_every_use_is_told_with_the_costs_of_its_process() -> None:
    nodes = [_node(0, [1, 2, 3], [1, 0, 1]), _node(1, []), _node(2, [4, 5])]
    assert _told(UseReader().read(nodes)) == [
        (0, 0, 1.0, 1.0),
        (0, 1, 2.0, 0.0),
        (0, 2, 3.0, 1.0),
        (2, 0, 4.0, 20.0),
        (2, 1, 5.0, 21.0),
    ]
    assert _told(UseReader().read([])) == []


def test_columns_are_found_by_their_names() -> None:
    nodes = [_node(0, [1]), _of_another_version(_node(1, [2, 3])), _node(2, [4])]
    assert sorted(_told(UseReader().read(nodes))) == [
        (0, 0, 1.0, 0.0),
        (1, 0, 2.0, 10.0),
        (1, 1, 3.0, 11.0),
        (2, 0, 4.0, 20.0),
    ]


def test_a_new_table_is_not_read_with_the_positions_of_the_old_one() -> None:
    reader, node = UseReader(), _node(3, [1, 2])
    reader.read([node])
    other = _node(3, [1, 2], [1, 0])
    node.table, node.uses, node.processes = other.table, other.uses, other.processes
    assert _told(reader.read([node])) == [(3, 0, 1.0, 31.0), (3, 1, 2.0, 30.0)]


def test_only_what_differs_is_told_again() -> None:
    reader = UseReader()
    before = reader.read([_node(0, [1, 2]), _node(1, [3, 4])])
    after = reader.read([_node(0, [1, 2.5]), _node(1, [3, 4])])
    assert after.changed(before, ()).tolist() == [False, True, False, False]
    assert after.changed(before, {"n1", "unknown"}).tolist() == [False, True, True, True]


def test_nodes_that_came_went_or_changed_places_disturb_no_others() -> None:
    reader = UseReader()
    before = reader.read([_node(0, [1, 2]), _node(1, [3, 4]), _node(2, [5])])
    turned = reader.read([_node(2, [5]), _node(1, [3, 4.5]), _node(0, [1, 2])])
    assert turned.changed(before, ()).tolist() == [False, False, True, False, False]
    others = reader.read([_node(1, [3, 4]), _node(4, [6]), _node(0, [1, 2, 7])])
    assert others.changed(before, ()).tolist() == [False, False, True, True, True, True]


def test_a_node_that_is_gone_is_told_of_no_more_and_all_of_it_when_it_comes_back() -> None:
    nodes = [_node(0, [1, 2]), _node(1, [3]), _node(2, [4])]
    before = UseReader().read(nodes).without("n1").without("unknown")
    assert [row for row, *_ in _told(before)] == [0, 0, 2]
    assert UseReader().read(nodes).changed(before, ()).tolist() == [False, False, True, False]
