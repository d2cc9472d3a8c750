"""What the numbers of a node's samples are about, for history; one for all samples of the same facts and table."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from gpuherd.fleet.names import Names
from gpuherd.history.batch import Numbering, SeriesKey
from gpuherd.history.usage import samples
from gpuherd.history.usage.seats import shares_of
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts
from gpuherd.wire.frames import Layout
from gpuherd.wire.matrix import LAYOUT

__all__ = ["Scene"]


class Scene:
    """Facts, processes and layout of a run. Made on the event loop; what it works out, the writer's thread asks for."""

    def __init__(
        self,
        node_id: str,
        boot_id: str,
        layout: Layout,
        facts: NodeFacts,
        table: ProcessTable,
        owners: tuple[str | None, ...],
        names: Names,
    ) -> None:
        """``owners``: the users of the table's processes as the node calls them."""
        self.node_id = node_id
        self.boot_id = boot_id
        self.facts = facts
        self._layout = layout
        self._table = table
        self._owners = owners
        self._names = names
        self.device_count = len(facts.devices)
        self.last_time = -math.inf
        """Of the last sample, by the node's clock."""
        self._numbered_in: Numbering | None = None
        self._numbers = (b"", b"")
        self.is_native = (layout.devices, layout.host, layout.uses) == (
            LAYOUT.devices,
            LAYOUT.host,
            LAYOUT.uses,
        )

    @cached_property
    def account(self) -> samples.Scene:
        """The same, as accounting wants it."""
        devices = self.facts.devices
        types = tuple(self._names.gpu(device) for device in devices)
        return samples.Scene(self.node_id, devices, types, self._table, self._owners)

    def numbers(self, devices: Numbering, hosts: Numbering) -> tuple[bytes, bytes]:
        """Give the numbers of the devices and of the host, as int64."""
        if self._numbered_in is not devices:
            self._numbered_in = devices
            self._numbers = (
                np.array(
                    [
                        # What can be used of a GPU that is split are its slices.
                        devices.number(
                            SeriesKey(self.node_id, device.uuid, "" if device.is_partitioned else kind),
                            _memory_total(device),
                            share,
                        )
                        for device, kind, share in zip(
                            self.facts.devices,
                            self.account.types,
                            shares_of(self.facts.devices).tolist(),
                            strict=True,
                        )
                    ],
                    np.int64,
                ).tobytes(),
                np.array([hosts.number(SeriesKey(self.node_id))], np.int64).tobytes(),
            )
        return self._numbers

    def devices(self, matrix: bytes) -> bytes:
        """Give a matrix of device samples in our columns."""
        return (
            matrix
            if self.is_native
            else _convert(matrix, self._layout.devices, LAYOUT.devices, self.device_count)
        )

    def host(self, matrix: bytes) -> bytes:
        """Give a host's sample in our columns."""
        return matrix if self.is_native else _convert(matrix, self._layout.host, LAYOUT.host, 1)

    def uses(self, matrix: bytes) -> bytes:
        """Give a matrix of use samples in our columns."""
        return (
            matrix
            if self.is_native
            else _convert(matrix, self._layout.uses, LAYOUT.uses, len(self._table.uses))
        )


def _memory_total(device: DeviceFacts) -> float:
    """Give what used memory is a share of; NaN where it says nothing about use."""
    total = device.memory_total_bytes
    return total if total and device.memory_basis != "host" else float("nan")


def _convert(matrix: bytes, names: tuple[str, ...], ours: tuple[str, ...], rows: int) -> bytes:
    """Bring a matrix of another version to our columns, matched by name."""
    target = np.full((rows, len(ours)), np.nan, dtype="<f8")
    if rows and names:
        source = np.frombuffer(matrix, dtype="<f8").reshape(rows, len(names))
        for place, name in enumerate(ours):
            if name in names:
                target[:, place] = source[:, names.index(name)]
    return target.tobytes()
