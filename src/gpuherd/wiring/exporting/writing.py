"""Several files at once: all of them new, or all of them as they were."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuherd.model.errors import Failed

__all__ = ["replace_files"]

READABLE = 0o644
"""A web server, which is another user, reads what we write."""


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file beside its place and only then put them all in place; what is a link stays one.

    Blocking. ``Failed`` with place and remedy if one cannot be written; then nothing has changed. A file that is there
    keeps its mode.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for file, content in contents.items():
            with _telling(file):
                place = _place(file)
                ready.append((_beside(place, content), place))
        for scratch, place in ready:
            with _telling(place):
                scratch.replace(place)
                _settle(place.parent)
    finally:
        for scratch, _ in ready:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)


def _place(file: Path) -> Path:
    """Give where a file really lies; ``Failed`` for what must not be replaced, such as a device."""
    place = file.resolve()
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return place
    if stat.S_ISDIR(mode):
        raise Failed(f"{file}: is a folder; name the file to be written")
    if not stat.S_ISREG(mode):
        raise Failed(f"{file}: is not a regular file and is left alone; name another file")
    return place


def _beside(place: Path, content: bytes) -> Path:
    """Write a file of a name of its own into the same folder, down to the disk."""
    mode = READABLE
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(place.stat().st_mode)
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:100]}.")
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return scratch


def _settle(folder: Path) -> None:
    """Make the new name last through a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _telling(file: Path) -> Iterator[None]:
    """Turn what the system says into a sentence with place and remedy."""
    try:
        yield
    except FileNotFoundError:
        raise Failed(f"{file}: there is no folder {file.parent}; make it, or name another") from None
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "name another place")
        raise Failed(
            f"{file}: cannot be written ({error.strerror}); {remedy}. What was there stays as it was"
        ) from error


_REMEDIES = {
    errno.EACCES: "let this user write in that folder",
    errno.EPERM: "let this user write in that folder",
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "the user's quota is used up",
    errno.EFBIG: "a limit on the size of files (ulimit -f) is in the way",
}
