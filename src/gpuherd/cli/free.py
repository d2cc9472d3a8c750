"""``gpuherd free``: what is free, by type and place; if nothing is, who has such ones."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import REFUSED, telling
from gpuherd.cli.herd_lines import joined_places, plural, who
from gpuherd.cli.looking import look, look_options
from gpuherd.cli.names import complete_node
from gpuherd.cli.showing import Cell, Screen, ago, clock, page_out
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.herd_views import Gpu, Herd, Node
    from gpuherd.client.wanted import Wish

__all__ = ["command"]

MOST_HOLDERS = 12
_ORDER = ("held", "booked", "busy")
"""Whom to ask first: who does not work on it."""


@click.command()
@click.option("-n", "count", type=click.IntRange(1, 4096), metavar="N", help="Number of GPUs.")
@click.option("--mem", metavar="SIZE", help="Minimum memory per GPU, e.g. 40G.")
@click.option("--type", "type_", metavar="TYPE", help="GPU type, e.g. a100, 'H100 80GB' or 1g.10gb.")
@click.option("--same-node", is_flag=True, help="All GPUs on one node.")
@click.option(
    "--node",
    "nodes",
    metavar="NODE",
    multiple=True,
    shell_complete=complete_node,
    help="Only this node. Repeat for several.",
)
@look_options
def command(
    count: int | None,
    mem: str | None,
    type_: str | None,
    same_node: bool,
    nodes: tuple[str, ...],
    as_json: bool,
    here: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Show free GPUs by type and node.

    \b
    gpuherd free                                  all free GPUs
    gpuherd free -n 2 --mem 40G --same-node       nodes with two free GPUs of 40 GB or more
    gpuherd free --type a100 --node 'gpu0*'       free A100s on these nodes

    If nothing matches, it shows who uses such GPUs, starting with those who leave them idle.

    Exit status: 0 free, 3 not free, 4 not logged in or not allowed, 1 any other error.
    """
    from gpuherd.client.wanted import Wish, read_size, read_type
    from gpuherd.model.errors import Refused

    try:
        wish = Wish(
            count=count or 1,
            type_words=frozenset() if type_ is None else read_type(type_),
            min_memory_bytes=None if mem is None else read_size(mem),
            same_node=same_node,
        )
    except Refused as error:
        raise click.UsageError(str(error)) from None
    with telling():
        is_open = count is None and mem is None and type_ is None  # then slices are listed, too
        herd = _on_nodes(look(hub_url, token_file, here=here, is_brief=True).herd, nodes)
    such = [(node, gpu) for node, gpu in herd.units() if (is_open and not same_node) or _fits(gpu, wish)]
    free = _enough([(node, gpu) for node, gpu in such if gpu.state == "free"], wish)
    if as_json:
        import json

        page_out([json.dumps(_told(herd, such, free, wish), indent=2)])
    else:
        screen = Screen.of(sys.stdout)
        page_out(_free_lines(herd, such, free, screen) if free else _taken_lines(herd, such, wish, screen))
    if not free:
        available = sum(gpu.state == "free" for _, gpu in such)
        click.echo(f"gpuherd: {_missing(wish, available, len(such), is_open=is_open)}", err=True)
        sys.exit(REFUSED)


Found = list[tuple["Node", "Gpu"]]


def _fits(gpu: Gpu, wish: Wish) -> bool:
    from gpuherd.client.wanted import fits

    return fits(gpu, wish)


def _on_nodes(herd: Herd, names: tuple[str, ...]) -> Herd:
    if not names:
        return herd
    from msgspec import structs

    from gpuherd.client.herd_search import nodes_named
    from gpuherd.model.errors import Refused

    kept: list[str] = []
    for name in names:
        found = nodes_named(herd, name)
        if not found:
            raise Refused("unknown_node", f'there is no node "{clean(name, 60)}"')
        kept += [node.id for node in found]
    return structs.replace(herd, nodes=tuple(node for node in herd.nodes if node.id in kept))


def _enough(free: Found, wish: Wish) -> Found:
    """Leave those of which as many as are wanted can be had; nothing if they cannot."""
    if wish.same_node:
        counted = Counter(node.id for node, _ in free)
        return [(node, gpu) for node, gpu in free if counted[node.id] >= wish.count]
    return free if len(free) >= wish.count else []


def _free_lines(herd: Herd, such: Found, free: Found, screen: Screen) -> list[str]:
    totals = Counter(gpu.short_name for _, gpu in such)
    by_type: dict[str, Found] = {}
    for node, gpu in free:
        by_type.setdefault(gpu.short_name, []).append((node, gpu))
    rows = []
    for name, found in sorted(by_type.items(), key=lambda item: -len(item[1])):
        most = max(Counter(node.id for node, _ in found).values())
        rows.append(
            [
                Cell(f"{screen.sign('free')} {len(found)}", "free", is_right=True),
                Cell(clean(name, 40), "strong"),
                Cell(f"of {totals[name]}", "dim"),
                Cell(f"{most} on one node" if most > 1 and len(herd.nodes) > 1 else "", "dim"),
                Cell(_places(found, herd.time)),
            ]
        )
    return screen.lay_out(rows)


def _places(found: Found, now: float) -> str:
    """Write places together: first those that nobody has booked, then until when the others are free."""
    by_end: dict[int | None, list[tuple[str, str]]] = {None: []}
    for node, gpu in found:
        by_end.setdefault(_next(gpu), []).append((node.name, node.place_here(gpu)))
    return ", ".join(
        joined_places(places) + ("" if end is None else f" until {clock(end, now)}")
        for end, places in sorted(by_end.items(), key=lambda item: -(item[0] or 2**62))
        if places
    )


def _next(gpu: Gpu) -> int | None:
    return next((booking.starts_at for booking in gpu.bookings if booking.phase == "next"), None)


def _taken_lines(herd: Herd, such: Found, wish: Wish, screen: Screen) -> list[str]:
    """Show who has such ones: the idle first, the longest idle before others, then those whose booking ends soonest."""
    taken = [(node, gpu) for node, gpu in such if gpu.state in _ORDER]
    taken.sort(key=lambda pair: _rank(pair[1]))
    rows = [
        [
            Cell(clean(node.place(gpu), 60), "strong"),
            Cell(_state(gpu, herd.time, screen), gpu.state),
            Cell(clean(gpu.short_name, 30)),
            Cell(who(gpu, herd.time)),
        ]
        for node, gpu in taken[:MOST_HOLDERS]
    ]
    lines = screen.lay_out(rows)
    if len(taken) > MOST_HOLDERS:
        lines.append(screen.paint(f"and {len(taken) - MOST_HOLDERS} more: gpuherd users", "dim"))
    free = [(node, gpu) for node, gpu in such if gpu.state == "free"]
    if free:
        lines.insert(0, f"free: {_places(free, herd.time)}")
    return lines


def _rank(gpu: Gpu) -> tuple[int, float]:
    if gpu.state == "held":
        return 0, gpu.availability.since or 0.0
    ends = [booking.ends_at for booking in gpu.bookings if booking.phase == "current"]
    return (1, min(ends)) if ends else (2, -(gpu.availability.since or 0.0))


def _state(gpu: Gpu, now: float, screen: Screen) -> str:
    idle = ""
    if gpu.state == "held" and gpu.availability.since is not None:
        idle = f" idle {ago(now - gpu.availability.since)}"
    return f"{screen.sign(gpu.state)} {gpu.state}{idle}"


def _missing(wish: Wish, free: int, such: int, *, is_open: bool) -> str:
    if is_open and not such:
        return "the herd has no GPU"
    if is_open and wish.count == 1:
        return "no GPU is free"
    wanted = str(wish)
    if not such:
        return f"no such GPU in the herd: {wanted}"
    if free >= wish.count:
        return f"{wanted} not available: {free} are free, but not on one node"
    return f"{wanted} not available: {free or 'none'} of {plural(such, 'such GPU')} {'is' if free <= 1 else 'are'} free"


def _told(herd: Herd, such: Found, free: Found, wish: Wish) -> dict[str, Any]:
    totals = Counter((gpu.short_name, gpu.facts.memory_total_bytes) for _, gpu in such)
    counts = Counter((gpu.short_name, gpu.facts.memory_total_bytes) for _, gpu in free)
    return {
        "time": herd.time,
        "wanted": wish.count,
        "is_free": bool(free),
        "types": [
            {"short_name": kind[0], "memory_total_bytes": kind[1], "free": counts[kind], "total": total}
            for kind, total in totals.items()
        ],
        "devices": [
            {
                "place": node.place(gpu),
                "node_id": node.id,
                "uuid": gpu.uuid,
                "short_name": gpu.short_name,
                "memory_total_bytes": gpu.facts.memory_total_bytes,
                "free_until": _next(gpu),
            }
            for node, gpu in free
        ],
    }
