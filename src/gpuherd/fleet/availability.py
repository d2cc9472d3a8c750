"""Free, busy, held, booked, fault, stale, offline or unknown: decided here, once, for every face of the product.

The rule behind the rules: *free* is claimed only when fresh and complete data says so.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from gpuherd.fleet.evidence import HARDWARE_TEXTS, SLOWED, Hardware, hardware_faults
from gpuherd.fleet.idle import note_work
from gpuherd.fleet.rows import DEVICE_COLUMN, Array, DeviceRows, NodeRows
from gpuherd.fleet.settings import AvailabilitySettings
from gpuherd.fleet.views import DEVICE_STATES, NODE_STATES

__all__ = ["DECIDING_COLUMNS", "REASONS", "Reason", "assess_devices", "assess_nodes"]

_UTILIZATION = DEVICE_COLUMN["utilization_gpu"]
_MEMORY_USED = DEVICE_COLUMN["memory_used_bytes"]
DECIDING_COLUMNS = [_UTILIZATION, _MEMORY_USED]
"""Without these, a device is not free."""
FREE, BUSY, HELD, BOOKED, FAULT, STALE, OFFLINE, UNKNOWN = range(len(DEVICE_STATES))
LIVE_NODE, STALE_NODE, OFFLINE_NODE, NEVER_NODE = range(len(NODE_STATES))


class Reason(IntEnum):
    """Why a device is in its state; ``FAULT`` stands for the node's own words."""

    NOT_REPORTED = 0
    FREE = 1
    WORKING = 2
    PAUSED = 3
    TAKEN_BLIND = 4
    HELD_PROCESS = 5
    HELD_MEMORY = 6
    FAULT = 7
    STALE = 8
    OFFLINE = 9
    PARTIAL = 10
    SLICES = 11
    NO_SLICES = 12
    BOOKED = 13
    MISUSED = 14
    IMPOSSIBLE = 15
    DUPLICATE = 16
    MISSING = 17
    HARDWARE = 32
    """And above: ``HARDWARE`` plus the ``Hardware`` that forbids *free*."""
    ECC = 33
    POWER_BRAKE = 34
    THERMAL = 35
    SLOWDOWN = 36


REASONS: dict[Reason, str] = {
    Reason.NOT_REPORTED: "not reported yet",
    Reason.FREE: "no processes, no memory in use, no activity",
    Reason.WORKING: "computing",
    Reason.PAUSED: "in use, not computing right now",
    Reason.TAKEN_BLIND: "in use, utilisation unknown",
    Reason.HELD_PROCESS: "a process holds it without computing",
    Reason.HELD_MEMORY: "memory is in use, but no process is visible and it is not computing",
    Reason.FAULT: "fault",
    Reason.STALE: "the node's last report is late",
    Reason.OFFLINE: "the node is offline",
    Reason.PARTIAL: "some values that decide this could not be read",
    Reason.SLICES: "split into slices",
    Reason.NO_SLICES: "MIG is on, but there are no slices",
    Reason.BOOKED: "booked, not in use",
    Reason.MISUSED: "booked, but used by someone other than the holder",
    Reason.IMPOSSIBLE: "the driver reports impossible values; restart the agent, or reload the driver",
    Reason.DUPLICATE: "another node reports the same GPU; keep one of the two",
    Reason.MISSING: "missing: its node no longer finds it",
    Reason.HARDWARE: "fault",
    **{Reason(Reason.HARDWARE + fault): text for fault, text in HARDWARE_TEXTS.items()},
}


def assess_nodes(nodes: NodeRows, now: float, settings: AvailabilitySettings) -> None:
    """Set each node's state from the age of its last live sample."""
    age = now - nodes.received
    overdue = settings.stale_after_intervals * np.nan_to_num(nodes.interval, nan=1.0)
    nodes.state[:] = np.select(
        # A node that reports once an hour is not offline after a minute.
        [np.isinf(age), age > np.maximum(settings.offline_after_seconds, overdue), age > overdue],
        [NEVER_NODE, OFFLINE_NODE, STALE_NODE],
        LIVE_NODE,
    )


def assess_devices(rows: DeviceRows, nodes: NodeRows, now: float, settings: AvailabilitySettings) -> None:
    """Set every device's state, reason and since-time; ``assess_nodes`` must have run for the same ``now``."""
    contact = nodes.state[rows.node]
    received = nodes.received[rows.node]
    fresh = contact == LIVE_NODE
    with np.errstate(invalid="ignore"):
        utilization = rows.values[:, _UTILIZATION]
        used = rows.values[:, _MEMORY_USED]
        works = utilization >= settings.busy_utilization
        held_bytes = used - rows.explained_memory
        holds_memory = (held_bytes > settings.busy_memory * rows.memory_total) | (
            (held_bytes > settings.busy_memory_bytes) & rows.has_memory_bound
        )
    has_process = rows.compute_uses > 0
    taken = has_process | holds_memory
    utilization_known = ~np.isnan(utilization)
    memory_known = ~np.isnan(used + rows.memory_total)
    # A device that does not support utilisation never tells it; if it failed just now, it might have said "computing".
    decided = (memory_known | rows.is_unified) & (utilization_known | ~(rows.is_partial | rows.is_unified))
    can_tell = decided & ~rows.is_blind
    hardware = hardware_faults(rows.values, rows.ecc_baseline, rows.parent)
    is_broken = hardware == Hardware.ECC
    is_slowed = hardware >= SLOWED

    at_work = fresh & works
    # One moment of work in a long idle stretch makes the device busy for that moment, and no longer.
    is_more_than_a_blip = (
        note_work(rows, at_work, now, settings.idle_window_seconds) > settings.idle_work_share
    )
    rows.active_at[at_work & is_more_than_a_blip] = now
    begins = fresh & taken & np.isinf(rows.taken_at)
    rows.taken_at[begins] = now
    rows.taken_at[fresh & ~taken] = -np.inf
    idle_since = np.maximum(rows.active_at, rows.taken_at)
    idles = taken & utilization_known & (now - idle_since >= settings.idle_window_seconds)

    state, reason = _choose(
        [
            ((contact == NEVER_NODE) | (rows.node < 0), UNKNOWN, Reason.NOT_REPORTED),
            (contact == OFFLINE_NODE, OFFLINE, Reason.OFFLINE),
            (contact == STALE_NODE, STALE, Reason.STALE),
            (rows.is_faulty, FAULT, Reason.FAULT),
            (rows.is_missing, FAULT, Reason.MISSING),
            (is_broken, FAULT, Reason.HARDWARE),
            (rows.is_partitioned, FREE, Reason.SLICES),
            (works, BUSY, Reason.WORKING),
            (taken & ~utilization_known, BUSY, Reason.TAKEN_BLIND),
            (idles & has_process, HELD, Reason.HELD_PROCESS),
            (idles, HELD, Reason.HELD_MEMORY),
            (taken, BUSY, Reason.PAUSED),
            (is_slowed, FAULT, Reason.HARDWARE),
            (rows.is_impossible, UNKNOWN, Reason.IMPOSSIBLE),
            (can_tell & rows.is_duplicate, UNKNOWN, Reason.DUPLICATE),
            (can_tell & rows.is_booked, BOOKED, Reason.BOOKED),
            (can_tell, FREE, Reason.FREE),
        ],
        otherwise=(UNKNOWN, Reason.PARTIAL),
    )
    in_use = (state == BUSY) | (state == HELD)
    reason[in_use & rows.is_misused & ~rows.is_partitioned] = Reason.MISUSED
    _gather_slices(rows, state, reason)
    is_idle_parent = rows.is_partitioned & is_slowed & fresh & (state != BUSY) & (state != HELD)
    state[is_idle_parent], reason[is_idle_parent] = FAULT, Reason.HARDWARE
    reason = np.where(reason == Reason.HARDWARE, reason + hardware, reason).astype(np.uint8)
    _date(rows, state, now, received, idle_since)
    rows.state[:] = state
    rows.reason[:] = reason


def _choose(rules: list[tuple[Array, int, Reason]], otherwise: tuple[int, Reason]) -> tuple[Array, Array]:
    conditions = [condition for condition, _, _ in rules]
    first = np.full(len(conditions[0]), len(rules), dtype=np.intp)
    for position in reversed(range(len(rules))):
        first[conditions[position]] = position
    states = np.array([state for _, state, _ in rules] + [otherwise[0]], dtype=np.uint8)
    reasons = np.array([reason for _, _, reason in rules] + [otherwise[1]], dtype=np.uint8)
    return states[first], reasons[first]


def _gather_slices(rows: DeviceRows, state: Array, reason: Array) -> None:
    """Give a partitioned GPU the most telling state among its slices: any at work, held, booked, else free.

    A slice that is in fault or cannot be read leaves the parent unknown rather than free; so does the lack of any
    slice, because nothing runs on such a GPU.
    """
    slices = np.flatnonzero(rows.parent >= 0)
    by_rank = np.array([FREE, BOOKED, UNKNOWN, HELD, BUSY], dtype=np.uint8)
    rank = np.full(len(DEVICE_STATES), 2, dtype=np.uint8)  # a fault of a slice too
    rank[by_rank] = range(len(by_rank))
    best = np.full(len(state), rank[UNKNOWN], dtype=np.uint8)
    is_split = np.zeros(len(state), dtype=np.bool_)
    is_split[rows.parent[slices]] = True
    best[is_split] = rank[FREE]
    np.maximum.at(best, rows.parent[slices], rank[state[slices]])
    parents = rows.is_partitioned & (state == FREE)
    state[parents] = by_rank[best[parents]]
    reason[parents & ~is_split] = Reason.NO_SLICES


def _date(rows: DeviceRows, state: Array, now: float, received: Array, idle_since: Array) -> None:
    changed = np.flatnonzero(state != rows.state)
    if changed.size:
        new, old = state[changed], rows.state[changed]
        since = np.full(changed.size, now)
        silent = (new == STALE) | (new == OFFLINE)
        since[silent] = received[changed][silent]
        held = new == HELD
        since[held] = idle_since[changed][held]
        resumed = (old == STALE) & (new == rows.known_state[changed])
        since[resumed] = rows.known_since[changed][resumed]
        rows.since[changed] = since
    fresh = (state != STALE) & (state != OFFLINE) & (state != UNKNOWN)
    rows.known_state[fresh] = state[fresh]
    rows.known_since[fresh] = rows.since[fresh]
