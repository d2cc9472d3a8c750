"""``gpuherd status``: the whole herd at a glance."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import telling
from gpuherd.cli.herd_lines import brief_lines, node_blocks, total_lines
from gpuherd.cli.looking import look, look_options, reduced_json
from gpuherd.cli.names import complete_node_or_user
from gpuherd.cli.showing import Screen, page_out
from gpuherd.model.errors import GpuherdError
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Herd

__all__ = ["command", "status_lines"]

WATCH_SECONDS = 2.0


@click.command()
@click.argument("names", metavar="[NODE|NODE/INDEX|USER]...", nargs=-1, shell_complete=complete_node_or_user)
@click.option("--brief", "-b", is_flag=True, help="One line per node.")
@click.option("--full", "-f", is_flag=True, help="One row per GPU, even if it does not fit the screen.")
@click.option(
    "--watch",
    "-w",
    "watch_seconds",
    metavar="[SECONDS]",
    type=click.FloatRange(0.1, 3600),
    is_flag=False,
    flag_value=WATCH_SECONDS,
    help="Refresh until Ctrl-C. Put node and user names before this option.",
)
@look_options
def command(
    names: tuple[str, ...],
    brief: bool,
    full: bool,
    watch_seconds: float | None,
    as_json: bool,
    here: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Show all nodes: what is free, and who uses what.

    With names, shows only these nodes and the GPUs of these users.

    \b
    gpuherd status                    all nodes; one line each if the GPUs do not fit the screen
    gpuherd status gpu07 'a100-*'     these nodes, one row per GPU
    gpuherd status ada                what ada uses or has booked
    gpuherd status --here             this machine, without a hub

    Exit status: 0 done, 3 no such node or user, 4 not logged in or not allowed, 1 any other error.
    """
    if brief and full:
        raise click.UsageError("use either --brief or --full")
    if as_json and watch_seconds is not None:
        raise click.UsageError("--json prints once; for updates, use the hub's live stream")
    with telling():
        if watch_seconds is not None:
            _watch(names, watch_seconds, hub_url, token_file, here=here, is_brief=_wanted(brief, full))
        found = look(hub_url, token_file, here=here, is_brief=not as_json)
        herd = _only(found.herd, names)
    if as_json:
        page_out([reduced_json(found.answer, herd)])
    else:
        page_out(status_lines(herd, Screen.of(sys.stdout), is_brief=_wanted(brief, full)))


def _wanted(brief: bool, full: bool) -> bool | None:
    return True if brief else False if full else None


def _only(herd: Herd, names: tuple[str, ...]) -> Herd:
    if not names:
        return herd
    from gpuherd.client.herd_search import only

    return only(herd, names)


def status_lines(herd: Herd, screen: Screen, *, is_brief: bool | None = None) -> list[str]:
    """Give the whole picture; unless it is said, rows per GPU if they fit the screen, else a line per node."""
    totals = total_lines(herd, screen)
    if is_brief is None:
        rows = sum(len(node.units) + 2 for node in herd.nodes)
        is_brief = bool(screen.height) and len(totals) + rows > screen.height and len(herd.nodes) > 1
    lines = [*totals, "", *brief_lines(herd, screen)] if is_brief else [*totals, *node_blocks(herd, screen)]
    if screen.height and len(lines) > screen.height:
        lines += ["", *totals]  # what matters most has just scrolled away
    return lines


def _watch(
    names: tuple[str, ...],
    seconds: float,
    hub_url: str | None,
    token_file: Path | None,
    *,
    here: bool,
    is_brief: bool | None,
) -> None:
    """Draw until interrupted. A hub that is away for a while is told of, above what was seen last."""
    herd, trouble = _only(look(hub_url, token_file, here=here, is_brief=True).herd, names), ""
    while True:
        screen = Screen.of(sys.stdout)
        lines = status_lines(herd, screen._replace(height=0), is_brief=is_brief)
        head = f"{time.strftime('%H:%M:%S')}  every {seconds:g} s, Ctrl-C to stop"
        if trouble:
            head = screen.paint(f"as of {max(0, time.time() - herd.time):.0f} s ago: {trouble}", "fault")
        if screen.height:
            if len(lines) > screen.height - 2 and is_brief is None:
                lines = status_lines(herd, screen._replace(height=0), is_brief=True)
            if len(lines) > screen.height - 2:
                left = len(lines) - screen.height + 3
                lines = [*lines[:-left], f"… {left} more lines; use gpuherd top to scroll"]
            page_out(["\x1b[H\x1b[2J" + head, *lines[: screen.height - 2]])
        else:
            page_out([head, *lines, ""])
        time.sleep(seconds)
        try:
            herd, trouble = _only(look(hub_url, token_file, here=here, is_brief=True).herd, names), ""
        except GpuherdError as error:
            trouble = clean(str(error), 200)
