"""Files that are always whole: the old one or the new one, never half of each."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(file: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write beside the file and put it in its place, for good; a link stays one, and a file that is there its mode.

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
            mode = place.stat().st_mode & 0o777
        scratch.chmod(mode)
        scratch.replace(place)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
