"""``gpuherd export``: the herd as a page and as tables, written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.asking import NOT_ALLOWED, client, hub_options, telling

if TYPE_CHECKING:
    from gpuherd.wiring.exporting.targets import SeenHerd

__all__ = ["command"]

STANDARD_OUTPUT = Path("-")
_FILE = click.Path(path_type=Path, allow_dash=True)
_OWN_SOURCES = {"here": "--here", "config_file": "--config", "ini_file": "--ssh"}


@click.command()
@hub_options
@click.option("--here", is_flag=True, help="Use only this machine's data; needs no hub.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Poll the [[nodes]] of this gpuherd.toml once, without a hub.",
)
@click.option(
    "--ssh",
    "ini_file",
    type=click.Path(path_type=Path),
    metavar="CONFIG.INI",
    help="Poll the hosts of an older tool's config.ini over SSH once, without a hub.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="DIR", help="Write index.html into this folder."
)
@click.option("--csv", type=_FILE, metavar="FILE", help="Write a CSV file in the format of load_data.csv.")
@click.option("--full-csv", type=_FILE, metavar="FILE", help="Write a CSV file with all columns.")
@click.option(
    "--json", type=_FILE, metavar="FILE", help="Write the herd as JSON, in the format of the hub's API."
)
@click.option(
    "--reload",
    "reload_seconds",
    type=click.IntRange(5, 86_400),
    metavar="SECONDS",
    help="Make browsers reload the page at this interval.",
)
@click.option(
    "--privacy",
    type=click.Choice(["member", "public"]),
    help="With --config or --ssh: show user names (member, the default) or pseudonyms (public).",
)
@click.option(
    "--deadline",
    "deadline_seconds",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --config or --ssh: show hosts that have not responded by then as offline.",
)
@click.pass_context
def command(
    context: click.Context,
    hub_url: str | None,
    token_file: Path | None,
    here: bool,
    config_file: Path | None,
    ini_file: Path | None,
    html: Path | None,
    csv: Path | None,
    full_csv: Path | None,
    json: Path | None,
    reload_seconds: int | None,
    privacy: str | None,
    deadline_seconds: float,
) -> None:
    """Write the herd as a static page, CSV or JSON.

    The page needs no hub and no JavaScript. The data comes from a hub (--hub, or the one you are logged in to), from
    this machine (--here), or from hosts that are polled once over SSH (--ssh, --config). Use - as FILE for standard
    output.

    \b
    gpuherd export --html /var/www/gpus --csv /var/www/gpus/load_data.csv
    gpuherd export --ssh config.ini --html . --csv load_data.csv --reload 60
    """
    _check(context, html, (csv, full_csv, json))
    from gpuherd.wiring.exporting.page import PageSettings
    from gpuherd.wiring.exporting.targets import Targets, herd_files
    from gpuherd.wiring.exporting.writing import replace_files

    if ini_file is not None or config_file is not None:
        seen = _asked_once(config_file, ini_file, deadline_seconds, privacy or "member")
    else:
        with telling():
            seen = _seen_here() if here else _seen_by_hub(hub_url, token_file)
    targets = Targets(html=html, csv=csv, full_csv=full_csv, json=json)
    contents = herd_files(seen, targets, PageSettings(reload_seconds=reload_seconds))
    printed = contents.pop(STANDARD_OUTPUT, None)
    replace_files(contents)
    if printed is not None:
        sys.stdout.buffer.write(printed)
    _tell(seen, list(contents), is_once=ini_file is not None or config_file is not None)


def _check(context: click.Context, html: Path | None, tables: tuple[Path | None, ...]) -> None:
    """Refuse a command line that does not say what to write, or says two things at once."""
    wanted = [table for table in tables if table is not None]
    if html is None and not wanted:
        raise click.UsageError(
            "nothing to write: give --html DIR, --csv FILE, --full-csv FILE or --json FILE"
        )
    if len(set(wanted)) < len(wanted):
        raise click.UsageError("two outputs have the same file name; use different files")
    given = click.core.ParameterSource.COMMANDLINE
    named = [word for name, word in _OWN_SOURCES.items() if context.get_parameter_source(name) is given]
    if context.get_parameter_source("hub_url") is given:
        named.append("--hub")
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} are different sources; choose one")
    if context.params["privacy"] is not None and not {"--config", "--ssh"} & set(named):
        raise click.UsageError("--privacy needs --config or --ssh; a hub decides by your login")
    if context.get_parameter_source("deadline_seconds") is given and not {"--config", "--ssh"} & set(named):
        raise click.UsageError("--deadline needs --config or --ssh")
    if context.get_parameter_source("token_file") is given and set(named) - {"--hub"}:
        raise click.UsageError(f"--token-file needs a hub; {named[0]} uses none")
    if context.params["reload_seconds"] is not None and html is None:
        raise click.UsageError("--reload needs --html DIR")


def _seen_by_hub(hub_url: str | None, token_file: Path | None) -> SeenHerd:
    from gpuherd.wiring.exporting.targets import SeenHerd

    hub = client(hub_url, token_file)
    if token_file is not None and hub.session().account is None:
        # A hub that is open to the public would tell it pseudonyms, and nobody would know why.
        click.echo(
            f"gpuherd: {hub.line.url} does not accept the token in {token_file}; create a new one on the hub's page",
            err=True,
        )
        sys.exit(NOT_ALLOWED)
    return SeenHerd(herd=hub.herd(), answer=hub.last_answer)


def _seen_here() -> SeenHerd:
    from gpuherd.wiring.exporting.targets import SeenHerd
    from gpuherd.wiring.here import look_here_plainly

    herd, answer = look_here_plainly()
    return SeenHerd(herd=herd, answer=answer)


def _asked_once(
    config_file: Path | None, ini_file: Path | None, deadline_seconds: float, privacy: str
) -> SeenHerd:
    import asyncio

    from gpuherd.wiring.config import load
    from gpuherd.wiring.exporting.one_shot import ask_once, config_of_ini

    config = load(config_file) if ini_file is None else config_of_ini(ini_file)
    return asyncio.run(
        ask_once(
            config, deadline_seconds=deadline_seconds, privacy="public" if privacy == "public" else "member"
        )
    )


def _tell(seen: SeenHerd, files: list[Path], *, is_once: bool) -> None:
    """Say what was done to a person who looks; to cron only if nobody has answered."""
    herd = seen.herd
    silent = [node for node in herd.nodes if node.state != "live"]
    if files and sys.stdout.isatty():
        free = sum(gpu.state == "free" for _, gpu in herd.units())
        names = ", ".join(str(file) for file in files)
        click.echo(
            f"{free} GPUs free on {len(herd.nodes) - len(silent)} of {len(herd.nodes)} hosts; wrote {names}"
        )
    if is_once and sys.stderr.isatty():
        from gpuherd.model.text import clean

        for node in silent:
            click.echo(f"gpuherd: {clean(node.reason, 512)}", err=True)
    if is_once and herd.nodes and len(silent) == len(herd.nodes):
        raise _nobody(len(silent))


def _nobody(count: int) -> Exception:
    from gpuherd.model.errors import Failed

    hosts = "the host has not" if count == 1 else f"none of the {count} hosts has"
    return Failed(f"{hosts} responded; the output says why. For details run: gpuherd doctor HOST")
