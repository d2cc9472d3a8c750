"""``gpuherd release``: give GPUs back early."""

from __future__ import annotations

from pathlib import Path

import click

from gpuherd.cli.asking import client, hub_options, moment, telling

__all__ = ["command"]


@click.command()
@click.argument("booking_ids", type=click.IntRange(1), nargs=-1, required=True, metavar="ID…")
@hub_options
def command(booking_ids: tuple[int, ...], hub_url: str | None, token_file: Path | None) -> None:
    """Give back what was booked: bookings that run end now, others are cancelled.

    Ends with 0; 3 if a booking is over or not known; 4 if you are not logged in or it is not yours; else 1.
    """
    hub = client(hub_url, token_file)
    for booking_id in booking_ids:
        with telling():
            booking = hub.release(booking_id)
        if booking.state == "cancelled":
            click.echo(f"booking {booking.id} is cancelled")
        else:
            early = "" if booking.released_from is None else f"; it was until {moment(booking.released_from)}"
            click.echo(f"booking {booking.id} has ended{early}")
