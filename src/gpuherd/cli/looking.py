"""What the commands share that look at the herd: at all of it through a hub, or at this machine alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from gpuherd.cli.asking import client, hub_options
from gpuherd.cli.names import remember_names
from gpuherd.cli.showing import is_terminal
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Herd

__all__ = ["Look", "is_given", "look", "look_at_node", "look_options", "reduced_json"]

F = TypeVar("F", bound=Callable[..., Any])


def look_options(function: F) -> F:
    """Add the options of commands that look: which hub, or this machine alone, and whether as JSON."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--here", is_flag=True, help="Show only this machine; needs no hub."),
    ):
        function = option(function)
    return hub_options(function)


def is_given(name: str) -> bool:
    """Tell whether an option stands in the command line, not only in the environment."""
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE


class Look(NamedTuple):
    """The herd as it was seen."""

    herd: Herd
    answer: bytes
    """The JSON of ``GET /api/v1/fleet``, with what this client does not know, too; empty where that was not wanted."""


def look_at_node(node_id: str, hub_url: str | None, token_file: Path | None) -> Look | None:
    """Ask a hub for one node alone, which of a large herd is far cheaper; none if there is none with this id.

    ``answer`` is then the JSON of that node.
    """
    from gpuherd.client import HubRefused
    from gpuherd.client.herd_views import Herd

    hub = client(hub_url, token_file)
    try:
        node = hub.node(node_id)
    except HubRefused as error:
        if error.status != 404:
            raise
        return None
    received = node.received_at
    now = time.time() if received is None else received + (node.age_seconds or 0.0)
    return Look(Herd(time=now, nodes=(node,)), hub.last_answer)


def look(
    hub_url: str | None, token_file: Path | None, *, here: bool, looks: int = 1, is_brief: bool = False
) -> Look:
    """Look at the whole herd, or with ``here`` at this machine; ``Refused`` if that has no GPU.

    ``is_brief``: what is free and who has what is enough, which of a large herd is far less.
    """
    if here and (is_given("hub_url") or is_given("token_file")):
        raise click.UsageError("--here uses no hub; leave out --hub and --token-file")
    if not here:
        hub = client(hub_url, token_file)
        found = Look(hub.glance(), b"") if is_brief else Look(hub.herd(), hub.last_answer)
        if is_terminal():  # someone sits there, who may complete a name next time
            remember_names(found.herd)
        return found
    # By name: who only asks a hub must do without the hub's packages, and a test follows the imports.
    found = Look(*import_module("gpuherd.wiring.here").look_here_plainly(looks=looks))
    for node in found.herd.nodes:
        if not node.devices:
            why = next((problem.message for problem in node.problems), "no GPU found")
            raise Refused("no_gpu", f"on this machine {clean(why, 500)}")
    return found


def reduced_json(answer: bytes, herd: Herd) -> str:
    """Give the hub's answer as text, with those nodes and devices only that are left in ``herd``."""
    import msgspec

    kept = {node.id: {gpu.uuid for gpu in node.devices} for node in herd.nodes}
    try:
        told = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # in what this client does not look at
        raise Failed(f"the hub's response cannot be read: {error}") from None
    told["nodes"] = [node for node in told["nodes"] if node["id"] in kept]
    for node in told["nodes"]:
        node["devices"] = [gpu for gpu in node["devices"] if gpu["facts"]["uuid"] in kept[node["id"]]]
    # Python's own json takes ten times as long when it indents, which of thousands of nodes is seconds.
    text = msgspec.json.format(msgspec.json.encode(told), indent=2).decode()
    return text if text.isascii() else _escaped(text)


def _escaped(text: str) -> str:
    """Escape every letter beyond ASCII of a JSON text; there are none outside its strings."""
    import json
    import re

    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
