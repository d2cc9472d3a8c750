"""The hub's folder: whether the hub can write it, nobody else can, and what lies there that should be looked at."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from gpuherd.wiring.doctor.files import is_there, may_be_looked_into, owner_of
from gpuherd.wiring.doctor.steps import Journal, StepFailed
from gpuherd.wiring.doctor.wording import age, size

__all__ = ["examine_state_folder"]

LEAST_FREE_BYTES = 500_000_000
_STEP = "state folder"


def examine_state_folder(folder: Path, journal: Journal) -> None:
    """Look at the folder; everything that is wrong has its own line."""
    if not is_there(folder) and may_be_looked_into(folder.parent):
        journal.skipped(_STEP, f"{folder} is created at the hub's first start")
        return
    owner_id, owner = owner_of(folder) or (None, "someone else")
    if not os.access(folder, os.W_OK | os.X_OK):
        journal.failed(
            _STEP,
            "not writable",
            f"this user cannot write to {folder}, which belongs to {owner}: run the hub and this command "
            f"as {owner}, or choose another hub.state_dir",
        )
        return
    free = shutil.disk_usage(folder).free
    troubles = list(_troubles(folder, free))
    for trouble in troubles:
        journal.failed(_STEP, trouble.fact, trouble.remedy)
    if not troubles:
        whose = f" (of {owner})" if owner_id != os.geteuid() else ""
        journal.ok(_STEP, f"{folder}{whose}, {size(free)} free")


def _troubles(folder: Path, free_bytes: int) -> Iterator[StepFailed]:
    if free_bytes < LEAST_FREE_BYTES:
        yield StepFailed(
            f"{size(free_bytes)} free",
            f"only {size(free_bytes)} are free for {folder}: free some space, otherwise reports are not "
            "saved",
        )
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield StepFailed(
            "writable by others",
            f"other users can write to {folder} (mode {mode:04o}), and could replace the hub's database: "
            f"chmod go-w {folder}",
        )
    readable = next(_readable_by_all(folder), None)
    if readable is not None:
        yield StepFailed(
            "readable by others",
            f"every user can read {readable}, which may contain secrets: chmod -R o-rwx {folder}",
        )
    damaged = folder / "state.sqlite.damaged"
    if is_there(damaged):
        since = age(max(0.0, time.time() - damaged.stat().st_mtime))
        yield StepFailed(
            "a damaged file was moved aside",
            f"state.sqlite was damaged and moved aside (last written {since} ago): check the disk, then "
            f"delete {damaged}",
        )


def _readable_by_all(folder: Path) -> Iterator[Path]:
    """Give the files that any user can read, in folders that any user can enter."""
    if not folder.stat().st_mode & stat.S_IXOTH:
        return
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _readable_by_all(path)
        elif path.is_file() and path.stat().st_mode & stat.S_IROTH:
            yield path
