"""``gpuherd up``: watch this machine."""

from __future__ import annotations

from pathlib import Path

import click

from gpuherd.cli.log import log_arguments, log_options, start_log

__all__ = ["command"]


@click.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--state-dir", type=click.Path(path_type=Path), help="State folder of the hub and the agent.")
@click.option(
    "--listen", metavar="ADDRESS:PORT", help="Address and port to listen on. Default: 127.0.0.1:8470."
)
@click.option("--base-path", help="Path prefix of the hub, e.g. /gpus/.")
@log_options
def command(
    config_file: Path | None,
    state_dir: Path | None,
    listen: str | None,
    base_path: str | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run hub, page and agent together for this machine."""
    import asyncio

    from gpuherd.wiring.config import load
    from gpuherd.wiring.up import up

    start_log(log_format, log_level)
    overrides = {
        "state_dir": None if state_dir is None else str(state_dir),
        "listen": listen,
        "base_path": base_path,
    }
    config = load(config_file, {"hub": overrides})
    arguments = log_arguments(log_format, log_level)
    if config_file is not None:
        arguments += ["--config", str(config_file)]
    with config.source.locating():
        asyncio.run(up(config, click.echo, arguments))
