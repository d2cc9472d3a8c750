"""``gpuherd node``: one node in all its details; and nodes as the hub's operator keeps them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import telling
from gpuherd.cli.details import node_lines
from gpuherd.cli.looking import look, look_at_node, look_options, reduced_json
from gpuherd.cli.names import complete_node, known_nodes
from gpuherd.cli.showing import Screen, page_out

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpuherd.client.herd_views import Node

__all__ = ["command"]

_ADMINISTRATION = ("list", "remove", "secret")
"""Commands of ``gpuherd hub node``: they read what the hub keeps, on its machine."""


class _NodeGroup(click.Group):
    """``gpuherd node gpu07`` is ``gpuherd node show gpu07``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["show", *_ADMINISTRATION]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ADMINISTRATION:
            return super().get_command(ctx, cmd_name)
        from gpuherd.cli.alone import standing_alone
        from gpuherd.cli.hub import node

        return standing_alone(node.commands[cmd_name])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = [*self.list_commands(ctx), *known_nodes(incomplete)]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = (*self.list_commands(ctx), *ctx.help_option_names)
        if args and not any(argument in known for argument in args[:1]):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_NodeGroup, subcommand_metavar="NAME | COMMAND ...", no_args_is_help=True)
def command() -> None:
    """Show one node: gpuherd node NAME.

    On the hub's machine, you can also list and remove nodes. If a node has the name of a command, use: gpuherd node
    show NAME
    """


@command.command()
@click.argument("name", required=False, shell_complete=complete_node)
@look_options
def show(name: str | None, as_json: bool, here: bool, hub_url: str | None, token_file: Path | None) -> None:
    """Show a node: its state, its GPUs and their processes.

    With --here, NAME is optional.

    Exit status: 0 done, 3 no such node, 4 not logged in or not allowed, 1 any other error.
    """
    if name is None and not here:
        raise click.UsageError("give the name of a node, or --here for this machine")
    with telling():
        node, now, answer = _find(name, hub_url, token_file, here=here)
    if as_json:
        page_out([answer])
    else:
        page_out(node_lines(node, now, Screen.of(sys.stdout)))


def _find(
    name: str | None, hub_url: str | None, token_file: Path | None, *, here: bool
) -> tuple[Node, float, str]:
    """Ask for the node by its id; of a large herd that is far cheaper than to look for its name."""
    from msgspec import structs

    from gpuherd.client.herd_search import node_of
    from gpuherd.client.line import plain_json

    if name is not None and not here:
        alone = look_at_node(name, hub_url, token_file)
        if alone is not None:
            return alone.herd.nodes[0], alone.herd.time, plain_json(alone.answer)
    found = look(hub_url, token_file, here=here, looks=2)
    node = found.herd.nodes[0] if name is None else node_of(found.herd, name)
    import json

    reduced = json.loads(reduced_json(found.answer, structs.replace(found.herd, nodes=(node,))))
    return node, found.herd.time, json.dumps(reduced["nodes"][0], indent=2)
