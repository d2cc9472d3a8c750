"""Limit how many devices a node may report in a day: each costs memory in the history for as long as it is kept."""

from __future__ import annotations

from collections.abc import Collection

from gpuherd.model.errors import Refused

__all__ = ["MAX_IDS_PER_DAY", "TOO_MANY_DEVICES", "DeviceIds"]

TOO_MANY_DEVICES = "too_many_devices"
MAX_IDS_PER_DAY = 2048
"""Eight GPUs whose seven slices are recreated every 40 minutes stay below it."""
_DAY_SECONDS = 86_400.0


class DeviceIds:
    """The ids that one node has reported today. ``now`` is monotonic seconds."""

    __slots__ = ("_began_at", "_ids")

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._began_at: float | None = None

    def take(self, ids: Collection[str], now: float) -> None:
        """Count the ids of new facts; ``Refused`` ``too_many_devices`` if they are too many for one day."""
        if self._began_at is None or now - self._began_at >= _DAY_SECONDS:
            self._ids, self._began_at = set(), now
        if len(self._ids.union(ids)) > MAX_IDS_PER_DAY:
            raise Refused(
                TOO_MANY_DEVICES,
                f"this node has reported {len(self._ids):,} different devices within a day; at most "
                f"{MAX_IDS_PER_DAY:,} are accepted. Check what uses its credential, or wait until tomorrow",
            )
        self._ids.update(ids)
