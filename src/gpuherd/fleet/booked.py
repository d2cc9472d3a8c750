"""Bookings at their devices: which run now, and what happens on the devices meanwhile.

Bookings come in whenever they change; their phases move with the hub's clock. A tick looks only at devices whose phase
is due, whose node has sent another process table, or that have moved; all others cost a few array operations together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import get_args

import numpy as np

from gpuherd.fleet.availability import BOOKED, BUSY, FREE, HELD
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import Array, DeviceRows
from gpuherd.fleet.views import BookingPhase, DeviceBookingView
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, BookingUse, DeviceBookingFacts, DeviceRef
from gpuherd.model.people import person_key

__all__ = ["BookedDevices"]

CLOCK_STEP_SECONDS = 1.0
"""The wall clock may be set back by this much, as time services do, before everything is looked at anew."""

_USES: tuple[BookingUse, ...] = get_args(BookingUse)
_UNUSED, _HOLDER, _SHARED, _OTHERS, _UNKNOWN = range(len(_USES))
_NEVER_JUDGED = 255
"""Differs from every use, so that the first one is shown."""
Bookings = tuple[DeviceBookingFacts, ...]
User = tuple[str | None, str | None]
"""As the node calls someone, and as they are shown, which may be the one whom an alias stands for; by person_key."""


class _BookedDevice:
    """A device with bookings. ``offsets``: the places in the node's device list whose users count here."""

    __slots__ = ("current", "due_at", "facts", "node", "offsets", "row", "shown", "users", "uuid")

    def __init__(
        self, node: Node, row: int, uuid: str, offsets: frozenset[int], facts: Iterable[DeviceBookingFacts]
    ) -> None:
        self.node, self.row, self.uuid, self.offsets = node, row, uuid, offsets
        self.facts: Bookings = tuple(sorted(facts, key=lambda fact: (fact.starts_at, fact.booking_id)))
        self.shown: tuple[tuple[BookingPhase, DeviceBookingFacts], ...] = ()
        self.current: DeviceBookingFacts | None = None
        self.due_at = -math.inf
        self.users = _UNUSED

    def move_to(self, now: float) -> None:
        """Find the booking that ended last, the one that runs and the next one, and when that changes.

        One that waits for approval can only be the next: the device must not look as if it were free then.
        """
        firm = [f for f in self.facts if not f.is_pending]
        past = [f for f in firm if now - PAST_SHOWN_SECONDS < f.ends_at <= now]
        current = [f for f in firm if f.starts_at <= now < f.ends_at]
        coming = [f for f in self.facts if f.starts_at > now]
        self.current = current[0] if current else None
        self.shown = (
            *(("past", fact) for fact in sorted(past, key=lambda fact: fact.ends_at)[-1:]),
            *(("current", fact) for fact in current[:1]),
            *(("next", fact) for fact in coming[:1]),
        )
        edges = (e for f in self.facts for e in (f.starts_at, f.ends_at, f.ends_at + PAST_SHOWN_SECONDS))
        self.due_at = min((edge for edge in edges if edge > now), default=math.inf)

    def judge_users(self, users_on: Mapping[int, set[User]]) -> None:
        """Tell whose processes are there, from the node's process table alone; an alias of the holder is the holder."""
        users = set().union(*(users_on.get(offset, ()) for offset in self.offsets))
        holders = (
            {person_key(name) for name in self.current.linux_names} if self.current is not None else set()
        )
        own = {user for user in users if not holders.isdisjoint(user)}
        others = {user for user in users - own if user[0] is not None}
        if own:
            self.users = _SHARED if others else _HOLDER
        elif others:
            self.users = _OTHERS
        else:
            self.users = _UNKNOWN if users else _UNUSED


class BookedDevices:
    """All bookings that matter now. Owned by the fleet, on its event loop."""

    def __init__(self, rows: DeviceRows, nodes: Mapping[str, Node]) -> None:
        self._rows = rows
        self._nodes = nodes
        self._facts: dict[str, dict[str, Bookings]] = {}
        self._devices: dict[str, list[_BookedDevice]] = {}
        self._moved: set[str] = set()
        self._tables: set[str] = set()
        self._all: list[_BookedDevice] = []
        self._due: Array = np.empty(0)
        self._current: list[_BookedDevice] = []
        self._current_rows: Array = np.empty(0, dtype=np.intp)
        self._users: Array = np.empty(0, dtype=np.uint8)
        self._uses: Array = np.empty(0, dtype=np.uint8)
        self._now = -math.inf
        self.shown: dict[int, tuple[DeviceBookingView, ...]] = {}
        """What is to be shown, by row, as of the last tick."""
        self.users_of: dict[str, frozenset[str]] = {}
        """The users on the nodes that a holder is."""
        self._changed: set[int] = set()

    def take(self, facts: Iterable[DeviceBookingFacts]) -> None:
        """Take all bookings that have not ended more than three days ago, instead of those before."""
        by_node: dict[str, dict[str, list[DeviceBookingFacts]]] = {}
        names: dict[str, frozenset[str]] = {}
        for fact in facts:
            by_node.setdefault(fact.device.node_id, {}).setdefault(fact.device.uuid, []).append(fact)
            names[fact.holder] = names.get(fact.holder, frozenset()) | fact.linux_names
        new = {
            node_id: {uuid: tuple(found) for uuid, found in by_uuid.items()}
            for node_id, by_uuid in by_node.items()
        }
        old, self._facts = self._facts, new
        self._moved |= {
            node_id for node_id in old.keys() | new.keys() if old.get(node_id) != new.get(node_id)
        }
        self.users_of = names

    def devices_moved(self, node_id: str) -> None:
        """Look a node's devices up anew: it has others, other rows, or is gone."""
        if node_id in self._facts or node_id in self._devices:
            self._moved.add(node_id)

    def table_changed(self, node_id: str) -> None:
        """Look anew whose processes are on a node's devices."""
        if node_id in self._facts:
            self._tables.add(node_id)

    def begin_tick(self, now: float) -> None:
        """Mark the devices that are booked at ``now`` (UTC), before their states are judged."""
        is_changed = self._place_moved()
        if now < self._now - CLOCK_STEP_SECONDS:
            self._due[:] = -math.inf
        self._now = now
        moved_on = [self._all[place] for place in np.flatnonzero(self._due <= now).tolist()]
        for device in moved_on:
            device.move_to(now)
            self._tables.add(device.node.id)
        if moved_on:
            self._due = np.array([device.due_at for device in self._all], dtype=np.float64)
        is_changed = self._look_at_tables() or is_changed or bool(moved_on)
        if is_changed:
            self._gather({device.row for device in moved_on})
            for device in moved_on:
                self._show(device, "unknown")
        rows = self._rows
        rows.is_booked[:] = False
        rows.is_misused[:] = False
        rows.is_booked[self._current_rows] = True
        misused = (self._users == _SHARED) | (self._users == _OTHERS)
        rows.is_misused[self._current_rows[misused]] = True

    def end_tick(self) -> None:
        """Tell what happens on the devices that are booked, after their states were judged."""
        rows = self._current_rows
        states = self._rows.state[rows]
        in_use = (states == BUSY) | (states == HELD)
        blind = self._rows.is_blind[rows] | (self._users == _UNUSED)
        uses = np.full(len(rows), _UNKNOWN, dtype=np.uint8)
        uses[(states == BOOKED) | (states == FREE)] = _UNUSED
        told = in_use & ~blind
        uses[told] = self._users[told]
        for place in np.flatnonzero(uses != self._uses).tolist():
            self._show(self._current[place], _USES[uses[place]])
        self._uses = uses

    def take_changed(self) -> set[int]:
        """Give the rows of which something else is to be shown than at the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def uses(self) -> dict[tuple[int, DeviceRef], BookingUse]:
        """Tell what happens on every device of every booking that runs."""
        return {
            (device.current.booking_id, device.current.device): _USES[code]
            for device, code in zip(self._current, self._uses.tolist(), strict=True)
            if device.current is not None and device.current.device.uuid == device.uuid
        }

    # -- within a tick -----------------------------------------------------------------------------------------

    def _place_moved(self) -> bool:
        if not self._moved:
            return False
        for node_id in self._moved:
            for device in self._devices.pop(node_id, ()):
                if self.shown.pop(device.row, None) is not None:
                    self._changed.add(device.row)
            node, by_uuid = self._nodes.get(node_id), self._facts.get(node_id)
            if node is not None and by_uuid is not None:
                self._devices[node_id] = _placed(node, by_uuid)
        self._moved.clear()
        self._all = [device for devices in self._devices.values() for device in devices]
        self._due = np.array([device.due_at for device in self._all], dtype=np.float64)
        return True

    def _look_at_tables(self) -> bool:
        nodes, self._tables = self._tables, set()
        for node_id in nodes:
            node, devices = self._nodes.get(node_id), self._devices.get(node_id)
            if node is None or devices is None:
                continue
            users_on: dict[int, set[User]] = {}
            for use in node.table.uses:
                if use.kind == "compute":
                    owner, shown = node.owners[use.process], node.table.processes[use.process].user
                    users_on.setdefault(use.device, set()).add((_key(owner), _key(shown)))
            for device in devices:
                device.judge_users(users_on)
        return bool(nodes)

    def _gather(self, moved_on: set[int]) -> None:
        before = {
            device.row: code
            for device, code in zip(self._current, self._uses.tolist(), strict=True)
            if device.row not in moved_on
        }
        self._current = [device for device in self._all if device.current is not None]
        self._current_rows = np.array([device.row for device in self._current], dtype=np.intp)
        self._users = np.array([device.users for device in self._current], dtype=np.uint8)
        self._uses = np.array(
            [before.get(device.row, _NEVER_JUDGED) for device in self._current], dtype=np.uint8
        )

    def _show(self, device: _BookedDevice, use: BookingUse) -> None:
        self._changed.add(device.row)
        if not device.shown:
            self.shown.pop(device.row, None)
            return
        self.shown[device.row] = tuple(
            DeviceBookingView(
                id=fact.booking_id,
                holder=fact.holder,
                title=fact.title,
                starts_at=fact.starts_at,
                ends_at=fact.ends_at,
                phase=phase,
                use=use if phase == "current" else None,
            )
            for phase, fact in device.shown
        )


def _key(user: str | None) -> str | None:
    return None if user is None else person_key(user)


def _placed(node: Node, by_uuid: Mapping[str, Bookings]) -> list[_BookedDevice]:
    """Find the rows of a node's booked devices. A GPU that was split after it was booked is booked with its slices."""
    offset_of = {facts.uuid: offset for offset, facts in enumerate(node.devices)}
    slices: dict[str, list[int]] = {}
    for offset, facts in enumerate(node.devices):
        if facts.parent_uuid is not None:
            slices.setdefault(facts.parent_uuid, []).append(offset)
    found: dict[int, list[DeviceBookingFacts]] = {}
    for uuid, bookings in by_uuid.items():
        if uuid in offset_of:
            for offset in (offset_of[uuid], *slices.get(uuid, ())):
                found.setdefault(offset, []).extend(bookings)
    return [
        _BookedDevice(
            node,
            node.start + offset,
            node.devices[offset].uuid,
            frozenset([offset, *slices.get(node.devices[offset].uuid, ())]),
            bookings,
        )
        for offset, bookings in found.items()
    ]
