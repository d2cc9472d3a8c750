"""``gpuherd wait``: until GPUs can be had."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import hub_options, moment, own_zone, telling
from gpuherd.cli.choosing import Asked, as_json, as_text, place_options, wish_options
from gpuherd.cli.interrupts import Interrupted, Interrupts
from gpuherd.cli.progress import Progress
from gpuherd.cli.saying import say
from gpuherd.cli.taking import Taken, Taking

if TYPE_CHECKING:
    from gpuherd.client.choosing import Sorted
    from gpuherd.client.look import Look

__all__ = ["command", "taking_of", "tell_booking", "wait_until_taken"]

IN_VAIN = 5
FORESIGHT_SECONDS = 14 * 86_400
"""How far ahead bookings are looked at for the estimate."""


@click.command()
@wish_options
@place_options
@click.option("--timeout", metavar="TIME", help="Give up after this time, e.g. 8h.")
@click.option("--then-book", "book_for", metavar="TIME", help="Book the GPUs at once for this long, e.g. 4h.")
@click.option("--title", default="", help="Purpose of the booking; visible to everyone.")
@click.option("--json", "as_json_", is_flag=True, help="Print the found GPUs as JSON.")
@hub_options
def command(
    timeout: str | None,
    book_for: str | None,
    title: str,
    as_json_: bool,
    hub_url: str | None,
    token_file: Path | None,
    node: str | None,
    anywhere: bool,
    **wanted: Any,
) -> None:
    """Wait until GPUs are free, then print the environment variable for them.

    \b
    gpuherd wait -n 4 --type h100 --same-node --anywhere --then-book 1d
    gpuherd wait --mem 40G --timeout 8h && notify-send "a GPU is free"

    While it waits, stderr shows how many GPUs are missing, who has them, and when their bookings end. It keeps waiting
    while the hub is down. Ctrl-C leaves nothing booked.

    Exit status: 0 found, 3 no such GPU in the herd, 4 not logged in or not allowed, 5 --timeout reached, 130 Ctrl-C, 1
    any other error.
    """
    from gpuherd.client.waiting import WaitedInVain

    if title and book_for is None:
        raise click.UsageError("--title needs --then-book")
    with_node = anywhere or node is not None
    try:
        with Interrupts() as interrupts:
            asked = Asked(
                hub_url=hub_url,
                token_file=token_file,
                node=node,
                anywhere=anywhere,
                book_for=book_for,
                holding=interrupts.held,
                **wanted,
            )
            progress = Progress(f"{asked.search.wish} {asked.where}")
            taking = taking_of(asked, interrupts, progress, book_for=book_for, title=title, locks=False)
            try:
                with telling():
                    taken = wait_until_taken(taking, progress, timeout=timeout)
                told = (
                    as_json(taken.look.now, taken.chosen, taken.booking)
                    if as_json_
                    else as_text(taken.chosen, with_node=with_node)
                )
                click.echo(told)
            except BaseException:
                try:
                    progress.end()
                finally:
                    taking.give_back()
                raise
            interrupts.ignore()  # whoever reads "booked" must not hear that it came to nothing
            tell_booking(taken)
    except WaitedInVain as error:
        say(f"gpuherd: {error}")
        sys.exit(IN_VAIN)
    except Interrupted as error:
        sys.exit(error.exit_code)


def taking_of(
    asked: Asked,
    interrupts: Interrupts,
    progress: Progress | None,
    *,
    book_for: str | None,
    title: str,
    locks: bool,
) -> Taking:
    """Prepare to take what was asked for."""
    from gpuherd.client.device_locks import DeviceLocks
    from gpuherd.client.holding import Holding
    from gpuherd.client.waiting import situation_of

    def tell(look: Look, found: Sorted) -> None:
        if progress is not None:
            progress.tell(situation_of(look, found, asked.search), look.now)

    holding = None
    if book_for is not None and asked.hub is not None:
        holding = Holding(asked.hub, words=f"by gpuherd on {os.uname().nodename}")
    device_locks = DeviceLocks.of_machine(os.environ) if locks else None
    if device_locks is not None and device_locks.doubt is not None:
        say(f"gpuherd: {device_locks.doubt}")
    return Taking(
        asked,
        interrupts,
        locks=device_locks,
        holding=holding,
        booking_wish=None if holding is None else {"end": book_for, "zone": own_zone(None), "title": title},
        ahead_seconds=0 if progress is None else FORESIGHT_SECONDS,
        tell=tell,
    )


def wait_until_taken(taking: Taking, progress: Progress, *, timeout: str | None) -> Taken:
    """Wait, and tell how things stand meanwhile; ``WaitedInVain`` after so long."""
    from gpuherd.client.waiting import wait_for
    from gpuherd.client.wanted import read_span
    from gpuherd.model.errors import Refused

    try:
        timeout_seconds = None if timeout is None else read_span(timeout)
    except Refused as error:
        raise click.UsageError(str(error)) from None
    is_checked = False

    def attempt() -> Taken | None:
        nonlocal is_checked
        if not is_checked:  # nobody should wait for hours and then hear that it cannot be
            taking.check()
            is_checked = True
        return taking.attempt()

    taken = wait_for(attempt, timeout_seconds=timeout_seconds, on_trouble=progress.tell_trouble)
    progress.end()
    return taken


def tell_booking(taken: Taken) -> None:
    """Say on stderr what was booked."""
    if taken.booking is not None:
        booking, places = taken.booking, ", ".join(candidate.place for candidate in taken.chosen)
        say(
            f"gpuherd: booked {places} until {moment(booking.ends_at)}, booking {booking.id}; end it early with: "
            f"gpuherd release {booking.id}"
        )
