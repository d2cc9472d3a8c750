"""Files and folders that may belong to someone else."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

__all__ = ["is_there", "may_be_looked_into", "owner_of"]


def is_there(file: Path) -> bool:
    """Tell whether a file can be seen; one in a folder that this user may not enter cannot."""
    try:
        return file.exists()
    except OSError:
        return False


def may_be_looked_into(folder: Path) -> bool:
    """Tell whether what is not seen in a folder is really not there."""
    try:
        return os.access(folder, os.X_OK) if folder.exists() else True
    except OSError:
        return False


def owner_of(folder: Path) -> tuple[int, str] | None:
    """Give user id and name of whom a folder belongs to; none if that cannot be told."""
    try:
        owner = folder.stat().st_uid
        return owner, pwd.getpwuid(owner).pw_name
    except (OSError, KeyError):
        return None
