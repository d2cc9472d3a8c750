"""``gpuherd hub import-comments`` and ``export-comments``: the bookings of an older page, once."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.as_owner import acting_as_owner, check_used

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from gpuherd.api.open_records import OpenRecords
    from gpuherd.wiring.config import Config

__all__ = ["export_comments", "import_comments"]

_ZONE = "IANA time zone of the dates. Default: the one in the configuration."


def _config(context: click.Context) -> Config:
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj  # of ``gpuherd hub``
    return load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}})


@contextlib.contextmanager
def _records(config: Config) -> Iterator[OpenRecords]:
    from gpuherd.api.open_records import open_hub_records

    with acting_as_owner(config.hub.state_dir):
        check_used(config.hub)
        with contextlib.closing(open_hub_records(config.hub)) as records:
            yield records


def _zone(config: Config, given: str | None) -> ZoneInfo:
    from gpuherd.bookings.times import read_zone

    comments = config.bookings.comments
    return read_zone(given or (comments.zone if comments is not None else None) or config.bookings.zone)


@click.command("import-comments")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--zone", metavar="ZONE", help=_ZONE)
@click.option("--dry-run", is_flag=True, help="Show what would be booked; book nothing.")
@click.pass_context
def import_comments(context: click.Context, file: Path, zone: str | None, dry_run: bool) -> None:
    """Import the bookings of FILE, a comments.json, once.

    The nodes must have reported to this hub before. Running it twice books nothing twice. If the file still changes,
    set bookings.comments in the configuration instead.

    Exit status: 0 all entries imported, 1 if an entry could not be imported.
    """
    from gpuherd.api.booking_comments import find_owner, read_comments_file
    from gpuherd.bookings.comments_sync import CommentsSync, place_entries
    from gpuherd.model.people import COMMAND_LINE
    from gpuherd.wiring.known_herd import known_herd
    from gpuherd.wiring.shown_names import display_names

    config = _config(context)
    used = _zone(config, zone)
    comments = read_comments_file(file, used)
    now = time.time()
    with _records(config) as records:
        herd = known_herd(config, records.nodes.load().nodes)
        placed, unplaced = place_entries(comments.entries, herd)
        current = [one for one in placed if one.entry.until > now]
        complaints = [*comments.complaints, *unplaced]
        if dry_run:
            for one in current:
                click.echo(f"would book {one.entry.host}/{one.entry.index} for {one.entry.name}")
        else:
            people = records.people.load().accounts
            user_of = display_names(config).holder
            sync = CommentsSync(
                records.bookings,
                owner_of=lambda name: find_owner(name, people, user_of),
                zone=used.key,
                by=COMMAND_LINE,
            )
            outcome = sync.apply(current, {}, now=now)
            complaints += outcome.complaints
            for booking in (*outcome.made, *outcome.changed):
                place = herd.word(booking.devices[0])
                click.echo(f"booked {place} for {booking.owner_name}: booking {booking.id}")
            click.echo(f"{len(outcome.made)} bookings made, {len(outcome.changed)} changed")
    for complaint in complaints:
        click.echo(f"not imported: {complaint}", err=True)
    sys.exit(1 if complaints else 0)


@click.command("export-comments")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--zone", metavar="ZONE", help=_ZONE)
@click.pass_context
def export_comments(context: click.Context, file: Path, zone: str | None) -> None:
    """Write the running bookings to FILE as comments.json.

    This is the format of an older page. Use - for standard output. To keep a file up to date, set
    bookings.comments.export in the configuration.
    """
    from gpuherd.api.booking_comments import earlier_file
    from gpuherd.bookings.comments_export import comment_entries, page_names
    from gpuherd.bookings.comments_json import write_comments
    from gpuherd.bookings.whole_files import replace_file
    from gpuherd.model.bookings import PAST_SHOWN_SECONDS
    from gpuherd.model.errors import Failed
    from gpuherd.wiring.known_herd import known_herd

    config = _config(context)
    now = time.time()
    with _records(config) as records:
        herd = known_herd(config, records.nodes.load().nodes)
        bookings = records.bookings.overlapping(starts_at=int(now) - PAST_SHOWN_SECONDS, ends_at=int(now) + 1)
    used = _zone(config, zone)
    _, known = ((), ()) if str(file) == "-" else earlier_file(file, used)
    content = write_comments(comment_entries(herd, bookings, now, page_names(herd, known)), used)
    if str(file) == "-":
        click.echo(content, nl=False)
        return
    try:
        replace_file(file, content, mode=0o644)
    except OSError as error:
        raise Failed(f"{file}: cannot be written ({error.strerror})") from error
    click.echo(f"{file}: written")
