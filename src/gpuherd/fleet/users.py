"""Who holds what: processes gathered by their owner."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from gpuherd.fleet.views import DevicePlace, UserView

__all__ = ["Holding", "users_of"]


class Holding(Struct, frozen=True, kw_only=True):
    """One process of a user on one device."""

    user: str | None
    process: tuple[str, int]
    place: DevicePlace
    gpu_memory_bytes: int


def users_of(holdings: Iterable[Holding]) -> tuple[UserView, ...]:
    """Gather holdings by user: most devices first, then most memory, then by name; unknown owners last."""
    by_user: dict[str | None, list[Holding]] = {}
    for holding in holdings:
        by_user.setdefault(holding.user, []).append(holding)
    views = []
    for user, held in by_user.items():
        places = {(h.place.node_id, h.place.uuid): h.place for h in held}
        views.append(
            UserView(
                user=user,
                devices=tuple(
                    sorted(places.values(), key=lambda place: (place.node_id, place.index, place.uuid))
                ),
                processes=len({holding.process for holding in held}),
                gpu_memory_bytes=sum(holding.gpu_memory_bytes for holding in held),
                busy_devices=sum(place.state == "busy" for place in places.values()),
                held_devices=sum(place.state == "held" for place in places.values()),
            )
        )
    views.sort(key=lambda v: (v.user is None, -len(v.devices), -v.gpu_memory_bytes, v.user or ""))
    return tuple(views)
