"""``gpuherd config``: check a configuration, or show every key it can hold."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.group()
def command() -> None:
    """Check and show the configuration."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the path of the valid file as JSON; null if there is no file.",
)
def check(file: Path | None, as_json: bool) -> None:
    """Check FILE, or the default configuration file."""
    import json

    from gpuherd.wiring.checking import check_config
    from gpuherd.wiring.config import default_config_files, load

    check_config(load(file))
    place = file or next((place for place in default_config_files() if place.is_file()), None)
    if as_json:
        click.echo(json.dumps({"file": None if place is None else str(place), "is_good": True}))
        return
    click.echo(f"{place}: good" if place else "no configuration file; using the defaults")


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--changed", "only_changed", is_flag=True, help="Only keys that differ from their defaults.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of TOML.")
def show(file: Path | None, only_changed: bool, as_json: bool) -> None:
    """Show every key of FILE with its effective value.

    Without FILE, shows the default configuration file. Passwords in addresses are left out.
    """
    import json

    from gpuherd.wiring.config import load
    from gpuherd.wiring.config_shown import config_shown, effective

    config = load(file)
    if as_json:
        click.echo(json.dumps(effective(config, only_changed=only_changed), indent=2))
    else:
        click.echo(config_shown(config, only_changed=only_changed), nl=False)


@command.command()
def reference() -> None:
    """Print every key with its default and meaning, as Markdown."""
    from gpuherd.wiring.reference import config_reference

    click.echo(config_reference(), nl=False)
