"""Files that are there as a whole or not at all, after a power cut too."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gpuherd.model.errors import Failed

__all__ = ["DiskFull", "is_full", "sync_file", "sync_folder", "write_whole"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFull(Failed):
    """There is no room for what was to be written; what was there before is untouched."""


def is_full(error: OSError) -> bool:
    """Whether an operation failed for want of room."""
    return error.errno in _FULL


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's contents durable, whoever has written them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Put a file in place, durably, in one step. ``OSError`` leaves the old one as it was."""
    beside = path.with_name(path.name + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    beside.rename(path)
    sync_folder(path.parent)
