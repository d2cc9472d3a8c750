"""How long a device has been what it is must survive a restart and a change of the node's layout."""

from __future__ import annotations

import math

import msgspec

from gpuherd.fleet.clock import Clock
from gpuherd.fleet.node import Node
from gpuherd.fleet.rows import DeviceRows
from gpuherd.fleet.views import DEVICE_STATES, DeviceState

__all__ = ["KeptState", "kept_states", "restore_states"]


class KeptState(msgspec.Struct, frozen=True, array_like=True):
    """A device's state with wall-clock times, which mean the same after a restart."""

    state: DeviceState
    since: float | None
    known_state: DeviceState
    known_since: float | None
    active_at: float | None
    taken_at: float | None


_TIMES = ("since", "known_since", "active_at", "taken_at")
_decoder = msgspec.msgpack.Decoder(dict[str, KeptState])


def kept_states(node: Node, rows: DeviceRows, clock: Clock) -> dict[str, KeptState]:
    """Read the states of a node's devices by uuid."""
    offset = clock.wall() - clock.monotonic()
    kept = {}
    for row, device in enumerate(node.devices, node.start):
        since, known_since, active_at, taken_at = (
            float(value) + offset if math.isfinite(value) else None
            for value in (getattr(rows, name)[row] for name in _TIMES)
        )
        kept[device.uuid] = KeptState(
            DEVICE_STATES[rows.state[row]],
            since,
            DEVICE_STATES[rows.known_state[row]],
            known_since,
            active_at,
            taken_at,
        )
    return kept


def restore_states(node: Node, rows: DeviceRows, clock: Clock, kept: bytes | dict[str, KeptState]) -> None:
    """Put kept states back where the uuid is still there; times in the future are brought to now."""
    if isinstance(kept, bytes):
        try:
            kept = _decoder.decode(kept)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
    now, offset = clock.monotonic(), clock.wall() - clock.monotonic()
    for row, device in enumerate(node.devices, node.start):
        state = kept.get(device.uuid)
        if state is None:
            continue
        rows.state[row] = DEVICE_STATES.index(state.state)
        rows.known_state[row] = DEVICE_STATES.index(state.known_state)
        for name, unknown in zip(_TIMES, (math.nan, math.nan, -math.inf, -math.inf), strict=True):
            value = getattr(state, name)
            getattr(rows, name)[row] = unknown if value is None else min(now, value - offset)
