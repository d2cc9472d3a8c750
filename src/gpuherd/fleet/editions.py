"""A message of the stream in the editions of all privacy classes that look: what they have in common is encoded once.

An edition is two pieces of JSON, one after the other: a head of its own, and the columns of numbers, which are most of
it and the same for everyone who sees the herd.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from gpuherd.fleet.changes import (
    DeviceBookings,
    DeviceColumns,
    DeviceDetailColumns,
    DeviceStateColumns,
    FleetChange,
    HostColumns,
    HostStateColumns,
    UseColumns,
)
from gpuherd.fleet.privacy import Face
from gpuherd.fleet.views import FleetNotice, NodeInventory, Totals

__all__ = ["CountsEditor", "Edition", "Editor", "FaceEditor", "Message"]

C = TypeVar("C", bound=Struct)

_encode = msgspec.json.Encoder().encode


class _Head(Struct, frozen=True, kw_only=True):
    """The part of a ``FleetChange`` that differs between classes, and what is small."""

    tick: int
    after_tick: int | None
    time: float
    tick_seconds: float
    notices: tuple[FleetNotice, ...]
    totals: Totals
    nodes: list[Raw]
    removed: list[int]
    device_states: DeviceStateColumns
    device_bookings: list[DeviceBookings]
    host_states: HostStateColumns


class _Numbers(Struct, frozen=True, kw_only=True):
    """The part that is the same for all."""

    devices: DeviceColumns
    device_details: DeviceDetailColumns
    hosts: HostColumns
    uses: UseColumns


class Message:
    """One message, and what of it all classes share."""

    def __init__(self, change: FleetChange) -> None:
        self.change = change

    @cached_property
    def numbers(self) -> bytes:
        """The end of the JSON of every edition."""
        change = self.change
        return _joined(
            _Numbers(
                devices=change.devices,
                device_details=change.device_details,
                hosts=change.hosts,
                uses=change.uses,
            )
        )


class Edition(Struct, frozen=True):
    """A message for one class: ``head`` and then ``numbers`` is its JSON."""

    head: bytes
    numbers: bytes


class Editor(Protocol):
    """Makes one class's editions."""

    def edition(self, message: Message) -> Edition:
        """Encode a message as this class sees it."""


class FaceEditor:
    """Makes the editions of a class that sees the herd. What it says of nodes is kept while it stays the same."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._nodes: dict[int, tuple[NodeInventory, Raw]] = {}

    def edition(self, message: Message) -> Edition:
        """Encode a message as this class sees it."""
        change, face = message.change, self._face
        for row in change.removed:
            self._nodes.pop(row, None)
        head = _Head(
            tick=change.tick,
            after_tick=change.after_tick,
            time=change.time,
            tick_seconds=change.tick_seconds,
            notices=face.notices(change.notices),
            totals=change.totals,
            nodes=[self._node(node) for node in change.nodes],
            removed=change.removed,
            device_states=face.device_states(change.device_states),
            device_bookings=[face.bookings(booked) for booked in change.device_bookings],
            host_states=face.host_states(change.host_states),
        )
        return Edition(_encode(head)[:-1] + b",", message.numbers)

    def _node(self, node: NodeInventory) -> Raw:
        kept = self._nodes.get(node.row)
        if kept is None or kept[0] is not node:
            kept = self._nodes[node.row] = (node, Raw(_encode(self._face.inventory(node))))
        return kept[1]


class CountsEditor:
    """Makes the editions of those who see totals alone."""

    def edition(self, message: Message) -> Edition:
        """Encode the totals."""
        change = message.change
        head = _Head(
            tick=change.tick,
            after_tick=change.after_tick,
            time=change.time,
            tick_seconds=change.tick_seconds,
            notices=(),
            totals=change.totals,
            nodes=[],
            removed=[],
            device_states=_empty(DeviceStateColumns),
            device_bookings=[],
            host_states=_empty(HostStateColumns),
        )
        return Edition(_encode(head)[:-1] + b",", _NO_NUMBERS)


def _empty(columns: type[C]) -> C:
    return columns(**{name: [] for name in columns.__struct_fields__})


def _joined(numbers: _Numbers) -> bytes:
    return _encode(numbers)[1:]


_NO_NUMBERS = _joined(
    _Numbers(
        devices=_empty(DeviceColumns),
        device_details=_empty(DeviceDetailColumns),
        hosts=_empty(HostColumns),
        uses=_empty(UseColumns),
    )
)
