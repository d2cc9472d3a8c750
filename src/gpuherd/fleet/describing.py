"""From what a node says of its devices to columns of the rows: models, memory, uses, faults, numbers by name."""

from __future__ import annotations

import numpy as np

from gpuherd.fleet.names import Names
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DeviceRows, Floats

__all__ = ["Models", "copy_columns", "count_uses", "describe_devices", "flag_problems"]

Models = dict[tuple[str, int | None], int]
"""Numbers of the models in the rows, by short name and memory."""

SPARE_MODELS = 64


def describe_devices(rows: DeviceRows, node: Node, names: Names, models: Models) -> None:
    """Write what a node's devices are into their rows."""
    if len(models) > 2 * rows.used + SPARE_MODELS:
        _forget_models(rows, models)
    rows.node[node.start : node.start + node.count] = node.row
    position = {device.uuid: node.start + offset for offset, device in enumerate(node.devices)}
    for row, device in enumerate(node.devices, node.start):
        total = device.memory_total_bytes
        counts = total is not None and total > 0 and device.memory_basis != "host"
        rows.memory_total[row] = total if counts else np.nan
        rows.parent[row] = -1 if device.parent_uuid is None else position[device.parent_uuid]
        rows.is_partitioned[row] = device.is_partitioned
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


def flag_problems(rows: DeviceRows, node: Node) -> None:
    """Write which of a node's devices are in fault, read in part only, or hide their processes."""
    problems = node.raw_problems
    block = slice(node.start, node.start + node.count)
    whole_node = any(problem.is_fault and problem.device_uuid is None for problem in problems)
    faulty = {p.device_uuid for p in problems if p.is_fault}
    partial = {p.device_uuid for p in problems if p.code == "metric_failed"}
    blind = {p.device_uuid for p in problems if p.code == "processes_failed"}
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
