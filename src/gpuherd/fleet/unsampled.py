"""Devices that send no samples: those of silent nodes, and those that are missing. History counts them all the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuherd.fleet.availability import OFFLINE, STALE
from gpuherd.fleet.describing import Models
from gpuherd.fleet.rows import DeviceRows
from gpuherd.fleet.views import DEVICE_STATES
from gpuherd.history.batch import Unsampled

__all__ = ["Group", "UnsampledDevices", "unsampled_groups"]

PIECE_SECONDS = 10.0
"""How long it takes until what goes on is written."""
LONGEST_PAUSE_SECONDS = 10.0
"""If the hub did not look for longer than this, nobody knows what there was meanwhile."""


class Group(NamedTuple):
    """Devices of one type in one state."""

    type: str
    state: int
    devices: float
    gpus: float


def unsampled_groups(rows: DeviceRows, models: Models) -> tuple[Group, ...]:
    """Count devices without samples, by type and state, as of the last tick."""
    is_silent = (rows.state == STALE) | (rows.state == OFFLINE) | rows.is_missing
    chosen = np.flatnonzero(is_silent & (rows.node >= 0) & ~rows.is_partitioned & ~rows.is_extra)
    if not chosen.size:
        return ()
    states = len(DEVICE_STATES)
    cells = rows.model[chosen] * states + rows.state[chosen]
    devices = np.bincount(cells, minlength=len(models) * states)
    gpus = np.bincount(cells, rows.share[chosen], minlength=len(models) * states)
    names = list(models)
    found: dict[tuple[str, int], tuple[float, float]] = {}
    for cell in np.flatnonzero(devices).tolist():
        key = (names[cell // states][0], cell % states)  # types of the same name differ in their memory
        before = found.get(key, (0.0, 0.0))
        found[key] = (before[0] + float(devices[cell]), before[1] + float(gpus[cell]))
    return tuple(Group(*key, *counts) for key, counts in sorted(found.items()))


class UnsampledDevices:
    """Makes pieces of time of what each tick finds."""

    def __init__(self) -> None:
        self._groups: tuple[Group, ...] = ()
        self._since = self._until = 0.0
        self._pieces: list[Unsampled] = []

    def take(self, groups: tuple[Group, ...], now: float) -> None:
        """Take what a tick has found; ``now``: wall clock."""
        is_next = 0 <= now - self._until <= LONGEST_PAUSE_SECONDS
        if is_next:
            self._until = now
        if groups != self._groups or not is_next:
            self._cut()
            self._groups, self._since, self._until = groups, now, now

    def take_pieces(self) -> tuple[Unsampled, ...]:
        """Return what is to be written."""
        if self._until - self._since >= PIECE_SECONDS:
            self._cut()
        pieces, self._pieces = tuple(self._pieces), []
        return pieces

    def _cut(self) -> None:
        if self._until > self._since:
            self._pieces += (
                Unsampled(group.type, group.state, self._since, self._until, group.devices, group.gpus)
                for group in self._groups
            )
        self._since = self._until
