"""The hub's folder: made if it is missing, and held by one hub at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["lock_state_dir", "make_state_dir"]


def make_state_dir(folder: Path) -> None:
    """Make the folder; ``Misconfigured`` if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misconfigured(
            f"hub.state_dir: cannot make {folder}: {error.strerror}; choose a folder that this user may write"
        ) from error


def lock_state_dir(folder: Path) -> int:
    """Hold the folder until the descriptor is closed, however that happens; ``Misconfigured`` if a hub has it.

    Two hubs in one folder would number their nodes alike and overwrite each other's last states.
    """
    try:
        descriptor = os.open(folder / "hub.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Misconfigured(
            f"hub.state_dir: cannot write {folder}: {error.strerror}; choose a folder that this user may write"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Misconfigured(
            f"hub.state_dir: another hub runs with {folder}; stop that one or choose another folder"
        ) from error
    return descriptor
