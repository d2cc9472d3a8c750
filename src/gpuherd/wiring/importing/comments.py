"""comments.json: bookings of an old page, which the hub takes over when it starts and follows from then on."""

from __future__ import annotations

import contextlib
import re
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
from gpuherd.wiring.importing.wishes import Wishes

__all__ = ["read_comments_json"]

_PAGE_ZONE = re.compile(
    rb"""^[^/#\n]*date_default_timezone_set\s*\(\s*["']([^"'\n]{1,64})["']""", re.MULTILINE
)
_HERE = "this machine's time zone; if the old page ran elsewhere, set it with --zone"


def read_comments_json(file: Path, wishes: Wishes) -> Reading:
    """Take a comments.json, in whatever encoding; ``Misconfigured`` if it is none after all."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Failed(f"{file}: cannot be read now ({error.strerror})") from error
    zone, why = _zone(file, wishes)
    try:
        comments = read_comments(content, zone)
    except Refused as error:
        raise Misconfigured(f"{file}: {error}") from error
    now = time.time()
    notes = [
        Note(
            entry.line,
            f"{entry.host}:{entry.index} is {quoted(entry.name)}'s until "
            f"{datetime.fromtimestamp(entry.until, UTC).astimezone(zone):%Y-%m-%d %H:%M}",
        )
        for entry in comments.entries
        if entry.until > now
    ]
    past = len(comments.entries) - len(notes)
    if past:
        notes.append(Note(None, f"{past} {'entry is' if past == 1 else 'entries are'} past and not booked"))
    notes += [Note(complaint.line, complaint.sentence, False) for complaint in comments.complaints]
    notes.append(Note(None, f"dates are read as {zone.key}, {why}"))
    entry = BookingsEntry(file=str(file), zone=zone.key)
    return Reading(file=str(file), what="bookings of an old page", notes=tuple(notes), entries=(entry,))


def _zone(file: Path, wishes: Wishes) -> tuple[ZoneInfo, str]:
    """Give the zone of a file's dates and why: as someone said, as the page sets it, else that of this machine."""
    try:
        if wishes.zone is not None:
            return read_zone(wishes.zone), "from --zone"
    except Unfit as error:
        raise Misconfigured(f"--zone {quoted(wishes.zone or '')}: {error}") from error
    beside = (folder / "index.php" for folder in (file.parent, file.parent.parent))
    for page in (*(page for page in wishes.files if page.suffix == ".php"), *beside):
        with contextlib.suppress(OSError, Unfit):
            with page.open("rb") as opened:
                found = _PAGE_ZONE.search(opened.read(MAX_FILE_BYTES))
            if found is not None:
                zone = read_zone(found[1].decode("ascii", errors="replace"))
                return zone, f"as {page.name} sets it; if that is wrong, set it with --zone"
    try:
        return read_zone(machine_zone() or "UTC"), _HERE
    except Unfit:
        return read_zone("UTC"), _HERE
