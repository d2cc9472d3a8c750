"""``gpuherd up``: watch this machine."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Folder for what must outlive a restart.")
@click.option("--listen", metavar="ADDRESS:PORT", help="Where to listen; the default is 127.0.0.1:8470.")
@click.option("--base-path", help="Path under which the hub is reached, such as /gpus/.")
def command(
    config_file: Path | None, state_dir: Path | None, listen: str | None, base_path: str | None
) -> None:
    """Watch this machine: hub, page and agent in one go."""
    import asyncio

    from gpuherd.wiring.config import load
    from gpuherd.wiring.up import up

    overrides = {
        "state_dir": None if state_dir is None else str(state_dir),
        "listen": listen,
        "base_path": base_path,
    }
    config = load(config_file, {"hub": overrides})
    arguments = [] if config_file is None else ["--config", str(config_file)]
    with config.source.locating():
        asyncio.run(up(config, click.echo, arguments))
