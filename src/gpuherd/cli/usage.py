"""``gpuherd usage``: who used how much, whom to ask for a GPU, and a month's report."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuherd.cli.asking import client, hub_options, moment, own_zone, table, telling
from gpuherd.cli.misplaced import refuse_misplaced
from gpuherd.cli.showing import Screen
from gpuherd.cli.times import TINY_CELLS, brief_moment, shown_moment
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client import HubClient
    from gpuherd.client.usage_views import Bookings, Figures, Stay, TrendRow, Usage

__all__ = ["command"]

F = TypeVar("F", bound=Callable[..., Any])
KEYS = ("user", "group", "node", "type", "job", "device")
ARROWS = {"up": "↑", "down": "↓", "level": "→"}
UNKNOWN = "-"
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_UUID = re.compile(r"((GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]{27}", re.ASCII | re.IGNORECASE)


def _range_options(function: F) -> F:
    """Add the options that say which use is meant."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the hub's response as JSON."),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV, for spreadsheets."),
        click.option("--job", metavar="JOB", help="Only this batch job."),
        click.option("--type", "type_", metavar="TYPE", help="Only this GPU type, e.g. 'A100 80GB'."),
        click.option(
            "--gpu", metavar="NODE/INDEX", help="Only this GPU or slice, e.g. gpu07/3; also a UUID."
        ),
        click.option("--node", metavar="NODE", help="Only this node."),
        click.option("--group", metavar="GROUP", help="Only members of this group."),
        click.option("--user", metavar="USER", help="Only this user."),
        click.option(
            "--to", "until", metavar="TIME", help="End, in the same formats; a day is included. Default: now."
        ),
        click.option(
            "--from",
            "since",
            metavar="TIME",
            default="7d",
            show_default=True,
            help="Start: 7d, 36h, 2026-10, 2026-10-01 or 2026-10-01T08:00+02:00. Without a zone: the hub's.",
        ),
    ):
        function = option(function)
    return function


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@click.option("--by", type=click.Choice(KEYS), default="user", show_default=True, help="Group rows by this.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of rows."
)
@_range_options
@hub_options
@click.pass_context
def command(
    context: click.Context,
    by: str,
    limit: int,
    since: str,
    until: str | None,
    user: str | None,
    group: str | None,
    node: str | None,
    gpu: str | None,
    type_: str | None,
    job: str | None,
    as_csv: bool,
    as_json: bool,
    hub_url: str | None,
    token_file: Path | None,
) -> None:
    """Show GPU-hours, utilisation and cost per user, group, node or type.

    Exit status: 0 done, 3 the hub cannot answer this query, 4 not logged in or not allowed, 1 any other error.
    """
    context.obj = (hub_url, token_file)
    if context.invoked_subcommand is not None:
        refuse_misplaced(context)
        return
    hub = client(hub_url, token_file)
    with telling():
        wanted = _wanted(hub, since, until, user, group, node, gpu, type_, job)
        if _is_told_plainly(
            hub, "usage", {**wanted, "by": by, "limit": limit}, as_csv=as_csv, as_json=as_json
        ):
            return
        usage = hub.usage(**wanted, by=by, limit=limit)
    click.echo(_usage(usage, Screen.of(sys.stdout), time.time()))


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print the hub's response as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, for spreadsheets.")
@click.pass_context
def trends(context: click.Context, as_json: bool, as_csv: bool) -> None:
    """Show who holds how many GPUs, now and on average.

    The averages are exponential moving averages over 2 hours, a day and a week. The arrow shows whether use is rising
    or falling. A GPU that several users share is split by memory. In the row of free GPUs, "booked" counts those that
    nobody has booked.
    """
    hub = client(*context.obj)
    with telling():
        if _is_told_plainly(hub, "usage/trends", {}, as_csv=as_csv, as_json=as_json):
            return
        found = hub.trends()
    header = ["user", "used", "idle", "booked", "2 h", "24 h", "1 week"]
    rows = [_trend(row) for row in (*found.rows, found.free)]
    click.echo(table(rows, header, Screen.of(sys.stdout), numbers=(1, 2, 3, 4, 5, 6)))
    if found.earlier_until is not None:
        until = moment(int(found.earlier_until))
        click.echo(f"until {until}, the averages are those of the older page")


@command.command()
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of sessions."
)
@_range_options
@click.pass_context
def sessions(
    context: click.Context,
    limit: int,
    since: str,
    until: str | None,
    user: str | None,
    group: str | None,
    node: str | None,
    gpu: str | None,
    type_: str | None,
    job: str | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List sessions: who used which GPU, and when; latest first."""
    hub = client(*context.obj)
    with telling():
        wanted = _wanted(hub, since, until, user, group, node, gpu, type_, job)
        if _is_told_plainly(
            hub, "usage/sessions", {**wanted, "limit": limit}, as_csv=as_csv, as_json=as_json
        ):
            return
        found = hub.stays(**wanted, limit=limit)
    if not found.is_complete:
        click.echo(
            f"gpuherd: showing the {limit} latest sessions; for more, use a larger --limit, or --to", err=True
        )
    click.echo(
        _sessions(found.sessions, Screen.of(sys.stdout), time.time()) if found.sessions else "no sessions"
    )


def _month(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not _MONTH.fullmatch(value):
        raise click.BadParameter("write a month such as 2026-10")
    return value


@command.command()
@click.argument("month", metavar="MONTH", callback=_month)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("markdown", "html", "json")),
    default="markdown",
    show_default=True,
    help="Output format; html is a single file you can print or send.",
)
@click.option("--zone", metavar="ZONE", help="Time zone of the month. Default: this machine's.")
@click.pass_context
def month(context: click.Context, month: str, format_: str, zone: str | None) -> None:
    """Print the report of MONTH, e.g. 2026-10."""
    hub = client(*context.obj)
    with telling():
        report = hub.text(f"usage/months/{month}", zone=own_zone(zone), format=format_)
    if format_ == "json":
        from gpuherd.client.line import plain_json

        click.echo(plain_json(hub.last_answer))
    else:
        click.echo(_harmless(report), nl=False)


def _wanted(
    hub: HubClient,
    since: str,
    until: str | None,
    user: str | None,
    group: str | None,
    node: str | None,
    gpu: str | None,
    type_: str | None,
    job: str | None,
) -> dict[str, Any]:
    given = {"from": since, "to": until, "user": user, "group": group, "type": type_, "job": job}
    if node is not None:
        given["node"] = _node(hub, node)
    if gpu is not None:
        given["device"] = _device(hub, gpu)
    return {key: value for key, value in given.items() if value is not None}


def _node(hub: HubClient, name: str) -> str:
    """Give a node's id; what no node is called may be the id of one that is gone."""
    from gpuherd.client.wishes import node_named

    try:
        return node_named(name, hub.devices(int(time.time())))
    except Refused as error:
        if error.code == "unknown_node":
            return name
        raise


def _device(hub: HubClient, name: str) -> str:
    """Give a device's UUID; one that no device has may be of one that is gone."""
    from gpuherd.client.wishes import device_named

    return device_named(name, hub.devices(int(time.time())))


def _is_told_plainly(
    hub: HubClient, path: str, wanted: dict[str, Any], *, as_csv: bool, as_json: bool
) -> bool:
    """Print the answer as it comes, if that is asked for."""
    from gpuherd.client.line import plain_json

    if as_csv and as_json:
        raise click.UsageError("use either --csv or --json")
    if as_csv:
        click.echo(_harmless(hub.text(path, **wanted, format="csv").replace("\r\n", "\n")), nl=False)
    elif as_json:
        hub.text(path, **wanted)
        click.echo(plain_json(hub.last_answer))
    return as_csv or as_json


def _harmless(text: str) -> str:
    """Give a text of many lines in which nothing can act on a terminal."""
    return "\n".join(clean(line, len(line) + 1) for line in text.split("\n"))


def _usage(usage: Usage, screen: Screen, now: float) -> str:
    has_cost = usage.currency is not None
    has_bookings = any(row.bookings is not None for row in usage.rows)
    header = [usage.by, "GPU-h", "busy", "held idle", "eff", "kWh"]
    if has_cost:
        header.append(clean(usage.currency or "", 8))
    if has_bookings:
        header += ["booked", "used"]
    rows = [
        _figures(row.label, row.figures, row.bookings, has_cost=has_cost, has_bookings=has_bookings)
        for row in usage.rows
    ]
    rows.append(_figures("all", usage.totals, usage.bookings, has_cost=has_cost, has_bookings=has_bookings))
    lines = []
    if usage.omitted_rows:
        lines.append(f"and {usage.omitted_rows} more; use a larger --limit")
    if usage.capacity_hours:
        taken = usage.totals.gpu_hours / usage.capacity_hours
        lines.append(f"{taken:.0%} of {usage.capacity_hours:,.0f} available GPU-hours")
    lines += [
        f"missing {moment(int(part.start))} – {moment(int(part.end))}: {clean(part.reason, 120)}"
        for part in usage.missing[:3]
    ]
    laid = table(rows, header, screen, numbers=range(1, len(header)))
    return "\n".join([_range(usage, now, screen), laid, *(screen.cut(line) for line in lines)])


def _range(usage: Usage, now: float, screen: Screen) -> str:
    text = f"{moment(int(usage.start))} – {moment(int(usage.end))}"
    if not screen.width or len(text) <= screen.width:
        return text
    return screen.cut(f"{brief_moment(usage.start, now)} – {brief_moment(usage.end, now)}")


def _figures(
    label: str, figures: Figures, bookings: Bookings | None, *, has_cost: bool, has_bookings: bool
) -> list[str]:
    cells = [
        label,
        _number(figures.gpu_hours),
        _number(figures.busy_hours),
        _number(figures.idle_hours),
        UNKNOWN if figures.efficiency is None else f"{figures.efficiency:.0%}",
        _number(figures.energy_kwh),
    ]
    if has_cost:
        cells.append(UNKNOWN if figures.cost is None else f"{figures.cost:,.2f}")
    if has_bookings:
        cells += [_number(bookings.booked_hours), _number(bookings.used_hours)] if bookings else [UNKNOWN] * 2
    return cells


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}"


def _trend(row: TrendRow) -> list[str]:
    return [
        row.label,
        _number(row.used_gpus),
        _number(row.idle_gpus),
        _number(row.reserved_gpus),
        *(
            f"{ARROWS.get(trend, '')} {_number(mean)}".strip()
            for trend, mean in (
                (row.trend_2h, row.mean_2h),
                (row.trend_24h, row.mean_24h),
                (row.trend_1w, row.mean_1w),
            )
        ),
    ]


def _sessions(stays: Sequence[Stay], screen: Screen, now: float) -> str:
    header = ["from", "to", "user", "node", "GPU", "type", "GPU-h", "busy", "job", "what"]
    names = _short_uuids({stay.uuid for stay in stays})
    rows = [
        [
            shown_moment(stay.started_at, now, screen),
            "now" if stay.ended_at is None else shown_moment(stay.ended_at, now, screen),
            stay.user or "unknown",
            stay.node,
            stay.device or names[stay.uuid],
            stay.type,
            _number(stay.figures.gpu_hours),
            UNKNOWN if stay.figures.efficiency is None else f"{stay.figures.efficiency:.0%}",
            stay.job or UNKNOWN,
            stay.command or UNKNOWN,
        ]
        for stay in stays
    ]
    drop: tuple[int, ...] = (5, 8, 7, 6)
    if 0 < screen.width < TINY_CELLS:
        drop += (9, 1, 3)  # when, who and which GPU are left
    return table(rows, header, screen, numbers=(6, 7), drop=drop)


def _short_uuids(uuids: Iterable[str]) -> dict[str, str]:
    """Give for each UUID the beginning by which ``gpuherd gpu`` finds it; all of it where two begin alike."""
    short = {uuid: found[1] if (found := _UUID.fullmatch(uuid)) else uuid for uuid in uuids}
    count = Counter(short.values())
    return {uuid: start if count[start] == 1 else uuid for uuid, start in short.items()}
