"""``gpuherd gpu``: one GPU or slice in all its details."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import telling
from gpuherd.cli.details import gpu_lines
from gpuherd.cli.looking import look, look_at_node, look_options
from gpuherd.cli.names import complete_place
from gpuherd.cli.showing import Screen, page_out

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, Herd, Node

__all__ = ["command"]


@click.command()
@click.argument("place", metavar="PLACE|UUID", shell_complete=complete_place)
@look_options
def command(place: str, as_json: bool, here: bool, hub_url: str | None, token_file: Path | None) -> None:
    """Show one GPU: state and why, figures, processes, bookings, and what is wrong with it.

    \b
    gpuherd gpu gpu07/3        GPU 3 of gpu07
    gpuherd gpu gpu07/3.1      slice 1 of it
    gpuherd gpu GPU-4f3a       the one whose UUID begins so
    gpuherd gpu --here 0       of this machine

    Ends with 0; 3 if there is no such GPU; 4 if you are not logged in or may not look; else 1.
    """
    with telling():
        from gpuherd.client.herd_search import gpu_named

        herd, answer = _herd(place, hub_url, token_file, here=here)
        if here and place.replace(".", "").isdecimal():
            place = f"{herd.nodes[0].name}/{place}"
        node, gpu = gpu_named(herd, place)
    if as_json:
        page_out([_json(answer, node, gpu)])
    else:
        page_out(gpu_lines(node, gpu, herd.time, Screen.of(sys.stdout)))


def _herd(place: str, hub_url: str | None, token_file: Path | None, *, here: bool) -> tuple[Herd, bytes]:
    """Ask for the node alone if the place names it by its id; of a large herd that is far cheaper."""
    name = place.replace(":", "/").rpartition("/")[0]
    found = look_at_node(name, hub_url, token_file) if name and not here else None
    found = found or look(hub_url, token_file, here=here)
    return found.herd, found.answer


def _json(answer: bytes, node: Node, gpu: Gpu) -> str:
    import json

    told = json.loads(answer)
    for one in told.get("nodes", [told]):
        if one["id"] == node.id:
            for device in one["devices"]:
                if device["facts"]["uuid"] == gpu.uuid:
                    uuids = (gpu.uuid, gpu.facts.parent_uuid, None)
                    problems = [problem for problem in one["problems"] if problem.get("device_uuid") in uuids]
                    return json.dumps(
                        {"place": node.place(gpu), "node": one["name"], **device, "problems": problems},
                        indent=2,
                    )
    return "null"
