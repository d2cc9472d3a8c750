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
@click.option("--json", "as_json_", is_flag=True, help="Print the chosen GPUs as JSON.")
@hub_options
def command(
    as_json_: bool,
    hub_url: str | None,
    token_file: Path | None,
    node: str | None,
    anywhere: bool,
    **wanted: Any,
) -> None:
    """Choose free GPUs and print the environment variable for them.

    \b
    devices=$(gpuherd pick -n 2) && env "$devices" python train.py     on this machine
    gpuherd pick --type a100 --mem 40G --anywhere                      on any node; prints the node as well

    Chooses only GPUs that are free according to fresh data and that nobody else has booked within the time given by
    --for. It prefers GPUs you have booked, then the smallest GPU that fits, on nodes that are already in use. It does
    not reserve anything; gpuherd run does.

    Exit status: 0 done, 3 nothing free, 4 not logged in or not allowed, 1 any other error.
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
