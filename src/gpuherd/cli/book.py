"""``gpuherd book``: book GPUs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import client, hub_options, own_zone, span, table, telling
from gpuherd.cli.saying import say

if TYPE_CHECKING:
    from gpuherd.client import HubClient
    from gpuherd.client.views import Booking

__all__ = ["command"]

SOON_SECONDS = 60.0
"""What begins later says nothing of how the GPUs are now."""


@click.command()
@click.argument("what", nargs=-1)
@click.option("--for", "duration", metavar="TIME", help="Duration, e.g. 4h or '3d 4h'.")
@click.option("--until", metavar="WHEN", help="End, e.g. 18:00, 'friday 18:00' or '2026-11-20 18:00'.")
@click.option("--start", metavar="WHEN", help="Start. Default: now.")
@click.option("--zone", metavar="ZONE", help="Time zone of the given times. Default: this machine's.")
@click.option("--title", default="", help="Purpose; visible to everyone.")
@click.option("--comment", default="", help="Further details.")
@click.option("--group", help="Book for one of your groups.")
@click.option(
    "--weekly",
    type=click.IntRange(2, 52),
    metavar="N",
    help="Book N weeks in a row, at the same time each week.",
)
@click.option("--same-node", is_flag=True, help="All GPUs on one node.")
@click.option("--running", is_flag=True, help="Book the GPUs your processes are using now.")
@click.option("--dry-run", is_flag=True, help="Show what would be booked; book nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the hub's response as JSON.")
@hub_options
def command(
    what: tuple[str, ...],
    duration: str | None,
    until: str | None,
    start: str | None,
    zone: str | None,
    title: str,
    comment: str,
    group: str | None,
    weekly: int | None,
    same_node: bool,
    running: bool,
    dry_run: bool,
    as_json: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Book WHAT: a number of GPUs of one type, or GPUs by name.

    \b
    gpuherd book 2xA100-80G --for 3d --title "ablation"
    gpuherd book gpu07/0,1 --until "friday 18:00"           GPUs 0 and 1 of gpu07
    gpuherd book gpu07 --start "tomorrow 9:00" --for 8h     the whole node
    gpuherd book --running --for 4h                         the GPUs you use now

    Books everything or nothing. If GPUs are taken, it shows who has booked them and when all of them are free.

    Exit status: 0 booked, 3 taken or against the rules, 4 not logged in or not allowed, 2 wrong command line, 1 any
    other error.
    """
    from gpuherd.client.line import plain_json
    from gpuherd.client.wishes import read_wish

    if bool(what) == running:
        raise click.UsageError("say what to book, such as 2xA100 or gpu07/0, or use --running")
    if duration is None and until is None:
        raise click.UsageError("say how long, with --for or --until")
    if duration is not None and until is not None:
        raise click.UsageError("use either --for or --until")
    hub = client(hub_url, token_file)
    with telling():
        wish: dict[str, Any] = {
            **(
                {"running": True}
                if running
                else read_wish(what, lambda: hub.devices(int(time.time())), same_node=same_node)
            ),
            "end": duration or until,
            "zone": own_zone(zone),
            "title": title,
            "comment": comment,
            "group": group,
            "dry_run": dry_run,
        }
        if start is not None:
            wish["start"] = start
        if weekly is not None:
            wish["weekly"] = {"times": weekly}
        made = hub.book(wish)
    click.echo(plain_json(hub.last_answer) if as_json else _told(made, is_dry=dry_run))
    if not running and made[0].starts_at <= time.time() + SOON_SECONDS:
        _warn(hub, made[0])


def _warn(hub: HubClient, booking: Booking) -> None:
    """Say on stderr what of it cannot be used as it is now; the booking stands all the same."""
    from gpuherd.client.obstacles import obstacles
    from gpuherd.model.errors import GpuherdError

    try:
        herd = hub.glance()
    except GpuherdError:
        return  # who may book may not look, or the hub has gone since
    for told in obstacles({(device.node_id, device.uuid) for device in booking.devices}, herd):
        say(f"gpuherd: {told}")


def _told(bookings: list[Booking], *, is_dry: bool) -> str:
    first = bookings[0]
    count = "1 GPU" if len(first.devices) == 1 else f"{len(first.devices)} GPUs"
    lines = []
    for booking in bookings:
        verb = "would book" if is_dry else "asked for" if booking.state == "pending" else "booked"
        number = "" if is_dry else f", booking {booking.id}"
        lines.append(f"{verb} {count} {span(booking.starts_at, booking.ends_at)}{number}")
    if first.state == "pending":
        lines.append("pending approval by an admin; the GPUs are reserved until then")
    rows = [[device.place, device.short_name or "", device.uuid] for device in first.devices]
    lines += [f"  {line}" for line in table(rows, ["", "", ""]).splitlines() if line]
    lines += _visible(first)
    if not is_dry:
        lines.append(f"end it early with: gpuherd release {first.id}")
    return "\n".join(lines)


def _visible(booking: Booking) -> list[str]:
    """Give the lines for a job's environment, one per node; UUIDs, because indexes differ between tools."""
    from gpuherd.client.choosing import is_usable_id
    from gpuherd.model.text import clean

    nodes: dict[str, list[str]] = {}
    for device in booking.devices:
        if not is_usable_id(device.uuid):
            continue  # a driver that has lost a card does not tell it
        nodes.setdefault(clean(device.node_name, 60), []).append(clean(device.uuid, 96))
    lines = [f"CUDA_VISIBLE_DEVICES={','.join(uuids)}" for uuids in nodes.values()]
    if len(nodes) == 1:
        return lines
    return [f"on {node}: {line}" for node, line in zip(nodes, lines, strict=True)]
