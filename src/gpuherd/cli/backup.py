"""``gpuherd hub backup`` and ``gpuherd hub restore``: all records in one file, and back."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from gpuherd.cli.as_owner import acting_as_owner, acting_as_root
from gpuherd.model.errors import Failed

__all__ = ["backup", "restore"]


def _location(context: click.Context) -> tuple[Path | str, Path]:
    """Give where the records are, and the hub's folder."""
    from gpuherd.records.database import records_file
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj
    hub = load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}}).hub
    return hub.records_url or records_file(hub.state_dir), hub.state_dir


@contextlib.contextmanager
def _between(folder: Path) -> Iterator[Path | None]:
    """Act in the hub's folder as its owner, with a file there through which root's own file goes; None: no need."""
    with acting_as_owner(folder) as is_other:
        file = folder / f".backup-{os.urandom(8).hex()}"
        try:
            yield file if is_other else None
        finally:
            if is_other:
                file.unlink(missing_ok=True)


def _copy(source: Path, target: Path, *, source_is_root_s: bool) -> None:
    """Copy between root's file and the owner's, each as whom it belongs to; links are not followed in the folder."""

    def opened(path: Path, flags: int, *, is_root_s: bool) -> int:
        with acting_as_root() if is_root_s else contextlib.nullcontext():
            return os.open(path, flags | os.O_CLOEXEC, 0o600)

    try:
        no_links = 0 if source_is_root_s else os.O_NOFOLLOW
        with os.fdopen(opened(source, os.O_RDONLY | no_links, is_root_s=source_is_root_s), "rb") as reader:
            fresh = target if source_is_root_s else target.with_name(f".{target.name}.new")
            flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if source_is_root_s else os.O_TRUNC)
            with os.fdopen(opened(fresh, flags, is_root_s=not source_is_root_s), "wb") as writer:
                shutil.copyfileobj(reader, writer)
                os.fsync(writer.fileno())
        if not source_is_root_s:
            with acting_as_root():
                fresh.replace(target)
    except OSError as error:
        raise Failed(f"cannot copy {source} to {target}: {error.strerror}") from error


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
@click.pass_context
def backup(context: click.Context, file: Path, as_json: bool) -> None:
    """Write all records to FILE: nodes, accounts, bookings, audit log. The hub may be running.

    Password hashes and digests of keys are in it, no password or key; keep it as you keep the hub's own files.
    """
    import json

    from gpuherd.records.backup import write_backup

    location, folder = _location(context)
    with _between(folder) as between:
        summary = write_backup(location, between or file)
        if between is not None:
            _copy(between, file, source_is_root_s=False)
    if as_json:
        click.echo(json.dumps({"file": str(file), "rows": summary.rows}))
        return
    click.echo(f"{summary.rows} rows written to {file}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--replace", is_flag=True, help="Lose the records that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print what was restored as JSON.")
@click.pass_context
def restore(context: click.Context, file: Path, replace: bool, as_json: bool) -> None:
    """Put the backup FILE in the place of all records: everything or nothing. Stop the hub before.

    Also moves records between SQLite and PostgreSQL: backup, set hub.records_url, restore.
    """
    import json

    from gpuherd.records.backup import restore_backup

    location, folder = _location(context)
    with _between(folder) as between:
        if between is not None:
            _copy(file, between, source_is_root_s=True)
        summary = restore_backup(between or file, location, replace=replace)
    if as_json:
        told = {"file": str(file), "rows": summary.rows, "created_at": summary.created_at}
        click.echo(json.dumps(told))
        return
    made = datetime.fromtimestamp(summary.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    click.echo(f"{summary.rows} rows restored from the backup of {made}; everyone logs in anew")
