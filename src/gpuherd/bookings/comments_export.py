"""From bookings to the entries of a comments.json: who has each GPU now, and until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gpuherd.bookings.comments_json import COMMENT_LENGTH, CommentEntry
from gpuherd.bookings.comments_sync import plain_host
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import PAST_SHOWN_SECONDS, Booking, DeviceRef
from gpuherd.model.text import clip

__all__ = ["comment_entries", "page_names"]


def page_names(herd: Herd, known: Iterable[str] = ()) -> dict[str, str]:
    """Give for every node the name under which the older page looks for it; ``known`` are the hosts of its file.

    The page knows a host by the name in its file, or by that of the files it drops, or by the first part of its name.
    """
    nodes = {gpu.ref.node_id: gpu for gpu in herd.devices.values()}
    shared = Counter(node_id.partition(".")[0] for node_id in nodes)
    there = {plain_host(host): host for host in known}
    names: dict[str, str] = {}
    for node_id, gpu in nodes.items():
        own = gpu.node_name if plain_host(gpu.node_name) == node_id else node_id
        first = own.partition(".")[0]
        is_short = not gpu.is_dropped and shared[plain_host(first)] == 1 and not first.isdigit()
        short = first if is_short else own
        names[node_id] = there.get(node_id) or there.get(plain_host(short), short)
    return names


def comment_entries(
    herd: Herd, bookings: Iterable[Booking], now: float, names: Mapping[str, str] | None = None
) -> dict[str, list[CommentEntry]]:
    """Give the entries of every node, by its page name: of each GPU the booking that runs, or ended last.

    The file has no place for a start, so what has not begun is not told. A GPU of which slices are booked is told with
    the names of all their holders, until the last of them ends.
    """
    by_device: dict[DeviceRef, list[Booking]] = {}
    for booking in bookings:
        if booking.state == "active" and booking.starts_at <= now < booking.ends_at + PAST_SHOWN_SECONDS:
            for device in booking.devices:
                by_device.setdefault(device, []).append(booking)
    names = page_names(herd) if names is None else names
    hosts: dict[str, list[CommentEntry]] = {}
    for gpu in herd.devices.values():
        host = names[gpu.ref.node_id]
        entries = hosts.setdefault(host, [])
        if gpu.parent_uuid is None:
            found = [one for part in (gpu.ref, *herd.slices_of(gpu.ref)) for one in by_device.get(part, ())]
            entries += [_entry(host, gpu, found, now)] if found else []
    return hosts


def _entry(host: str, gpu: ListedDevice, bookings: list[Booking], now: float) -> CommentEntry:
    running = [booking for booking in bookings if booking.ends_at > now]
    told = list(dict.fromkeys(running or [max(bookings, key=lambda booking: (booking.ends_at, booking.id))]))
    return CommentEntry(
        host=host,
        index=gpu.index,
        name=", ".join(dict.fromkeys(booking.owner_name for booking in told)),
        until=max(booking.ends_at for booking in told),
        comment=clip("; ".join(filter(None, dict.fromkeys(map(_comment, told)))), COMMENT_LENGTH),
    )


def _comment(booking: Booking) -> str:
    """Say in one line what a booking says in two places; a title that was cut off is told whole."""
    rest = " ".join(booking.comment.split())
    if not rest or not booking.title:
        return rest or booking.title
    is_cut = booking.title.endswith("…") and rest.startswith(booking.title[:-1])
    return rest if is_cut else f"{booking.title}: {rest}"
