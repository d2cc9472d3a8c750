"""``gpuherd config``: check a configuration, or show every key it can hold."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.group()
def command() -> None:
    """Check the configuration or show what it can hold."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
def check(file: Path | None) -> None:
    """Read FILE (or the default one) and say whether it can be used."""
    from gpuherd.wiring.checking import check_config
    from gpuherd.wiring.config import default_config_files, load

    check_config(load(file))
    place = file or next((place for place in default_config_files() if place.is_file()), None)
    click.echo(f"{place}: good" if place else "no configuration file; the defaults are good")


@command.command()
def reference() -> None:
    """Print every key with its default and meaning, as Markdown."""
    from gpuherd.wiring.reference import config_reference

    click.echo(config_reference(), nl=False)
