"""Files that are always whole: the old one or the new one, never half of each."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["keep_copy", "replace_file"]


def replace_file(file: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write beside the file and put it in its place, for good; a link stays one, a file keeps its mode and owner.

    Blocking. Raises ``OSError``; nothing is changed then.
    """
    place = file.resolve()
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        with contextlib.suppress(FileNotFoundError):
            there = place.stat()
            mode = there.st_mode & 0o777
            with contextlib.suppress(PermissionError):  # only root may give files away
                os.chown(scratch, there.st_uid, there.st_gid)
        scratch.chmod(mode)
        scratch.replace(place)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def keep_copy(file: Path) -> Path:
    """Copy a file that is about to be replaced beside itself, over no other; gives the copy. Blocking, ``OSError``."""
    content, number = file.read_bytes(), 0
    while True:
        copy = file.with_name(f"{file.name}.bak{number or ''}")
        try:
            with copy.open("xb") as opened:
                opened.write(content)
        except FileExistsError:
            if copy.read_bytes() == content:
                return copy
            number += 1
        else:
            copy.chmod(file.stat().st_mode & 0o777)
            return copy
