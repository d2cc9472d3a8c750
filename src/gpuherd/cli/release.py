"""``gpuherd release``: give GPUs back early."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gpuherd.cli.asking import client, hub_options, moment, tell

__all__ = ["command"]


@click.command()
@click.argument("booking_ids", type=click.IntRange(1), nargs=-1, required=True, metavar="ID…")
@click.option("--json", "as_json", is_flag=True, help="Print the hub's responses as a JSON list.")
@hub_options
def command(
    booking_ids: tuple[int, ...], as_json: bool, hub_url: str | None, token_file: Path | None
) -> None:
    """End bookings early: running ones end now, upcoming ones are cancelled.

    If one of them fails, the others are still released.

    Exit status: 0 all released, 3 a booking is over or unknown, 4 not logged in or not yours, 1 any other error.
    """
    from gpuherd.client import HubRefused
    from gpuherd.client.line import plain_json

    hub = client(hub_url, token_file)
    worst = 0
    answers: list[bytes] = []
    for booking_id in booking_ids:
        try:
            booking = hub.release(booking_id)
        except HubRefused as error:
            worst = max(worst, tell(error, f"booking {booking_id}: "))
            if error.status == 401:
                break
            continue
        answers.append(hub.last_answer)
        if as_json:
            continue
        if booking.state == "cancelled":
            click.echo(f"booking {booking.id} is cancelled")
        else:
            early = (
                ""
                if booking.released_from is None
                else f"; it would have ended {moment(booking.released_from)}"
            )
            click.echo(f"booking {booking.id} has ended{early}")
    if as_json:
        click.echo(plain_json(b"[" + b",".join(answers) + b"]"))
    sys.exit(worst)
