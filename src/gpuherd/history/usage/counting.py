"""The arithmetic of use: time, memory and energy of devices split between those who are on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import DEVICE_METRICS, USE_MEASURES, Floats

__all__ = ["COUNTED", "MAX_WATTS", "Stretch", "added", "count", "own_memory"]

COUNTED = ("utilization_gpu", "memory_used_bytes", "power_watts", "energy_joules")
"""The columns of a device that use is counted by."""
COUNTED_COLUMNS = [DEVICE_METRICS.index(name) for name in COUNTED]
UTILIZATION, MEMORY_USED, POWER, ENERGY = range(len(COUNTED))
JOULES = USE_MEASURES.index("joules")

MAX_WATTS = 3_000.0
"""An energy counter that grows faster has been set, not counted."""

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]


def own_memory(
    memory: Floats, use_seat: Rows, seat_device: Rows, is_ghost: Bools, memory_used: Floats
) -> Floats:
    """Give the memory that counts as each seat's own: NaN where nobody's on its device is known.

    A process whose memory is unknown is taken to have the mean of the others on its device. Memory without a process is
    all that is in use.

    ``memory`` and ``use_seat``: of each use; ``seat_device`` and ``is_ghost``: of each seat; ``memory_used``: of each
    device.
    """
    seats, devices = len(seat_device), len(memory_used)
    known = ~np.isnan(memory)
    own: Floats = np.bincount(use_seat[known], memory[known], seats).astype(np.float64, copy=False)
    if not known.all():
        device = seat_device[use_seat]
        sums = np.bincount(device[known], memory[known], devices)
        counts = np.bincount(device[known], minlength=devices)
        with np.errstate(invalid="ignore"):
            mean = sums / counts
        own += np.bincount(use_seat[~known], mean[device[~known]], seats)
    own[is_ghost] = memory_used[seat_device[is_ghost]]
    return own


@dataclass(frozen=True, slots=True)
class Stretch:
    """Stretches of time before samples: seats in rows, and the devices they are of."""

    seconds: Floats
    """Of each device."""
    values: Floats
    """Devices × COUNTED, at the end of the stretch."""
    energy_before: Floats
    """Of each device, its energy counter at the start; NaN if unknown."""
    weight: Floats
    source: Rows
    """Of each device, the one that tells its power: itself, or the GPU that it is a slice of."""
    device: Rows
    """Of each seat that counts."""
    memory: Floats
    """Of each seat that counts, see ``own_memory``."""


def count(stretch: Stretch, busy_utilization: float) -> Floats:
    """Give USE_MEASURES of each seat."""
    device = stretch.device
    devices = len(stretch.seconds)
    seconds = stretch.seconds[device]
    sharers = np.bincount(device, minlength=devices)[device]
    total = np.bincount(device, stretch.memory, devices)[device]
    by_memory = total > 0  # neither unknown nor nothing
    share = 1.0 / sharers
    np.divide(stretch.memory, total, out=share, where=by_memory)
    used = stretch.values[device, MEMORY_USED]
    memory = np.where(np.isnan(stretch.memory), np.nan_to_num(used) / sharers, stretch.memory)
    utilization = stretch.values[device, UTILIZATION]
    is_known = ~np.isnan(utilization)
    held = share * seconds * stretch.weight[device]
    measures = np.empty((len(device), len(USE_MEASURES)))
    measures[:, 0] = seconds
    measures[:, 1] = held
    with np.errstate(invalid="ignore"):
        measures[:, 2] = np.where(utilization >= busy_utilization, held, 0.0)
    measures[:, 3] = np.where(is_known, 0.0, held)
    measures[:, 4] = np.where(is_known, held * np.nan_to_num(utilization), 0.0)
    measures[:, 5] = memory * seconds
    measures[:, 6] = (_energy(stretch)[device]) * share
    return measures


def _energy(stretch: Stretch) -> Floats:
    """Give the energy that each device took: by its counter, else by its power; of slices, their share of the GPU's."""
    grown = stretch.values[:, ENERGY] - stretch.energy_before
    with np.errstate(invalid="ignore"):
        is_sound = (grown > 0) & (grown <= MAX_WATTS * stretch.seconds)
    taken = np.where(is_sound, grown, stretch.values[:, POWER] * stretch.seconds)
    is_silent = np.isnan(taken) & (stretch.source != np.arange(len(taken)))
    if is_silent.any():
        # A GPU is its own source, so what it took is final here.
        taken[is_silent] = taken[stretch.source[is_silent]] * stretch.weight[is_silent]
    return taken


def added(one: Floats, other: Floats) -> Floats:
    """Add measures up, row by row; energy of which only one is known is that one."""
    total = one + other
    joules = total[:, JOULES]
    unknown = np.isnan(joules)
    if unknown.any():
        first, second = one[:, JOULES], other[:, JOULES]
        total[:, JOULES] = np.where(unknown, np.where(np.isnan(first), second, first), joules)
    return total
