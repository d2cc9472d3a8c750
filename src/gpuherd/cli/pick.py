"""``gpuherd pick``: which GPUs to use right now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import hub_options, telling
from gpuherd.cli.choosing import Asked, as_json, as_text, place_options, wish_options

if TYPE_CHECKING:
    from gpuherd.client.look import Look

__all__ = ["command", "taken_here"]


@click.command()
@wish_options
@place_options
@click.option("--json", "as_json_", is_flag=True, help="Print what was chosen as JSON.")
@hub_options
def command(
    as_json_: bool,
    hub_url: str | None,
    token_file: Path | None,
    node: str | None,
    anywhere: bool,
    **wanted: Any,
) -> None:
    """Choose GPUs that are free now, and print the variable that makes a program use them.

    \b
    devices=$(gpuherd pick -n 2) && env "$devices" python train.py     on this machine
    gpuherd pick --type a100 --mem 40G --anywhere                      tells the node, too

    Only what fresh data says is free, and nobody else has booked within the time given by --for. Your own bookings come
    first, then the smallest that will do, on nodes that are in use already. Nothing is held for you: gpuherd run takes
    care of that. Ends with 0; 3 if there is nothing such; 4 if you may not look; else 1.
    """
    asked = Asked(hub_url=hub_url, token_file=token_file, node=node, anywhere=anywhere, **wanted)
    with telling():
        look = asked.look()
        found = asked.sort(look, avoid=taken_here(asked, look))
        chosen = asked.choose(found)
        if chosen is None:
            raise asked.nothing(look, found)
    with_node = anywhere or node is not None
    click.echo(as_json(look.now, chosen, None) if as_json_ else as_text(chosen, with_node=with_node))


def taken_here(asked: Asked, look: Look) -> frozenset[str]:
    """Give the devices that commands of ``gpuherd run`` on this machine have, which may not be seen at work yet.

    By their UUIDs, so that it does not matter by which name the hub knows this machine, or whether it was named.
    """
    from gpuherd.client.device_locks import taken_on_machine

    return taken_on_machine(os.environ, (candidate.gpu.uuid for candidate in asked.sort(look).able))
