"""``gpuherd gpu``: one GPU or slice in all its details; what an admin says of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import client, hub_options, telling
from gpuherd.cli.details import gpu_lines
from gpuherd.cli.looking import look, look_at_node, look_options
from gpuherd.cli.names import complete_place
from gpuherd.cli.showing import Screen, page_out
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpuherd.client import HubClient
    from gpuherd.client.herd_views import Gpu, Herd, Node

__all__ = ["command"]


class _GpuGroup(click.Group):
    """``gpuherd gpu gpu07/3`` is ``gpuherd gpu show gpu07/3``."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        show = self.commands["show"]
        return [*super().shell_complete(ctx, incomplete), *complete_place(ctx, show.params[0], incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_GpuGroup, subcommand_metavar="NODE/INDEX|UUID | COMMAND ...", no_args_is_help=True)
def command() -> None:
    """Show one GPU: gpuherd gpu NODE/INDEX.

    Admins can also acknowledge faults, and forget a GPU that was removed from its node.
    """


@command.command()
@click.argument("place", metavar="NODE/INDEX|UUID", shell_complete=complete_place)
@hub_options
def forget(place: str, hub_url: str | None, token_file: Path | None) -> None:
    """Stop reporting a GPU as missing.

    Use this when you have removed the GPU from its node. Needs an admin account.

    Exit status: 0 done, 3 the GPU is not missing, 4 not logged in as an admin, 1 any other error.
    """
    with telling():
        hub, node, gpu = _found(place, hub_url, token_file)
        if not gpu.uuid.casefold().startswith(place.casefold()):  # another one may be in its place by now
            same = [one for one in node.devices if node.place(one) == node.place(gpu)]
            gpu = next((one for one in same if one.missing_since is not None), gpu)
        hub.forget_gpu(node.id, gpu.uuid)
    click.echo(f"{clean(node.place(gpu), 80)} ({clean(gpu.uuid, 96)}) is no longer reported as missing")


@command.command()
@click.argument("place", metavar="NODE/INDEX|UUID", shell_complete=complete_place)
@hub_options
def acknowledge(place: str, hub_url: str | None, token_file: Path | None) -> None:
    """Acknowledge the Xid and ECC errors of a GPU.

    Errors up to now no longer count as a fault; new ones do. Needs an admin account.

    Exit status: 0 done, 3 no such GPU, 4 not logged in as an admin, 1 any other error.
    """
    with telling():
        hub, node, gpu = _found(place, hub_url, token_file)
        faults = hub.acknowledge_gpu(node.id, gpu.uuid)
    for fault in faults or ("nothing to acknowledge",):
        click.echo(f"{clean(node.place(gpu), 80)}: {clean(fault, 500)}")


def _found(place: str, hub_url: str | None, token_file: Path | None) -> tuple[HubClient, Node, Gpu]:
    """Find a GPU by its place or UUID."""
    from gpuherd.client.herd_search import gpu_named

    hub = client(hub_url, token_file)
    return hub, *gpu_named(hub.herd(), place)


@command.command()
@click.argument("place", metavar="NODE/INDEX|UUID", shell_complete=complete_place)
@look_options
def show(place: str, as_json: bool, here: bool, hub_url: str | None, token_file: Path | None) -> None:
    """Show one GPU: state, metrics, processes, bookings, faults.

    \b
    gpuherd gpu gpu07/3        GPU 3 of gpu07
    gpuherd gpu gpu07/3.1      slice 1 of that GPU
    gpuherd gpu GPU-4f3a       the GPU whose UUID starts like this
    gpuherd gpu --here 0       GPU 0 of this machine

    Exit status: 0 done, 3 no such GPU, 4 not logged in or not allowed, 1 any other error.
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
