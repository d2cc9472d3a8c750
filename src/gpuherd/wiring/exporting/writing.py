"""Several files at once: all of them new, or all of them as they were."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuherd.model.errors import Failed

__all__ = ["replace_files"]

READABLE = 0o644
"""A web server, which is another user, reads what we write."""
_MOST_LINKS = 8


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file beside its place and only then put them all in place; a link of our own stays one.

    Blocking. ``Failed`` with place and remedy if one cannot be written; then nothing has changed, or it says which
    files have. A file of our own that is there keeps its permissions, as far as they are for reading and writing.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for file, content in contents.items():
            with _telling(file):
                place = _place(file)
                ready.append((_beside(place, content), place))
        done: list[str] = []
        for scratch, place in ready:
            with _telling(place, done):
                scratch.replace(place)
                _settle(place.parent)
            done.append(place.name)
    finally:
        for scratch, _ in ready:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)


def _place(file: Path) -> Path:
    """Give where a file really lies; ``Failed`` for what must not be replaced: a device, or where others point to."""
    place = file.parent.resolve() / file.name
    for _ in range(_MOST_LINKS):
        try:
            found = place.lstat()
        except FileNotFoundError:
            return place
        if not stat.S_ISLNK(found.st_mode):
            break
        if not _is_own(found):
            raise Failed(
                f"{place}: is a link that someone else (user {found.st_uid}) has put there, and is not "
                "followed; remove it, or choose a file in one of your own folders"
            )
        target = place.parent / place.readlink()
        place = target.parent.resolve() / target.name
    if stat.S_ISDIR(found.st_mode):
        raise Failed(f"{file}: is a folder; give the file to write")
    if not stat.S_ISREG(found.st_mode):
        raise Failed(f"{file}: is not a regular file and was not changed; choose another file")
    return place


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())


def _beside(place: Path, content: bytes) -> Path:
    """Write a file of a name of its own into the same folder, down to the disk."""
    mode = READABLE
    with contextlib.suppress(FileNotFoundError):
        found = place.lstat()
        # Never what someone else has prepared, and never more than reading and writing.
        if _is_own(found):
            mode = found.st_mode & 0o664
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
def _telling(file: Path, done: Sequence[str] = ()) -> Iterator[None]:
    """Turn what the system says into a sentence with place and remedy; ``done``: files that are new already."""
    try:
        yield
    except FileNotFoundError:
        raise Failed(f"{file}: there is no folder {file.parent}; create it, or choose another") from None
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place")
        rest = f"{', '.join(done)}: already written; the rest" if done else "The previous content"
        raise Failed(
            f"{file}: cannot be written ({error.strerror}); {remedy}. {rest} stays as it was"
        ) from error


_REMEDIES = {
    errno.EACCES: "let this user write to that folder",
    errno.EPERM: "let this user write to that folder",
    errno.EROFS: "the file system is mounted read-only, or the systemd unit does not allow its service to "
    "write there (ReadWritePaths=)",
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "the user's quota is used up",
    errno.EFBIG: "a limit on the size of files (ulimit -f) prevents it",
}
