"""The next times at which a wish such as ``2 x A100 80GB`` can be met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gpuherd.bookings.choosing import candidates, choose
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.requests import AnyDevices
from gpuherd.bookings.slots import Slot, Span, free_starts
from gpuherd.model.bookings import DeviceRef

__all__ = ["SOON_SECONDS", "ChosenSlot", "add_split_gpus", "find_slots"]

SOON_SECONDS = 600
"""What starts within this is chosen by what is free now."""


class ChosenSlot(Struct, frozen=True, kw_only=True):
    """A time at which a wish can be met, and with what."""

    starts_at: int
    devices: tuple[DeviceRef, ...]
    free_until: int | None
    """When the first of them is booked next; none if no booking is known."""


def add_split_gpus(spans: dict[DeviceRef, list[Span]], herd: Herd) -> None:
    """Count a booking of a GPU that was split later as one of all its slices."""
    for ref in list(spans):
        for part in herd.slices_of(ref):
            spans[part] = sorted({*spans.get(part, ()), *spans[ref]})


def find_slots(
    herd: Herd,
    wish: AnyDevices,
    spans: Mapping[DeviceRef, Sequence[Span]],
    *,
    seconds: int,
    since: int,
    until: int,
    limit: int,
    now: int,
) -> list[ChosenSlot]:
    """Find up to ``limit`` slots from ``since`` to ``until``, the earliest first; ``Unfit`` if the herd has too few."""
    able = candidates(herd, wish)
    pools: dict[str, list[DeviceRef]] = {}
    for device in able:
        pools.setdefault(device.ref.node_id if wish.same_node else "", []).append(device.ref)
    found: dict[int, Slot] = {}
    for refs in pools.values():
        for slot in free_starts(
            spans, refs, count=wish.count, seconds=seconds, since=since, until=until, limit=limit
        ):
            known = found.get(slot.starts_at)
            free_until = slot.free_until if known is None else {**known.free_until, **slot.free_until}
            found[slot.starts_at] = Slot(slot.starts_at, free_until)
    slots = []
    for starts_at in sorted(found)[:limit]:
        free_until = found[starts_at].free_until
        devices = choose(
            able, wish, is_free=free_until.__contains__, starts_now=starts_at <= now + SOON_SECONDS
        )
        if devices is None:
            raise AssertionError("a slot has enough devices")
        ends = [end for end in (free_until[ref] for ref in devices) if end is not None]
        slots.append(
            ChosenSlot(starts_at=starts_at, devices=tuple(devices), free_until=min(ends, default=None))
        )
    return slots
