"""``gpuherd hub backup`` and ``gpuherd hub restore``: all records in one file, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

__all__ = ["backup", "restore"]


def _location(context: click.Context) -> Path | str:
    from gpuherd.records.database import records_file
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj
    hub = load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}}).hub
    return hub.records_url or records_file(hub.state_dir)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_context
def backup(context: click.Context, file: Path) -> None:
    """Write all records to FILE: nodes, accounts, bookings, audit log. The hub may be running.

    Password hashes and digests of keys are in it, no password or key; keep it as you keep the hub's own files.
    """
    from gpuherd.records.backup import write_backup

    summary = write_backup(_location(context), file)
    click.echo(f"{summary.rows} rows written to {file}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--replace", is_flag=True, help="Lose the records that are there.")
@click.pass_context
def restore(context: click.Context, file: Path, replace: bool) -> None:
    """Put the backup FILE in the place of all records: everything or nothing. Stop the hub before.

    Also moves records between SQLite and PostgreSQL: backup, set hub.records_url, restore.
    """
    from gpuherd.records.backup import restore_backup

    summary = restore_backup(file, _location(context), replace=replace)
    made = datetime.fromtimestamp(summary.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    click.echo(f"{summary.rows} rows restored from the backup of {made}; everyone logs in anew")
