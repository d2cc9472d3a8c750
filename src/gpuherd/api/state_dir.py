"""The hub's folder: made if it is missing, and held by one hub at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["lock_state_dir", "make_state_dir", "try_lock_state_dir"]

log = logging.getLogger(__name__)

_WRITE_BY_OTHERS = 0o022


def _close_to_writers(folder: Path) -> None:
    """Remove other users' write permission: anyone who can write here can replace the records."""
    found = folder.stat()
    if not found.st_mode & _WRITE_BY_OTHERS:
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid == os.geteuid():
        folder.chmod(mode & ~_WRITE_BY_OTHERS)
        log.warning(
            "other users could write to %s (mode %04o); the hub has removed that permission", folder, mode
        )
    else:
        log.warning(
            "other users can write to %s (mode %04o) and could replace the hub's database; run as its owner: "
            "chmod go-w %s",
            folder,
            mode,
            folder,
        )


def make_state_dir(folder: Path) -> None:
    """Create the folder, writable by nobody else; ``Misconfigured`` if it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _close_to_writers(folder)
    except OSError as error:
        raise Misconfigured(
            f"hub.state_dir: cannot create {folder}: {error.strerror}; choose a folder that this user can "
            "write to"
        ) from error


def lock_state_dir(folder: Path) -> int:
    """Hold the folder until the descriptor is closed, however that happens; ``Misconfigured`` if a hub has it.

    Two hubs in one folder would number their nodes alike and overwrite each other's last states.
    """
    descriptor = try_lock_state_dir(folder)
    if descriptor is None:
        raise Misconfigured(
            f"hub.state_dir: another hub runs with {folder}; stop that hub or choose another folder. (If a "
            "restore is running, wait until it is done.)"
        )
    return descriptor


def try_lock_state_dir(folder: Path) -> int | None:
    """Lock the folder until the descriptor is closed; None if another process has locked it."""
    try:
        descriptor = os.open(folder / "hub.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Misconfigured(
            f"hub.state_dir: cannot write {folder}: {error.strerror}; choose a folder that this user can write to"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
