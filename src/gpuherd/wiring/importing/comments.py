"""comments.json: bookings of an old page, which the hub takes over when it starts and follows from then on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from gpuherd.bookings.comments_json import MAX_FILE_BYTES, read_comments
from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.times import read_zone
from gpuherd.client.zone import machine_zone
from gpuherd.discovery.complaints import quoted
from gpuherd.model.errors import Failed, Misconfigured, Refused
from gpuherd.wiring.importing.reading import BookingsEntry, Note, Reading

__all__ = ["read_comments_json"]


def read_comments_json(file: Path) -> Reading:
    """Take a comments.json, in whatever encoding; ``Misconfigured`` if it is none after all."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Failed(f"{file}: cannot be read now ({error.strerror})") from error
    zone = _zone()
    try:
        comments = read_comments(content, zone)
    except Refused as error:
        raise Misconfigured(f"{file}: {error}") from error
    now = time.time()
    notes = [
        Note(
            None,
            f"{entry.host}:{entry.index} is {quoted(entry.name)}'s until "
            f"{datetime.fromtimestamp(entry.until, UTC).astimezone(zone):%Y-%m-%d %H:%M}",
        )
        for entry in comments.entries
        if entry.until > now
    ]
    past = len(comments.entries) - len(notes)
    if past:
        notes.append(Note(None, f"{past} {'entry is' if past == 1 else 'entries are'} past and not booked"))
    notes += [Note(None, str(complaint), False) for complaint in comments.complaints]
    notes.append(Note(None, f"dates are taken for {zone.key}; if the old page ran elsewhere, change zone"))
    entry = BookingsEntry(file=str(file), zone=zone.key)
    return Reading(file=str(file), what="bookings of an old page", notes=tuple(notes), entries=(entry,))


def _zone() -> ZoneInfo:
    try:
        return read_zone(machine_zone() or "UTC")
    except Unfit:
        return read_zone("UTC")
