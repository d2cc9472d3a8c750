"""What keeps one from using right now what one has booked: others at work on it, faults, nodes that are silent."""

from __future__ import annotations

from collections.abc import Collection

from gpuherd.client.choosing import is_usable_id
from gpuherd.client.herd_views import Gpu, Herd
from gpuherd.model.text import clean

__all__ = ["obstacles"]

_NOT_HEARD_OF = frozenset({"stale", "offline", "unknown"})


def obstacles(devices: Collection[tuple[str, str]], herd: Herd) -> list[str]:
    """Give a sentence for each of these devices, by node id and UUID, that cannot be used as it is now."""
    return [
        f"{clean(node.place(gpu), 80)} {words}"
        for node in herd.nodes
        for gpu in node.devices
        if (node.id, gpu.uuid) in devices and (words := _words(gpu))
    ]


def _words(gpu: Gpu) -> str:
    state, reason = gpu.state, clean(gpu.availability.reason, 200)
    if state == "fault":
        return f"does not work: {reason}"
    if state in _NOT_HEARD_OF:
        return f"is {state}: {reason}" if reason else f"is {state}"
    if not is_usable_id(gpu.uuid):
        return "has no UUID, so programs cannot select it"
    if gpu.users:
        names = ", ".join("an unknown user" if user is None else clean(user, 40) for user in gpu.users)
        return f"is in use by {names}" + (" (held idle)" if state == "held" and len(gpu.users) == 1 else "")
    return ""
