"""``gpuherd hub import-comments`` and ``export-comments``: the bookings of an older page, once."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.as_owner import acting_as_owner

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from gpuherd.wiring.config import Config

__all__ = ["export_comments", "import_comments"]

_ZONE = "IANA time zone of the dates; that of the configuration if not given."


def _config(context: click.Context) -> Config:
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj  # of ``gpuherd hub``
    return load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}})


def _zone(config: Config, given: str | None) -> ZoneInfo:
    from gpuherd.bookings.times import read_zone

    comments = config.bookings.comments
    return read_zone(given or (comments.zone if comments is not None else None) or config.bookings.zone)


@click.command("import-comments")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--zone", metavar="ZONE", help=_ZONE)
@click.option("--dry-run", is_flag=True, help="Say what would be booked; book nothing.")
@click.pass_context
def import_comments(context: click.Context, file: Path, zone: str | None, dry_run: bool) -> None:
    """Book once what FILE, a comments.json, says; running it twice books nothing twice.

    Nodes must have reported to this hub before. To follow a file that still changes, see bookings.comments in the
    configuration. Ends with 1 if an entry was not taken.
    """
    from gpuherd.api.booking_comments import find_owner, read_comments_file
    from gpuherd.api.open_records import open_hub_records
    from gpuherd.bookings.comments_sync import CommentsSync, place_entries
    from gpuherd.model.people import Actor
    from gpuherd.wiring.known_herd import known_herd
    from gpuherd.wiring.shown_names import display_names

    config = _config(context)
    used = _zone(config, zone)
    comments = read_comments_file(file, used)
    now = time.time()
    with (
        acting_as_owner(config.hub.state_dir),
        contextlib.closing(open_hub_records(config.hub)) as records,
    ):
        herd = known_herd(config, records.nodes.load().nodes)
        placed, unplaced = place_entries(comments.entries, herd)
        current = [one for one in placed if one.entry.until > now]
        complaints = [*comments.complaints, *unplaced]
        if dry_run:
            for one in current:
                click.echo(f"would book {one.entry.host}:{one.entry.index} for {one.entry.name}")
        else:
            people = records.people.load().accounts
            user_of = display_names(config).user
            sync = CommentsSync(
                records.bookings,
                owner_of=lambda name: find_owner(name, people, user_of),
                zone=used.key,
                by=Actor(account_id=None, label="command line"),
            )
            outcome = sync.apply(current, {}, now=now)
            complaints += outcome.complaints
            for booking in (*outcome.made, *outcome.changed):
                place = herd.word(booking.devices[0])
                click.echo(f"booked {place} for {booking.owner_name}: booking {booking.id}")
            click.echo(f"{len(outcome.made)} bookings made, {len(outcome.changed)} changed")
    for complaint in complaints:
        click.echo(f"not taken: {complaint}", err=True)
    sys.exit(1 if complaints else 0)


@click.command("export-comments")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--zone", metavar="ZONE", help=_ZONE)
@click.pass_context
def export_comments(context: click.Context, file: Path, zone: str | None) -> None:
    """Write all bookings that run now to FILE, in the form of an older page's comments.json; - prints them.

    To keep a file up to date, see bookings.comments.export in the configuration.
    """
    from gpuherd.api.open_records import open_hub_records
    from gpuherd.bookings.comments_export import PAST_SHOWN_SECONDS, comment_entries
    from gpuherd.bookings.comments_json import write_comments
    from gpuherd.bookings.whole_files import replace_file
    from gpuherd.model.errors import Failed
    from gpuherd.wiring.known_herd import known_herd

    config = _config(context)
    now = time.time()
    with (
        acting_as_owner(config.hub.state_dir),
        contextlib.closing(open_hub_records(config.hub)) as records,
    ):
        herd = known_herd(config, records.nodes.load().nodes)
        bookings = records.bookings.overlapping(starts_at=int(now) - PAST_SHOWN_SECONDS, ends_at=int(now) + 1)
    content = write_comments(comment_entries(herd, bookings, now), _zone(config, zone))
    if str(file) == "-":
        click.echo(content, nl=False)
        return
    try:
        replace_file(file, content, mode=0o644)
    except OSError as error:
        raise Failed(f"{file}: cannot be written ({error.strerror})") from error
    click.echo(f"{file}: written")
