"""Who can be on which device of a node: one seat for each user, container and job on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.usage.samples import Scene
from gpuherd.model.devices import DeviceFacts

__all__ = ["MAX_SEATS", "Place", "Seats", "seats_of", "shares_of"]

MAX_SEATS = 1024
"""Of one node. What would need more is put down to an unknown user: nobody shares a device with hundreds."""


class Place(NamedTuple):
    """Whose stay it is, and where; several processes of the same are one."""

    uuid: str
    user: str | None
    container: str | None
    job: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Seats:
    """The seats of a scene. Arrays are kept as bytes: thousands of these are joined far faster than arrays."""

    node_id: str
    uuids: tuple[str, ...]
    types: tuple[str, ...]
    places: tuple[Place, ...]
    processes: tuple[tuple[int, ...], ...]
    """Of each seat, the rows of the uses that are its."""
    commands: tuple[str | None, ...]
    """Of each use, its command line."""
    device: bytes
    """int32: of each seat, the position of its device."""
    is_ghost: bytes
    """bool: the seat is for memory that no process explains; it is taken only when there is such memory."""
    use_seat: bytes
    """int32: of each use, its seat; -1 if it does not count."""
    source: bytes
    """int32: of each device, the position of the device that tells its power if itself does not: its GPU or itself."""
    weight: bytes
    """float64: of each device, its share of a GPU."""
    memory_total: bytes
    """float64: of each device; NaN if unknown or it says nothing about use."""

    @property
    def count(self) -> int:
        """How many seats there are."""
        return len(self.places)


def seats_of(scene: Scene) -> Seats:
    """Work out the seats of a scene.

    Graphics do not count, nor do uses of a GPU that is split into slices: its slices are what is held.
    """
    numbers: dict[tuple[int, Place], int] = {}
    processes: list[list[int]] = []
    use_seat: list[int] = []
    taken: set[int] = set()
    table = scene.table
    for row, use in enumerate(table.uses):
        device = scene.devices[use.device]
        if use.kind != "compute" or device.is_partitioned:
            use_seat.append(-1)
            continue
        process = table.processes[use.process]
        place = Place(device.uuid, scene.owners[use.process], process.container, process.job)
        if (use.device, place) not in numbers and len(numbers) >= MAX_SEATS:
            place = Place(device.uuid, None, None, None)
        seat = numbers.setdefault((use.device, place), len(numbers))
        if seat == len(processes):
            processes.append([])
        processes[seat].append(row)
        use_seat.append(seat)
        taken.add(use.device)
    is_ghost = [False] * len(numbers)
    for position, device in enumerate(scene.devices):
        if position not in taken and not device.is_partitioned:
            numbers[position, Place(device.uuid, None, None, None)] = len(numbers)
            processes.append([])
            is_ghost.append(True)
    source = _sources(scene.devices)
    return Seats(
        node_id=scene.node_id,
        uuids=tuple(device.uuid for device in scene.devices),
        types=scene.types,
        places=tuple(place for _, place in numbers),
        processes=tuple(map(tuple, processes)),
        commands=tuple(table.processes[use.process].command for use in table.uses),
        device=np.array([position for position, _ in numbers], np.int32).tobytes(),
        is_ghost=np.array(is_ghost, np.bool_).tobytes(),
        use_seat=np.array(use_seat, np.int32).tobytes(),
        source=source.tobytes(),
        weight=shares_of(scene.devices).tobytes(),
        memory_total=np.array([_telling_memory(device) for device in scene.devices], np.float64).tobytes(),
    )


def _telling_memory(device: DeviceFacts) -> float:
    total = device.memory_total_bytes
    # Where the host's memory is the device's, others use it too: it does not tell that the device is taken.
    return float(total) if total and device.memory_basis != "host" else float("nan")


def _sources(devices: Sequence[DeviceFacts]) -> NDArray[np.int32]:
    position = {device.uuid: place for place, device in enumerate(devices)}
    return np.array(
        [
            place if device.parent_uuid is None else position.get(device.parent_uuid, place)
            for place, device in enumerate(devices)
        ],
        np.int32,
    )


def shares_of(devices: Sequence[DeviceFacts]) -> NDArray[np.float64]:
    """Tell what part of a GPU each device is.

    A slice is its share of the memory of its GPU; where that is not known, the slices are taken as equal.
    """
    source = _sources(devices)
    weights = np.ones(len(devices))
    siblings = np.bincount(source, minlength=len(devices)) - 1  # a GPU is its own source
    for place, device in enumerate(devices):
        parent = int(source[place])
        if parent == place:
            continue
        own, whole = device.memory_total_bytes, devices[parent].memory_total_bytes
        weights[place] = min(1.0, own / whole) if own and whole else 1.0 / max(1, siblings[parent])
    return weights
