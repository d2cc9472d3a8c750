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


@click.group(invoke_without_command=True)
@click.option(
    "--mine", is_flag=True, help="Only yours and those of your groups; the default once you are logged in."
)
@click.option("--all", "everyones", is_flag=True, help="Those of everyone.")
@click.option("--node", metavar="NODE", help="Only those of this node.")
@click.option("--past", is_flag=True, help="Also those of the last 30 days that are over.")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=200, show_default=True, help="How many at most."
)
@click.option("--json", "as_json", is_flag=True, help="Print the hub's answer as JSON.")
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

    Ends with 0; 3 if something is taken or against the rules; 4 if you are not logged in or may not; else 1.
    """
    context.obj = (hub_url, token_file)
    if context.invoked_subcommand is not None:
        refuse_misplaced(context)
        return
    if mine and everyones:
        raise click.UsageError("--mine or --all, not both")
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
        more = "give a larger --limit" if limit < MOST else "ask for a --node, or without --past"
        click.echo(f"gpuherd: these are the {limit} newest bookings; for others {more}", err=True)
    if as_json:
        click.echo(plain_json(hub.last_answer))
        return
    found.sort(key=lambda booking: (booking.starts_at, booking.id))
    click.echo(_listed(found, Screen.of(sys.stdout), now) if found else "nothing is booked")


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
@click.option("--zone", metavar="ZONE", help="Time zone of TIME; that of this machine if not given.")
@click.pass_context
def extend(context: click.Context, booking_id: int, end: str, zone: str | None) -> None:
    """Give booking ID a later end: by TIME, such as 4h, or until then, such as 'friday 18:00'."""
    with telling():
        booking = client(*context.obj).extend(booking_id, end, own_zone(zone))
    click.echo(f"booking {booking.id} is until {moment(booking.ends_at)}")


@command.command()
@click.argument("booking_id", type=click.IntRange(1), metavar="ID")
@click.option("--series", is_flag=True, help="Also all later ones of the same weekly booking.")
@click.pass_context
def cancel(context: click.Context, booking_id: int, series: bool) -> None:
    """Cancel booking ID, which has not begun; one that runs is released."""
    with telling():
        cancelled = client(*context.obj).cancel(booking_id, series=series)
    for booking in cancelled:
        click.echo(f"cancelled booking {booking.id}, {span(booking.starts_at, booking.ends_at)}")
