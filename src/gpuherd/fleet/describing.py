"""From what a node says of its devices to columns of the rows: models, memory, uses, faults, numbers by name."""

from __future__ import annotations

import numpy as np

from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DeviceRows, Floats, NodeRows
from gpuherd.history.usage.seats import shares_of

__all__ = ["Models", "copy_columns", "count_uses", "describe_devices", "explain_memory", "flag_problems"]

Models = dict[tuple[str, int | None], int]
"""Numbers of the models in the rows, by short name and memory."""

SPARE_MODELS = 64


def describe_devices(rows: DeviceRows, node: Node, names: Names, models: Models) -> None:
    """Write what a node's devices are into their rows."""
    if len(models) > 2 * rows.used + SPARE_MODELS:
        _forget_models(rows, models)
    rows.node[node.start : node.start + node.count] = node.row
    rows.share[node.start : node.start + node.count] = shares_of(node.devices)
    position = {device.uuid: node.start + offset for offset, device in enumerate(node.devices)}
    for row, device in enumerate(node.devices, node.start):
        total = device.memory_total_bytes
        counts = total is not None and total > 0 and device.memory_basis != "host"
        rows.memory_total[row] = total if counts else np.nan
        rows.is_unified[row] = device.memory_basis == "host"
        rows.has_memory_bound[row] = device.memory_basis == "framebuffer"
        rows.parent[row] = -1 if device.parent_uuid is None else position[device.parent_uuid]
        rows.is_partitioned[row] = device.is_partitioned
        rows.is_slice[row] = device.kind == "slice"
        rows.is_missing[row] = row >= node.start + node.reported_count
        rows.model[row] = models.setdefault((names.gpu(device), total), len(models))


def _forget_models(rows: DeviceRows, models: Models) -> None:
    """Number the models anew that devices still have: names come from nodes and could pile up."""
    used = rows.model >= 0
    kept, numbers = np.unique(rows.model[used], return_inverse=True)
    names = list(models)
    models.clear()
    models.update({names[model]: number for number, model in enumerate(kept.tolist())})
    rows.model[used] = numbers


def count_uses(rows: DeviceRows, node: Node) -> None:
    """Write how many processes compute on each of a node's devices."""
    uses = [use.device for use in node.table.uses if use.kind == "compute"]
    counts = np.bincount(uses, minlength=node.count) if uses else 0
    rows.compute_uses[node.start : node.start + node.count] = counts
    instances: dict[tuple[str | None, int], list[int]] = {}
    for offset, device in enumerate(node.devices):
        if device.gpu_instance is not None:
            instances.setdefault((device.parent_uuid, device.gpu_instance), []).append(offset)
    node.neighbours = {
        offset: tuple(other for other in offsets if other != offset)
        for offsets in instances.values()
        if len(offsets) > 1
        for offset in offsets
    }
    node.has_explained_memory = bool(node.neighbours) or any(
        use.kind == "graphics" for use in node.table.uses
    )
    rows.explained_memory[node.start : node.start + node.count] = 0.0


def explain_memory(rows: DeviceRows, node: Node) -> None:
    """Write how much of the memory in use on a node's devices holds none of them, as far as processes are known.

    That of graphics processes, and on slices that share their memory that of processes on the other slices.
    """
    memory = np.zeros(node.count)
    if node.table.uses and "gpu_memory_bytes" in node.layout.uses:
        cells = np.frombuffer(node.uses, dtype="<f8").reshape(len(node.table.uses), -1)
        column = cells[:, node.layout.uses.index("gpu_memory_bytes")]
        for use, used in zip(node.table.uses, column.tolist(), strict=True):
            if not used > 0:  # true for NaN
                continue
            if use.kind == "graphics":
                memory[use.device] += used
            for other in node.neighbours.get(use.device, ()):
                memory[other] += used
    rows.explained_memory[node.start : node.start + node.count] = memory


def flag_problems(rows: DeviceRows, node_rows: NodeRows, node: Node) -> None:
    """Write whether a node is in fault, and which of its devices are, may be at work unseen, or hide processes."""
    problems = node.problems
    block = slice(node.start, node.start + node.count)
    whole_node = any(problem.is_fault and problem.device_uuid is None for problem in problems)
    node_rows.is_faulty[node.row] = whole_node
    faulty = {p.device_uuid for p in problems if p.is_fault}
    partial = {
        p.device_uuid
        for p in problems
        if p.code == "metric_failed" and (not p.columns or "utilization_gpu" in p.columns)
    }
    blind = {p.device_uuid for p in problems if p.code in ("processes_failed", "processes_hidden")}
    # A slice is no better than the GPU it is cut from.
    rows.is_faulty[block] = [
        whole_node
        or device.uuid in faulty
        or (device.parent_uuid in faulty and device.parent_uuid is not None)
        for device in node.devices
    ]
    rows.is_partial[block] = [None in partial or device.uuid in partial for device in node.devices]
    rows.is_blind[block] = [None in blind or device.uuid in blind for device in node.devices]


def copy_columns(
    target: Floats, start: int, count: int, matrix: bytes, names: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    """Copy a matrix of another version's columns into ``count`` rows, column by column, matched by name."""
    if count == 0:
        return
    source = np.frombuffer(matrix, dtype="<f8").reshape(count, -1)
    target[start : start + count] = np.nan
    for place, name in enumerate(ours):
        if name in names:
            target[start : start + count, place] = source[:, names.index(name)]
