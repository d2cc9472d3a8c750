"""``gpuherd hub backup`` and ``gpuherd hub restore``: all records in one file, and back."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuherd.cli.as_owner import acting_as_owner, acting_as_root, check_used
from gpuherd.cli.saying import say
from gpuherd.model.errors import Failed, Refused

if TYPE_CHECKING:
    from gpuherd.api.settings import HubSettings
    from gpuherd.wiring.config import Config

__all__ = ["backup", "restore", "start_afresh"]


def _config(context: click.Context) -> Config:
    from gpuherd.wiring.config import load

    config_file, state_dir = context.obj
    return load(config_file, {"hub": {"state_dir": None if state_dir is None else str(state_dir)}})


def _location(settings: HubSettings) -> Path | str:
    from gpuherd.records.database import records_file

    return settings.records_url or records_file(settings.state_dir)


@contextlib.contextmanager
def _without_hub(settings: HubSettings) -> Iterator[None]:
    """Lock the hub's folder, so that no hub starts with it meanwhile; ``Refused`` ``hub_running`` if one runs."""
    from gpuherd.api.state_dir import make_state_dir, try_lock_state_dir

    folder = settings.state_dir
    if settings.records_url is not None and not folder.exists():
        yield  # the hub is elsewhere; its lease in the database shows whether it runs
        return
    make_state_dir(folder)
    lock = try_lock_state_dir(folder)
    if lock is None:
        raise Refused(
            "hub_running",
            f"a hub is running with {folder}; stop it, restore, and start it again (as a service: systemctl stop "
            "gpuherd-hub)",
        )
    try:
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _between(folder: Path) -> Iterator[Path | None]:
    """Act in the hub's folder as its owner, with a file there through which root's own file goes; None: no need."""
    with acting_as_owner(folder) as is_other:
        from gpuherd.records.backup_file import partial_name

        file = partial_name(folder / f"backup-{os.urandom(8).hex()}")
        try:
            yield file if is_other else None
        finally:
            if is_other:
                file.unlink(missing_ok=True)


def _copy(source: Path, target: Path, *, source_is_root_s: bool) -> None:
    """Copy between root's file and the owner's, each as whom it belongs to; links are not followed in the folder."""

    from gpuherd.records.backup_file import partial_name, remove_partial_backups

    def opened(path: Path, flags: int, *, is_root_s: bool) -> int:
        with acting_as_root() if is_root_s else contextlib.nullcontext():
            return os.open(path, flags | os.O_CLOEXEC, 0o600)

    try:
        no_links = 0 if source_is_root_s else os.O_NOFOLLOW
        with os.fdopen(opened(source, os.O_RDONLY | no_links, is_root_s=source_is_root_s), "rb") as reader:
            fresh = target if source_is_root_s else partial_name(target)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # never into a file that someone else has laid there
            if not source_is_root_s:
                with acting_as_root():
                    remove_partial_backups(target.parent)
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
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def backup(context: click.Context, file: Path, as_json: bool) -> None:
    """Back up the database to FILE; the hub can keep running.

    Includes nodes, accounts, bookings and the audit log. It contains hashes of passwords and keys, but no password and
    no key; protect it like the hub's own files. History (samples and usage) is not included: also copy the folder
    "history" from the hub's state folder.
    """
    import json

    from gpuherd.api.open_records import open_hub_records
    from gpuherd.api.records_care import refuse_missing
    from gpuherd.records.backup import write_backup

    config = _config(context)
    settings = config.hub
    with _between(settings.state_dir) as between:
        check_used(settings)
        # An empty database would replace the last good backup.
        with contextlib.closing(open_hub_records(settings)) as records:
            refuse_missing(records.engine, settings.state_dir)
        summary = write_backup(_location(settings), between or file)
        if between is not None:
            _copy(between, file, source_is_root_s=False)
    if not summary.is_logged:
        say("gpuherd: the backup is complete, but could not be recorded in the audit log")
    if as_json:
        click.echo(json.dumps({"file": str(file), "rows": summary.rows}))
        return
    click.echo(f"{summary.rows} rows written to {file}")
    history = config.history.folder or settings.state_dir / "history"
    click.echo(f"History (samples and usage) is not included; to keep it, also copy {history}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--replace", is_flag=True, help="Overwrite the existing database.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def restore(context: click.Context, file: Path, replace: bool, as_json: bool) -> None:
    """Replace the database with the backup FILE.

    Stop the hub first: the command refuses to run while a hub uses the database. If anything fails, the old data stays
    unchanged.

    To move between SQLite and PostgreSQL: back up, change hub.records_url, restore.
    """
    import json

    from gpuherd.api.records_care import forget_seen
    from gpuherd.records.backup import restore_backup

    settings = _config(context).hub
    with _between(settings.state_dir) as between:
        if between is not None:
            _copy(file, between, source_is_root_s=True)
        summary = restore_backup(
            between or file, _location(settings), replace=replace, holding=lambda: _without_hub(settings)
        )
        forget_seen(settings.state_dir)
    if as_json:
        told = {"file": str(file), "rows": summary.rows, "created_at": summary.created_at}
        click.echo(json.dumps(told))
        return
    made = datetime.fromtimestamp(summary.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    click.echo(f"{summary.rows} rows restored from the backup of {made}; everyone has to log in again")


@click.command("start-afresh")
@click.pass_context
def start_afresh(context: click.Context) -> None:
    """Start with an empty database after the old one was lost.

    Use this if the hub reports that its database is empty and you have no backup. Stop the hub first. The command
    deletes nothing: history stays, and it refuses to run if the database is not empty. Then start the hub, open
    its set-up link, and enrol the nodes again.
    """
    import time

    from gpuherd.api.open_records import open_hub_records
    from gpuherd.api.records_care import start_afresh as begin
    from gpuherd.api.state_dir import lock_state_dir

    settings = _config(context).hub
    with acting_as_owner(settings.state_dir):
        check_used(settings)
        lock = lock_state_dir(settings.state_dir)
        try:
            with contextlib.closing(open_hub_records(settings)) as records:
                begin(records.engine, settings.state_dir, now=time.time())
        finally:
            os.close(lock)
    click.echo(
        "the hub will start with an empty database; start it, open its set-up link, and enrol the nodes again"
    )
