"""``gpuherd import``: take over the configuration of another tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpuherd.wiring.importing import Outcome

__all__ = ["command"]


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("gpuherd.toml"),
    show_default=True,
    help="Configuration file to write or extend.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be added; write nothing.")
@click.option(
    "--by",
    type=click.Choice(["ssh", "node_info", "pull", "xmlrpc", "http_files"]),
    help="How to connect to the nodes of a list.",
)
@click.option("--copy", is_flag=True, help="Copy hosts and names instead of referring to the old file.")
@click.option(
    "--network",
    "networks",
    multiple=True,
    metavar="CIDR",
    help="Network that may post to the older tool's port.",
)
@click.option(
    "--group", "groups", multiple=True, metavar="NAME", help="Group of an Ansible inventory to import."
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help="File with the password of the older HTTP tool's nodes.",
)
@click.option("--zone", metavar="ZONE", help="IANA time zone of the dates in a comments.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    files: tuple[Path, ...],
    output: Path,
    dry_run: bool,
    by: str | None,
    copy: bool,
    networks: tuple[str, ...],
    groups: tuple[str, ...],
    password_file: Path | None,
    zone: str | None,
    as_json: bool,
) -> None:
    """Import configuration files of another tool.

    Recognises by content: hosts.txt, config.ini, config.yml, fetch_stats_conf.json, Ansible inventories,
    run-this-on-every-node.sh, backend/.env, frontend/.env, index.php, aliases.csv, comments.json, hosts.json and
    folders of drop files. For each file it shows what was imported and what was not. An existing configuration is
    copied before it is replaced.

    Exit status: 0 done, 1 nothing was recognised.
    """
    from gpuherd.wiring.importing import Wishes, take_over

    wishes = Wishes(
        by=by,  # type: ignore[arg-type]  # one of the choices
        copy=copy,
        networks=networks,
        groups=groups,
        password_file=password_file,
        zone=zone,
        files=files,
    )
    outcome = take_over(files, output, wishes, dry_run=dry_run)
    if as_json:
        click.echo(_as_json(outcome))
    else:
        _tell(outcome, dry_run=dry_run)
    sys.exit(0 if outcome.understood_any else 1)


def _as_json(outcome: Outcome) -> str:
    import json

    files = [
        {
            "file": str(reading.file),
            "what": reading.what,
            "notes": [
                {"line": note.line, "is_taken": note.is_taken, "sentence": note.sentence}
                for note in reading.notes
            ],
        }
        for reading in outcome.readings
    ]
    told = {
        "output": str(outcome.output),
        "files": files,
        "remarks": list(outcome.remarks),
        "added": "\n".join(outcome.added),
        "copy": None if outcome.copy is None else str(outcome.copy),
    }
    return json.dumps(told, indent=2)


def _tell(outcome: Outcome, *, dry_run: bool) -> None:
    for reading in outcome.readings:
        click.echo(f"{reading.file}: {reading.what or 'not recognised'}")
        for note in sorted(reading.notes, key=lambda note: (note.line is None, note.line or 0)):
            place = "" if note.line is None else f"line {note.line}: "
            click.echo(f"  {'+' if note.is_taken else '-'} {place}{note.sentence}")
    for remark in outcome.remarks:
        click.echo(remark)
    if not outcome.added:
        reason = "nothing to add" if outcome.understood_any else "nothing was recognised"
        click.echo(f"{outcome.output}: unchanged, {reason}")
        return
    if dry_run:
        click.echo(f"{outcome.output}: would get\n")
        click.echo("\n".join(outcome.added), nl=False)
        return
    if outcome.copy is not None:
        click.echo(f"{outcome.copy}: a copy of {outcome.output} as it was")
    click.echo(f"{outcome.output}: written; start the hub with: gpuherd hub --config {outcome.output} run")
