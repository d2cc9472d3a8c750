"""One lock per device of this machine, so that two commands which start at the same moment do not take the same one.

A process that was just started is not seen by the hub for some seconds. For that time, and as long as ``gpuherd run``
lives, a lock says that the device is taken. Locks are an agreement between users of one machine, not a defence: their
folder is open to all. They are never a danger either: files are only made anew and never followed, written or removed.

Not all users may be able to use the same folder. Therefore locks are made in the first that will do, but looked for in
all: whoever has made a lock looks in the others once more, so that of two at the same moment at most one has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from gpuherd.model.errors import Failed
from gpuherd.model.text import clean

__all__ = ["DeviceLocks", "taken_on_machine"]

SHARED_FOLDERS = (Path("/run/lock/gpuherd"), Path("/tmp/gpuherd-locks"))  # noqa: S108 - sticky, and made with care
FOLDER_MODE = 0o1777
FILE_MODE = 0o644
"""Readable by all: for a lock that is enough, and nobody can write into the file of another."""


class DeviceLocks:
    """Locks that this process holds until ``release`` or its end, however it ends."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Make locks in the first folder that is there or can be made; ``Failed`` if there is none."""
        self._held: dict[str, int] = {}
        folders = tuple(folders)
        refused: dict[Path, OSError] = {}
        for folder in folders:
            try:
                self._folder = _make_folder(folder)
            except OSError as error:
                refused[folder] = error
                continue
            self.folder, self._best = folder, folders[0]
            self._others = tuple(other for other in folders if other != folder)
            self._passed_over = {place: error for place, error in refused.items() if os.path.lexists(place)}
            return
        reasons = "; ".join(f"{folder}: {error.strerror or error}" for folder, error in refused.items())
        raise Failed(
            f"found no folder for GPU locks ({reasons}); set GPUHERD_LOCK_DIR to a folder that all users of this "
            "machine can write to"
        )

    @classmethod
    def of_machine(cls, environment: Mapping[str, str]) -> DeviceLocks:
        """Use the folder of this machine: the one that the environment names, a shared one, or one's own at worst."""
        return cls(_folders(environment))

    @property
    def doubt(self) -> str | None:
        """Say why locks may not keep everyone off, and what an admin can do about it; none if all is well."""
        status = os.fstat(self._folder)
        if self._passed_over:
            place, error = next(iter(self._passed_over.items()))
            reason = f"{place} exists but cannot be used ({error.strerror or error})"
        elif status.st_uid not in (0, os.geteuid()):
            reason = (
                f"{self.folder} belongs to {_user_name(status.st_uid)}, who can remove the locks of others"
            )
        elif (
            self._others and status.st_mode & 0o003 != 0o003
        ):  # a folder that was named may be for a few only
            reason = f"{self.folder} is not open to all users"
        else:
            return None
        return (
            f"GPU locks may not work between the users of this machine: {reason}; fix it with: "
            f"sudo install -d -o root -g root -m 1777 {self._best}"
        )

    def take(self, uuids: Collection[str]) -> bool:
        """Take the locks of all these devices, or none of them: false if someone else has one, in whatever folder."""
        taken: list[str] = []
        for uuid in uuids:
            if uuid in self._held:
                continue
            descriptor = self._lock(uuid)
            if descriptor is None:
                self.release(taken)
                return False
            self._held[uuid] = descriptor
            taken.append(uuid)
        if _taken_in(self._others, taken):
            self.release(taken)
            return False
        return True

    def release(self, uuids: Iterable[str] | None = None) -> None:
        """Let go of these, or of all."""
        for uuid in list(self._held if uuids is None else uuids):
            os.close(self._held.pop(uuid))

    def taken_elsewhere(self, uuids: Iterable[str]) -> frozenset[str]:
        """Tell which of these devices another process has, also one of another user."""
        others = [uuid for uuid in uuids if uuid not in self._held]
        return frozenset(uuid for uuid in others if _is_taken(self._folder, uuid)) | _taken_in(
            self._others, others
        )

    def _lock(self, uuid: str) -> int | None:
        """Take one lock; none if someone has it."""
        for _ in range(100):  # a file may be made or tidied away by others at any moment
            try:
                descriptor = _open_file(self._folder, uuid)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._create(uuid)
                continue
            except OSError:
                return None
            if not _takes(descriptor):
                os.close(descriptor)
                return None
            if self._is_still(uuid, descriptor):
                return descriptor
            os.close(descriptor)
        return None

    def _create(self, uuid: str) -> None:
        """Make the file under another name first: whoever finds it can read it, whatever our umask is."""
        fresh = f".{os.urandom(8).hex()}"
        flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(fresh, flags, FILE_MODE, dir_fd=self._folder)
            try:
                os.fchmod(descriptor, FILE_MODE)
                os.link(fresh, _file_name(uuid), src_dir_fd=self._folder, dst_dir_fd=self._folder)
            finally:
                os.close(descriptor)
                os.unlink(fresh, dir_fd=self._folder)
        except FileExistsError:
            raise
        except OSError as error:
            raise Failed(
                f"{self.folder}: cannot create a lock there ({error.strerror}); choose another folder with "
                "GPUHERD_LOCK_DIR"
            ) from error

    def _is_still(self, uuid: str, descriptor: int) -> bool:
        """Tell whether the file that is locked is the one that others find."""
        try:
            found = os.stat(_file_name(uuid), dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        ours = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)


def _takes(descriptor: int) -> bool:
    """Try to lock a file, more than once: someone who only looks holds it for a moment."""
    for pause_seconds in (0.005, 0.02, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if pause_seconds is not None:
                time.sleep(pause_seconds)
        else:
            return True
    return False


def taken_on_machine(environment: Mapping[str, str], uuids: Iterable[str]) -> frozenset[str]:
    """Tell which of these devices someone on this machine has; only looks, and makes nothing."""
    return _taken_in(_folders(environment), tuple(uuids))


def _folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    named = environment.get("GPUHERD_LOCK_DIR")
    if named:
        return (Path(named),)
    runtime = environment.get("XDG_RUNTIME_DIR")
    return (*SHARED_FOLDERS, *([Path(runtime) / "gpuherd-locks"] if runtime else []))


def _taken_in(folders: Iterable[Path], uuids: Collection[str]) -> frozenset[str]:
    """Tell which devices someone has a lock on in these folders, each opened anew: it may have been made just now."""
    found: set[str] = set()
    for folder in folders:
        try:
            opened = _open_folder(folder)
        except OSError:
            continue  # nobody, or nobody but its owner, has locks there
        try:
            found.update(uuid for uuid in uuids if _is_taken(opened, uuid))
        finally:
            os.close(opened)
    return frozenset(found)


def _is_taken(folder: int, uuid: str) -> bool:
    try:
        descriptor = _open_file(folder, uuid)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # someone has made it so that nobody can tell
    try:
        # Shared, so that two who only look do not stand in each other's way.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _open_file(folder: int, uuid: str) -> int:
    descriptor = os.open(
        _file_name(uuid),
        os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY,
        dir_fd=folder,
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PermissionError("not a regular file")
    return descriptor


def _make_folder(folder: Path) -> int:
    """Open a folder in which locks can be made, made itself if it is not there."""
    umask = os.umask(0)  # nobody may find it half open: whoever cannot use it would use another folder
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        pass
    finally:
        os.umask(umask)
    descriptor = _open_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        os.close(descriptor)
        raise PermissionError("it cannot be written to")
    return descriptor


def _open_folder(folder: Path) -> int:
    """Open a folder; never through a link that someone else may have laid."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if mode & 0o002 and not mode & stat.S_ISVTX:
        os.close(descriptor)
        raise PermissionError("anyone can remove files of others there; fix it with: chmod 1777")
    return descriptor


def _user_name(number: int) -> str:
    try:
        return clean(pwd.getpwuid(number).pw_name, 40)
    except KeyError:
        return f"user {number}"


def _file_name(uuid: str) -> str:
    """Give a name that is surely one part of a path."""
    return "".join(
        letter if (letter.isalnum() and letter.isascii()) or letter == "-" else "_" for letter in uuid
    )
