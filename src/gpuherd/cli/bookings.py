"""``gpuherd bookings``: list, extend and cancel bookings."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import client, hub_options, moment, own_zone, span, table, telling
from gpuherd.cli.misplaced import refuse_misplaced
from gpuherd.cli.showing import Screen
from gpuherd.cli.times import shown_span

if TYPE_CHECKING:
    from gpuherd.client.views import BookedDevice, Booking

__all__ = ["command"]

MOST = 1000
"""As many as the hub tells in one answer."""


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("--mine", is_flag=True, help="Only yours and your groups'. Default if you are logged in.")
@click.option("--all", "everyones", is_flag=True, help="Bookings of all users.")
@click.option("--node", metavar="NODE", help="Only bookings on this node.")
@click.option("--past", is_flag=True, help="Include bookings that ended in the last 30 days.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=200,
    show_default=True,
    help="Maximum number of bookings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the hub's response as JSON.")
@hub_options
@click.pass_context
def command(
    context: click.Context,
    mine: bool,
    everyones: bool,
    node: str | None,
    past: bool,
    limit: int,
    as_json: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """List bookings; extend or cancel them.

    Exit status: 0 done, 3 taken or against the rules, 4 not logged in or not allowed, 1 any other error.
    """
    context.obj = (hub_url, token_file)
    if context.invoked_subcommand is not None:
        refuse_misplaced(context)
        return
    if mine and everyones:
        raise click.UsageError("use either --mine or --all")
    from gpuherd.client.line import plain_json
    from gpuherd.client.wishes import node_named

    hub = client(hub_url, token_file)
    now = int(time.time())
    with telling():
        if node is None and not mine and not everyones:
            mine = hub.session().account is not None
        wanted: dict[str, Any] = {"since": now - 30 * 86_400 if past else now, "limit": limit}
        if mine:
            wanted["mine"] = "true"
        if node is not None:
            wanted["node"] = node_named(node, hub.devices(now))
        found = hub.bookings(**wanted)
    if len(found) >= limit:
        more = "use a larger --limit" if limit < MOST else "use --node, or leave out --past"
        click.echo(f"gpuherd: showing the {limit} newest bookings; for more, {more}", err=True)
    if as_json:
        click.echo(plain_json(hub.last_answer))
        return
    found.sort(key=lambda booking: (booking.starts_at, booking.id))
    click.echo(_listed(found, Screen.of(sys.stdout), now) if found else "no bookings")


def _listed(bookings: list[Booking], screen: Screen, now: int) -> str:
    rows = [
        [
            str(booking.id),
            _state(booking),
            shown_span(booking.starts_at, booking.ends_at, now, screen),
            booking.holder,
            _places(booking),
            booking.title,
        ]
        for booking in bookings
    ]
    return table(rows, ["id", "state", "when", "who", "what", "title"], screen, drop=(5, 1, 3))


def _state(booking: Booking) -> str:
    if booking.state != "active":
        return booking.state
    words = {"past": "over", "current": "runs", "upcoming": "ahead"}
    return words.get(booking.phase, booking.phase)


def _places(booking: Booking) -> str:
    """Name devices briefly: ``gpu07/0,1 gpu08/3``."""
    nodes: dict[str, list[str]] = {}
    for device in sorted(booking.devices, key=_order):
        node, _, place = device.place.rpartition("/")
        nodes.setdefault(node, []).append(place)
    return " ".join(f"{node}/{','.join(places)}" for node, places in nodes.items())


def _order(device: BookedDevice) -> tuple[str, bool, int, int, str]:
    """Sort by node and index, slices after the index of their GPU; those that are gone come last."""
    first = device.index if device.parent_index is None else device.parent_index
    second = -1 if device.parent_index is None else device.index
    return device.node_name, device.index is None, first or 0, second or 0, device.uuid


@command.command()
@click.argument("booking_id", type=click.IntRange(1), metavar="ID")
@click.argument("end", metavar="TIME")
@click.option("--zone", metavar="ZONE", help="Time zone of TIME. Default: this machine's.")
@click.pass_context
def extend(context: click.Context, booking_id: int, end: str, zone: str | None) -> None:
    """Extend booking ID.

    TIME is how much longer (4h), or the new end ('friday 18:00').
    """
    with telling():
        booking = client(*context.obj).extend(booking_id, end, own_zone(zone))
    click.echo(f"booking {booking.id} now ends {moment(booking.ends_at)}")


@command.command()
@click.argument("booking_id", type=click.IntRange(1), metavar="ID")
@click.option("--series", is_flag=True, help="Also cancel the later weeks of a weekly booking.")
@click.pass_context
def cancel(context: click.Context, booking_id: int, series: bool) -> None:
    """Cancel booking ID; if it is running, end it now."""
    with telling():
        cancelled = client(*context.obj).cancel(booking_id, series=series)
    for booking in cancelled:
        click.echo(f"cancelled booking {booking.id}, {span(booking.starts_at, booking.ends_at)}")
