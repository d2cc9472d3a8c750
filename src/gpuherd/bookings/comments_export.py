"""From bookings to the entries of a comments.json: who has each GPU now, and until when."""

from __future__ import annotations

from collections.abc import Iterable

from gpuherd.bookings.comments_json import COMMENT_LENGTH, CommentEntry
from gpuherd.bookings.comments_sync import plain_host
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import Booking, DeviceRef
from gpuherd.model.text import clip

__all__ = ["PAST_SHOWN_SECONDS", "comment_entries"]

PAST_SHOWN_SECONDS = 2 * 86_400
"""The older page shows a booking in grey for two days after its end, so it is told for as long."""


def comment_entries(herd: Herd, bookings: Iterable[Booking], now: float) -> dict[str, list[CommentEntry]]:
    """Give the entries of every node, by its own name or its id: of each GPU the booking that runs, or ended last.

    The file has no place for a start, so what has not begun is not told. A GPU of which slices are booked is told with
    the names of all their holders, until the last of them ends.
    """
    by_device: dict[DeviceRef, list[Booking]] = {}
    for booking in bookings:
        if booking.state == "active" and booking.starts_at <= now < booking.ends_at + PAST_SHOWN_SECONDS:
            for device in booking.devices:
                by_device.setdefault(device, []).append(booking)
    hosts: dict[str, list[CommentEntry]] = {}
    for gpu in herd.devices.values():
        entries = hosts.setdefault(_host(gpu), [])
        if gpu.parent_uuid is None:
            found = [one for part in (gpu.ref, *herd.slices_of(gpu.ref)) for one in by_device.get(part, ())]
            entries += [_entry(gpu, found, now)] if found else []
    return hosts


def _host(gpu: ListedDevice) -> str:
    """Give the node's own name, which the older page knows it by; of one that is shown under another, its id."""
    node_id = gpu.ref.node_id
    return gpu.node_name if plain_host(gpu.node_name) == node_id else node_id


def _entry(gpu: ListedDevice, bookings: list[Booking], now: float) -> CommentEntry:
    running = [booking for booking in bookings if booking.ends_at > now]
    told = list(dict.fromkeys(running or [max(bookings, key=lambda booking: (booking.ends_at, booking.id))]))
    return CommentEntry(
        host=_host(gpu),
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
