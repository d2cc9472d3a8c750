"""From a wish to devices: those named, whole nodes, what someone runs, or as many of a kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from gpuherd.bookings.herd import Herd
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.requests import MAX_DEVICES, AnyDevices
from gpuherd.bookings.wishes import fits
from gpuherd.fleet.listing import ListedDevice
from gpuherd.fleet.views import DeviceState
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.text import clean

__all__ = ["candidates", "check_count", "choose", "named_devices", "running_devices", "whole_nodes"]

_UNFIT_STATES: frozenset[DeviceState] = frozenset({"fault", "offline"})
_NOW_RANKS: dict[DeviceState, int] = {"free": 0, "booked": 1, "held": 2, "busy": 3, "stale": 4, "unknown": 4}
_LATER_RANKS: dict[DeviceState, int] = {"stale": 1, "unknown": 1}
"""What runs on a device now says nothing about later, but that it is not heard of does."""


def named_devices(
    herd: Herd, refs: Sequence[DeviceRef], *, path: str = "devices", first: int = 0
) -> list[DeviceRef]:
    """Check devices that were named; a partitioned GPU becomes its slices. ``Unfit`` names the first bad one.

    ``first`` is the number of the first one in the field at ``path``.
    """
    chosen: list[DeviceRef] = []
    for number, ref in enumerate(refs, first):
        place, device = f"{path}[{number}]", herd.devices.get(ref)
        if device is None:
            raise Unfit(
                "unknown_device",
                f"there is no device {clean(ref.uuid, 60)} on node {clean(ref.node_id, 60)}; "
                "GET /api/v1/gpus lists them",
                path=place,
            )
        parts = herd.slices_of(ref) if device.is_partitioned else (ref,)
        if not parts:
            raise Unfit(
                "no_slices",
                f"{herd.word(ref)} is in MIG mode but has no slices; create slices first",
                path=place,
            )
        if ref in herd.quiet or herd.quiet.issuperset(parts):
            raise Unfit("quiet_device", f"{herd.word(ref)} is not bookable; choose another", path=place)
        chosen += [part for part in parts if part not in herd.quiet]
    return chosen


def whole_nodes(herd: Herd, node_ids: Sequence[str]) -> list[DeviceRef]:
    """Give every device of some nodes, but for those that are kept out of booking."""
    chosen: list[DeviceRef] = []
    for number, node_id in enumerate(node_ids):
        refs = herd.of_node(node_id)
        if refs is None:
            raise Unfit(
                "unknown_node",
                f"there is no node {clean(node_id, 60)} with known GPUs",
                path=f"nodes[{number}]",
            )
        parts = [ref for ref in refs if ref not in herd.quiet]
        if not parts:
            name = herd.devices[refs[0]].node_name
            raise Unfit(
                "quiet_device",
                f"{name} is not bookable; choose another node",
                path=f"nodes[{number}]",
            )
        chosen += parts
    return chosen


def running_devices(herd: Herd, linux_names: Collection[str]) -> list[DeviceRef]:
    """Give the devices on which these users run processes now."""
    names = frozenset(linux_names)
    chosen = [device.ref for device in herd.lines if device.users & names and device.ref not in herd.quiet]
    if not chosen:
        known = ", ".join(sorted(names)) or "none"
        raise Unfit(
            "nothing_running",
            f"none of your processes runs on a bookable GPU (your Linux users: {known})",
            path="running",
        )
    return chosen


def candidates(herd: Herd, wish: AnyDevices) -> list[ListedDevice]:
    """Give all that a wish can be met with: never what is at fault, offline or kept out of booking.

    ``Unfit`` if the herd has too few, however free they are.
    """
    of_kind = [device for device in herd.lines if device.ref not in herd.quiet and fits(device, wish)]
    able = [device for device in of_kind if device.state not in _UNFIT_STATES]
    most = max(_per_node(able).values(), key=len, default=[]) if wish.same_node else able
    if len(most) >= wish.count:
        return able
    what = f" of type {clean(wish.model, 60)}" if wish.model else ""
    where = " on one node" if wish.same_node else ""
    broken = f"; {len(of_kind) - len(able)} more are in fault or offline" if len(of_kind) > len(able) else ""
    raise Unfit(
        "too_few_devices",
        f"{wish.count} GPU{'s' if wish.count > 1 else ''}{what} requested{where}, {len(most) or 'none'} bookable"
        f"{broken}",
        path="any.count" if of_kind else "any.model" if wish.model else "any",
    )


def choose(
    devices: Iterable[ListedDevice],
    wish: AnyDevices,
    *,
    is_free: Callable[[DeviceRef], bool],
    starts_now: bool,
) -> list[DeviceRef] | None:
    """Choose so many of the devices that are not booked, always the same ones; none if there are too few.

    For now, those that are free now come first. Among equals all come from one node if they can, from the node where
    the fewest are left over.
    """
    ranks = _NOW_RANKS if starts_now else _LATER_RANKS
    left = [device for device in devices if is_free(device.ref)]
    for worst in sorted({ranks.get(device.state, 0) for device in left}):
        able = [device for device in left if ranks.get(device.state, 0) <= worst]
        nodes = list(_per_node(able).values())
        whole = [node for node in nodes if len(node) >= wish.count]
        if whole:
            best = min(whole, key=len)
            return [device.ref for device in sorted(best, key=lambda d: ranks.get(d.state, 0))[: wish.count]]
        if not wish.same_node and len(able) >= wish.count:
            nodes.sort(key=len, reverse=True)
            return [device.ref for node in nodes for device in node][: wish.count]
    return None


def _per_node(devices: Iterable[ListedDevice]) -> dict[str, list[ListedDevice]]:
    nodes: dict[str, list[ListedDevice]] = {}
    for device in devices:
        nodes.setdefault(device.ref.node_id, []).append(device)
    return nodes


def check_count(refs: Collection[DeviceRef], *, path: str = "devices") -> None:
    """Raise ``Unfit`` for more devices than one booking may have."""
    if len(refs) > MAX_DEVICES:
        message = f"{len(refs)} devices are too many for one booking; the limit is {MAX_DEVICES}"
        raise Unfit("too_many_devices", message, path=path)
