"""Commands of ``gpuherd hub`` that also stand alone: with the options by which ``hub`` finds what it keeps."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import click

__all__ = ["standing_alone"]


def standing_alone(command: click.Command) -> click.Command:
    """Give the same command with ``--config`` and ``--state-dir`` of its own."""
    alone = copy.copy(command)
    alone.params = [
        *command.params,
        click.Option(
            ["--config", "config_file"], type=click.Path(path_type=Path), help="Configuration file."
        ),
        click.Option(["--state-dir"], type=click.Path(path_type=Path), help="State folder of the hub."),
    ]
    called = command.callback

    @click.pass_context
    def callback(
        context: click.Context,
        /,
        *arguments: Any,
        config_file: Path | None,
        state_dir: Path | None,
        **options: Any,
    ) -> Any:
        context.obj = (config_file, state_dir)  # as ``gpuherd hub`` leaves it for its commands
        return None if called is None else context.invoke(called, *arguments, **options)

    alone.callback = callback
    return alone
