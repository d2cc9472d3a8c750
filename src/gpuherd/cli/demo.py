"""``gpuherd demo``: a simulated herd."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.option(
    "--nodes", type=click.IntRange(1, 1000), default=24, show_default=True, help="Number of simulated nodes."
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    default="127.0.0.1:8471",
    show_default=True,
    help="Address and port to listen on.",
)
@click.option("--base-path", default="/", show_default=True, help="Path prefix of the page, e.g. /gpus/.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    help="Save the hub's state in this folder. Default: it is deleted at the end.",
)
@click.option(
    "--days",
    type=click.IntRange(0, 400),
    default=90,
    show_default=True,
    help="Days of simulated history; 0 for none.",
)
def command(nodes: int, listen: str, base_path: str, state_dir: Path | None, days: int) -> None:
    """Run a hub with a simulated herd; no GPU needed.

    It has GPUs of several types, busy users, users who forget their jobs, and hardware that fails.
    """
    import asyncio

    from gpuherd.wiring.demo import demo

    asyncio.run(demo(nodes, listen, base_path, click.echo, state_dir, days))
