"""``gpuherd demo``: a simulated herd."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.option(
    "--nodes", type=click.IntRange(1, 1000), default=24, show_default=True, help="How many nodes to simulate."
)
@click.option(
    "--listen", metavar="ADDRESS:PORT", default="127.0.0.1:8471", show_default=True, help="Where to listen."
)
@click.option("--base-path", default="/", show_default=True, help="Path under which the page is reached.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path), help="Keep the hub's state here instead of nowhere."
)
@click.option(
    "--days",
    type=click.IntRange(0, 400),
    default=90,
    show_default=True,
    help="How far its history goes back; 0 starts without any.",
)
def command(nodes: int, listen: str, base_path: str, state_dir: Path | None, days: int) -> None:
    """Show a simulated herd: mixed cards, busy and forgetful users, and things that break. Needs no GPU."""
    import asyncio

    from gpuherd.wiring.demo import demo

    asyncio.run(demo(nodes, listen, base_path, click.echo, state_dir, days))
