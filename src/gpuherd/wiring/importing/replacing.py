"""Replacing a file so that it is always whole: the old one or the new one, with the old one's mode and owner."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from gpuherd.model.errors import Failed

__all__ = ["replace_file"]

_NEW_MODE = 0o644


def replace_file(file: Path, text: str) -> None:
    """Write the text beside the file and put it in its place; a symbolic link stays one. ``Failed`` if it cannot."""
    place = file.resolve()
    try:
        there = place.stat() if place.exists() else None
        place.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        scratch = Path(name)
        try:
            with os.fdopen(fd, "wb") as opened:
                opened.write(text.encode())
                opened.flush()
                os.fsync(opened.fileno())
            if there is None:
                scratch.chmod(_NEW_MODE)
            else:
                scratch.chmod(there.st_mode & 0o7777)
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.chown(scratch, there.st_uid, there.st_gid)
            scratch.replace(place)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise Failed(f"{file}: cannot be written ({error.strerror}); nothing was changed") from error
