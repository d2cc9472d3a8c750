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
@click.option(
    "--json", "as_json", is_flag=True, help="Print as JSON which file is good, or null where there is none."
)
def check(file: Path | None, as_json: bool) -> None:
    """Read FILE (or the default one) and say whether it can be used."""
    import json

    from gpuherd.wiring.checking import check_config
    from gpuherd.wiring.config import default_config_files, load

    check_config(load(file))
    place = file or next((place for place in default_config_files() if place.is_file()), None)
    if as_json:
        click.echo(json.dumps({"file": None if place is None else str(place), "is_good": True}))
        return
    click.echo(f"{place}: good" if place else "no configuration file; the defaults are good")


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--changed", "only_changed", is_flag=True, help="Only what is not as it is by default.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of TOML.")
def show(file: Path | None, only_changed: bool, as_json: bool) -> None:
    """Show what FILE (or the default one) comes to: every key in force, passwords in addresses left out."""
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
