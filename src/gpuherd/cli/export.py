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
@click.option("--here", is_flag=True, help="This machine alone, without a hub.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Ask the [[nodes]] of this gpuherd.toml once, without a hub.",
)
@click.option(
    "--ssh",
    "ini_file",
    type=click.Path(path_type=Path),
    metavar="CONFIG.INI",
    help="Ask the hosts of an older tool's config.ini over SSH once, without a hub.",
)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="DIR", help="Write index.html into this folder."
)
@click.option("--csv", type=_FILE, metavar="FILE", help="Write a table in the shape of load_data.csv.")
@click.option("--full-csv", type=_FILE, metavar="FILE", help="Write a table with everything.")
@click.option("--json", type=_FILE, metavar="FILE", help="Write the herd as the hub's API tells it.")
@click.option(
    "--reload",
    "reload_seconds",
    type=click.IntRange(5, 86_400),
    metavar="SECONDS",
    help="Let browsers load the page anew this often.",
)
@click.option(
    "--privacy",
    type=click.Choice(["member", "public"]),
    help="With --config and --ssh: names of users (member, the default) or pseudonyms (public).",
)
@click.option(
    "--deadline",
    "deadline_seconds",
    type=click.FloatRange(1, 3600),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --config and --ssh: a host that has not answered by then is shown as silent.",
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
    """Write the herd as a page that needs no hub and no script, and as tables.

    Where it comes from: a hub (--hub, or where you are logged in), this machine (--here), or hosts that are asked over
    SSH here and now (--ssh config.ini, --config gpuherd.toml). FILE may be - for standard output.

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
            "nothing to write: name --html DIR, --csv FILE, --full-csv FILE or --json FILE"
        )
    if len(set(wanted)) < len(wanted):
        raise click.UsageError("two of the tables have the same name; give each a file of its own")
    given = click.core.ParameterSource.COMMANDLINE
    named = [word for name, word in _OWN_SOURCES.items() if context.get_parameter_source(name) is given]
    if context.get_parameter_source("hub_url") is given:
        named.append("--hub")
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} name different herds; choose one")
    if context.params["privacy"] is not None and not {"--config", "--ssh"} & set(named):
        raise click.UsageError("--privacy is for --config and --ssh; a hub decides by your login")
    if context.get_parameter_source("deadline_seconds") is given and not {"--config", "--ssh"} & set(named):
        raise click.UsageError(
            "--deadline is for --config and --ssh: of a hub or this machine no host is asked"
        )
    if context.get_parameter_source("token_file") is given and set(named) - {"--hub"}:
        raise click.UsageError(f"--token-file is for a hub; {named[0]} asks none")
    if context.params["reload_seconds"] is not None and html is None:
        raise click.UsageError("--reload is for the page: name its folder with --html DIR")


def _seen_by_hub(hub_url: str | None, token_file: Path | None) -> SeenHerd:
    from gpuherd.wiring.exporting.targets import SeenHerd

    hub = client(hub_url, token_file)
    if token_file is not None and hub.session().account is None:
        # A hub that is open to the public would tell it pseudonyms, and nobody would know why.
        click.echo(
            f"gpuherd: {hub.line.url} does not know the token in {token_file} (any more); make a new one on its page",
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
    return Failed(f"{hosts} answered; what was written says why, and gpuherd doctor HOST tells more")
