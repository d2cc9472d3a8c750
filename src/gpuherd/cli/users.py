"""``gpuherd users``: who holds what now, and who leaves it idle."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import telling
from gpuherd.cli.herd_lines import joined_places, plural, user_name
from gpuherd.cli.looking import look, look_options
from gpuherd.cli.names import complete_user
from gpuherd.cli.showing import Cell, Screen, ago, bytes_text, page_out
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, Herd, Node

__all__ = ["command"]


@click.command()
@click.argument("names", metavar="[USER]...", nargs=-1, shell_complete=complete_user)
@look_options
def command(
    names: tuple[str, ...],
    as_json: bool,
    here: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Tell who holds what now: GPUs, how many are left idle and for how long, memory, since when, where.

    A GPU that several share counts for each of them. Idle is a GPU that someone holds without working on it; how long
    that takes is set on the hub ([availability] of its configuration). What was used so far is told by: gpuherd usage

    Ends with 0; 3 if nobody of this name holds one; 4 if you are not logged in or may not look; else 1.
    """
    with telling():
        herd = look(hub_url, token_file, here=here, is_brief=True).herd
        holders = _holders(herd)
        if names:
            if missing := [name for name in names if name not in {holder.user for holder in holders}]:
                raise Refused("unknown_user", f"nobody called {clean(missing[0], 60)} holds a GPU now")
            holders = [holder for holder in holders if holder.user in names]
    if as_json:
        import json

        page_out([json.dumps([holder.told(herd.time) for holder in holders], indent=2)])
    else:
        page_out(_lines(herd, holders, Screen.of(sys.stdout)))


class _Holder:
    """What one user has."""

    def __init__(self, user: str | None) -> None:
        self.user = user
        self.used: list[tuple[Node, Gpu]] = []
        self.idle: list[tuple[Node, Gpu]] = []
        self.booked: list[tuple[Node, Gpu]] = []
        self.idle_since: float | None = None
        self.since: float | None = None
        self.memory_bytes: int | None = None

    def take(self, node: Node, gpu: Gpu) -> None:
        """Count a GPU on which the user computes."""
        self.used.append((node, gpu))
        if gpu.availability.state == "held":
            self.idle.append((node, gpu))
            self.idle_since = _earlier(self.idle_since, gpu.availability.since)
        for process in gpu.processes:
            if process.user == self.user and process.kind == "compute":
                self.since = _earlier(self.since, process.started_at)
                if process.gpu_memory_bytes:
                    self.memory_bytes = (self.memory_bytes or 0) + process.gpu_memory_bytes

    def told(self, now: float) -> dict[str, Any]:
        return {
            "user": self.user,
            "gpus": len(self.used),
            "idle_gpus": len(self.idle),
            "idle_seconds": None if self.idle_since is None else max(0.0, now - self.idle_since),
            "booked_gpus": len(self.booked),
            "gpu_memory_bytes": self.memory_bytes,
            "since": self.since,
            "places": [node.place(gpu) for node, gpu in self.used],
            "idle_places": [node.place(gpu) for node, gpu in self.idle],
            "booked_places": [node.place(gpu) for node, gpu in self.booked],
        }


def _earlier(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None or one < other else other


class _Holders(dict[str | None, _Holder]):
    """Everyone who has something, by name."""

    def __missing__(self, user: str | None) -> _Holder:
        holder = self[user] = _Holder(user)
        return holder


def _holders(herd: Herd) -> list[_Holder]:
    holders = _Holders()
    for node, gpu in herd.units():
        if gpu.availability.state in ("stale", "offline"):
            continue  # who was there when the node was last heard of need not be there now
        for user in gpu.users:
            holders[user].take(node, gpu)
        for booking in gpu.bookings:
            if booking.phase == "current":
                holders[booking.holder].booked.append((node, gpu))
    return sorted(
        holders.values(),
        key=lambda holder: (-len(holder.used), -len(holder.booked), holder.user is None, holder.user or ""),
    )


def _lines(herd: Herd, holders: list[_Holder], screen: Screen) -> list[str]:
    if not holders:
        return ["nobody holds a GPU"]
    header = [
        Cell(text, "dim") for text in ("user", "GPUs", "idle", "", "booked", "memory", "since", "where")
    ]
    rows = [header]
    for holder in holders:
        idle = len(holder.idle)
        idle_since = holder.idle_since
        rows.append(
            [
                Cell(user_name(holder.user), "strong"),
                Cell(str(len(holder.used)), is_right=True),
                Cell(f"{screen.sign('held')} {idle}" if idle else "", "held"),
                Cell("" if idle_since is None else ago(herd.time - idle_since), "held"),
                Cell(str(len(holder.booked)) if holder.booked else "", "booked", is_right=True),
                Cell(bytes_text(holder.memory_bytes), is_right=True),
                Cell("" if holder.since is None else ago(herd.time - holder.since), is_right=True),
                Cell(
                    joined_places([(node.name, node.place_here(gpu)) for node, gpu in holder.used]),
                    "dim",
                ),
            ]
        )
    lines = screen.lay_out(rows, drop=(6, 5))
    silent = sum(gpu.state in ("stale", "offline") for _, gpu in herd.units())
    if silent:
        lines.append(
            screen.paint(f"{plural(silent, 'GPU')} of nodes that are not heard of are left out", "dim")
        )
    return lines
