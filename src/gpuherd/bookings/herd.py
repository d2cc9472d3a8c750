"""The devices that can be booked, as of one moment, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gpuherd.bookings.policy import is_quiet
from gpuherd.bookings.views import BookedDevice
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import DeviceRef

__all__ = ["Herd"]


class Herd:
    """A picture of the herd: may be handed to other threads, and never changes."""

    def __init__(self, devices: Iterable[ListedDevice], quiet: tuple[str, ...] = ()) -> None:
        self.devices = {device.ref: device for device in devices}
        """Every device, in the order in which people see them, partitioned GPUs too."""
        self.quiet = frozenset(
            ref for ref, device in self.devices.items() if quiet and is_quiet(device, quiet)
        )
        self.lines = tuple(device for device in self.devices.values() if not device.is_partitioned)
        """Those that one can have: a partitioned GPU is had through its slices."""
        self._slices: dict[DeviceRef, list[DeviceRef]] = {}
        self._nodes: dict[str, list[DeviceRef]] = {}
        for device in self.lines:
            self._nodes.setdefault(device.ref.node_id, []).append(device.ref)
            if device.parent_uuid is not None:
                parent = DeviceRef(device.ref.node_id, device.parent_uuid)
                self._slices.setdefault(parent, []).append(device.ref)

    def slices_of(self, gpu: DeviceRef) -> tuple[DeviceRef, ...]:
        """Give the slices that a GPU is cut into."""
        return tuple(self._slices.get(gpu, ()))

    def sharing_with(self, refs: Collection[DeviceRef]) -> tuple[DeviceRef, ...]:
        """Give the other devices that are of the same GPUs: the GPU of a slice, and the slices of a GPU.

        A GPU may be split, or made whole, while it is booked: whoever has the one then has the other too.
        """
        listed = [self.devices[ref] for ref in refs if ref in self.devices]
        found = {DeviceRef(one.ref.node_id, one.parent_uuid) for one in listed if one.parent_uuid is not None}
        found.update(part for ref in refs for part in self._slices.get(ref, ()))
        return tuple(sorted(found.difference(refs)))

    def of_node(self, node_id: str) -> tuple[DeviceRef, ...] | None:
        """Give what one can have of a node; none if it has no devices, or is not known."""
        refs = self._nodes.get(node_id)
        return None if refs is None else tuple(refs)

    def label(self, ref: DeviceRef) -> BookedDevice:
        """Give what a device is called; one that is gone is still told."""
        device = self.devices.get(ref)
        if device is not None:
            return BookedDevice(
                node_id=ref.node_id,
                uuid=ref.uuid,
                node_name=device.node_name,
                index=device.index,
                parent_index=device.parent_index,
                short_name=device.short_name,
                is_gone=False,
            )
        neighbours = self._nodes.get(ref.node_id)
        name = self.devices[neighbours[0]].node_name if neighbours else ref.node_id
        return BookedDevice(
            node_id=ref.node_id,
            uuid=ref.uuid,
            node_name=name,
            index=None,
            parent_index=None,
            short_name=None,
            is_gone=True,
        )

    def word(self, ref: DeviceRef) -> str:
        """Name a device in a sentence: ``gpu01/3``, of a slice ``gpu01/3.1``."""
        device = self.devices.get(ref)
        if device is None:
            return f"{ref.node_id}/{ref.uuid}"
        return f"{device.node_name}/{_place(device)}"

    def named(self, word: str) -> DeviceRef | None:
        """Give the device that people call so: ``gpu01/3``, ``gpu01/3.1``, with a node's shown name or its id."""
        if "/" not in word:
            return None
        wanted = word.casefold()
        for ref, device in self.devices.items():
            place = _place(device)
            if wanted in (f"{device.node_name}/{place}".casefold(), f"{ref.node_id}/{place}".casefold()):
                return ref
        return None


def _place(device: ListedDevice) -> str:
    if device.parent_index is None:
        return str(device.index)
    return f"{device.parent_index}.{device.index}"
