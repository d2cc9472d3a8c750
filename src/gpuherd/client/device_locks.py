"""One lock per device of this machine, so that two commands which start at the same moment do not take the same one.

A process that was just started is not seen by the hub for some seconds. For that time, and as long as ``gpuherd run``
lives, a lock says that the device is taken. Locks are an agreement between users of one machine, not a defence: their
folder is open to all. They are never a danger either: files are only made anew and never followed, written or removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from gpuherd.model.errors import Failed

__all__ = ["DeviceLocks"]

SHARED_FOLDERS = (Path("/run/lock/gpuherd"), Path("/tmp/gpuherd-locks"))  # noqa: S108 - sticky, and made with care
FOLDER_MODE = 0o1777
FILE_MODE = 0o644
"""Readable by all: for a lock that is enough, and nobody can write into the file of another."""


class DeviceLocks:
    """Locks that this process holds until ``release`` or its end, however it ends."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Use the first folder that is there or can be made; ``Failed`` if there is none."""
        self._held: dict[str, int] = {}
        reasons = []
        for folder in folders:
            try:
                self._folder = _open_folder(folder)
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
                continue
            self.folder = folder
            return
        raise Failed(
            f"there is no folder for locks on devices ({'; '.join(reasons)}); name one that all users of this "
            "machine can write to with GPUHERD_LOCK_DIR"
        )

    @classmethod
    def of_machine(cls, environment: Mapping[str, str]) -> DeviceLocks:
        """Use the folder of this machine: the one that the environment names, a shared one, or one's own at worst."""
        named = environment.get("GPUHERD_LOCK_DIR")
        if named:
            return cls([Path(named)])
        runtime = environment.get("XDG_RUNTIME_DIR")
        return cls([*SHARED_FOLDERS, *([Path(runtime) / "gpuherd-locks"] if runtime else [])])

    def take(self, uuids: Collection[str]) -> bool:
        """Take the locks of all these devices, or none of them: false if someone else has one."""
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
        return True

    def release(self, uuids: Iterable[str] | None = None) -> None:
        """Let go of these, or of all."""
        for uuid in list(self._held if uuids is None else uuids):
            os.close(self._held.pop(uuid))

    def taken_elsewhere(self, uuids: Iterable[str]) -> frozenset[str]:
        """Tell which of these devices another process has, also one of another user."""
        return frozenset(uuid for uuid in uuids if uuid not in self._held and self._is_taken(uuid))

    def _is_taken(self, uuid: str) -> bool:
        try:
            descriptor = self._open(uuid)
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

    def _lock(self, uuid: str) -> int | None:
        """Take one lock; none if someone has it."""
        for _ in range(100):  # a file may be made or tidied away by others at any moment
            try:
                descriptor = self._open(uuid)
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

    def _open(self, uuid: str) -> int:
        descriptor = os.open(
            _file_name(uuid),
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY,
            dir_fd=self._folder,
        )
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise PermissionError("no regular file")
        return descriptor

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
                f"{self.folder}: no lock can be made there ({error.strerror}); name another folder with "
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


def _open_folder(folder: Path) -> int:
    """Open a folder, made if it is not there; never through a link that someone else may have laid."""
    umask = os.umask(0)  # nobody may find it half open: whoever cannot use it would use another folder
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        pass
    finally:
        os.umask(umask)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if mode & 0o002 and not mode & stat.S_ISVTX:
        os.close(descriptor)
        raise PermissionError("anyone may remove what others have made there; set it right with: chmod 1777")
    if not os.access(folder, os.W_OK | os.X_OK):
        os.close(descriptor)
        raise PermissionError("it cannot be written to")
    return descriptor


def _file_name(uuid: str) -> str:
    """Give a name that is surely one part of a path."""
    return "".join(
        letter if (letter.isalnum() and letter.isascii()) or letter == "-" else "_" for letter in uuid
    )
