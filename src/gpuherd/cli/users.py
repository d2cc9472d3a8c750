"""``gpuherd users``: who holds what now, and who leaves it idle."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import telling
from gpuherd.cli.herd_lines import joined_places, plural, user_name
from gpuherd.cli.looking import look, look_options
from gpuherd.cli.names import complete_user
from gpuherd.cli.showing import Cell, Screen, ago, bytes_text, page_out
from gpuherd.model.errors import Refused
from gpuherd.model.people import person_key
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, Herd, Node

__all__ = ["SORTINGS", "command", "holders_of"]


@click.command()
@click.argument("names", metavar="[USER]...", nargs=-1, shell_complete=complete_user)
@click.option(
    "--sort",
    type=click.Choice(["gpus", "memory", "processes"]),
    default="gpus",
    show_default=True,
    help="Sort by this, highest first.",
)
@look_options
def command(
    names: tuple[str, ...],
    sort: str,
    as_json: bool,
    here: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Show who uses which GPUs now, and who leaves them idle.

    Shows GPUs, held-idle GPUs, processes, memory, start and nodes. A GPU that several users share counts for each of
    them. A GPU is held idle if a process holds memory on it but does not compute; [availability] in the hub's
    configuration sets after what time. For past use: gpuherd usage

    Exit status: 0 done, 3 none of these users holds a GPU, 4 not logged in or not allowed, 1 any other error.
    """
    with telling():
        herd = look(hub_url, token_file, here=here, is_brief=True).herd
        holders = sorted(holders_of(herd), key=SORTINGS[sort])
        if names:
            if missing := [name for name in names if name not in {holder.user for holder in holders}]:
                raise Refused("unknown_user", f"no user named {clean(missing[0], 60)} holds a GPU now")
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
        self._processes: set[tuple[str, int | None]] = set()

    @property
    def process_count(self) -> int:
        """How many processes compute; one on several GPUs is one."""
        return len(self._processes)

    def take(self, node: Node, gpu: Gpu) -> None:
        """Count a GPU on which the user computes."""
        self.used.append((node, gpu))
        if gpu.availability.state == "held":
            self.idle.append((node, gpu))
            self.idle_since = _earlier(self.idle_since, gpu.availability.since)
        for process in gpu.processes:
            if process.user == self.user and process.kind == "compute":
                self._processes.add((node.id, process.pid))
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
            "processes": self.process_count,
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


def holders_of(herd: Herd) -> list[_Holder]:
    """Give everyone who uses a GPU of a node that is heard of, or has booked one now."""
    holders = _Holders()
    # Who was there when a node was last heard of need not be there now.
    heard = [(node, gpu) for node, gpu in herd.units() if gpu.availability.state not in ("stale", "offline")]
    for node, gpu in heard:
        for user in gpu.users:
            holders[user].take(node, gpu)
    # Names of holders of bookings may be free text: "Carol" has booked what carol uses.
    spelled = {person_key(user): user for user in holders if user is not None}
    for node, gpu in heard:
        for booking in gpu.bookings:
            if booking.phase == "current":
                name = booking.holder
                user = name if name in holders else spelled.setdefault(person_key(name), name)
                holders[user].booked.append((node, gpu))
    return list(holders.values())


def _by_gpus(holder: _Holder) -> tuple[object, ...]:
    return -len(holder.used), -len(holder.booked), holder.user is None, holder.user or ""


SORTINGS: dict[str, Callable[[_Holder], Any]] = {
    "gpus": _by_gpus,
    "memory": lambda holder: (-(holder.memory_bytes or 0), -holder.process_count, _by_gpus(holder)),
    "processes": lambda holder: (-holder.process_count, -(holder.memory_bytes or 0), _by_gpus(holder)),
}


def _lines(herd: Herd, holders: list[_Holder], screen: Screen) -> list[str]:
    if not holders:
        return ["nobody holds a GPU"]
    header = [
        Cell(text, "dim")
        for text in ("user", "GPUs", "idle", "", "booked", "processes", "memory", "since", "where")
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
                Cell(str(holder.process_count) if holder.process_count else "", is_right=True),
                Cell(bytes_text(holder.memory_bytes), is_right=True),
                Cell("" if holder.since is None else ago(herd.time - holder.since), is_right=True),
                Cell(
                    joined_places([(node.name, node.place_here(gpu)) for node, gpu in holder.used]),
                    "dim",
                ),
            ]
        )
    lines = screen.lay_out(rows, drop=(7, 5, 6))
    silent = sum(gpu.state in ("stale", "offline") for _, gpu in herd.units())
    if silent:
        lines.append(screen.paint(f"{plural(silent, 'GPU')} on offline nodes not shown", "dim"))
    return lines
