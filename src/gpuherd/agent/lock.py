"""One agent per state folder: two would send and delete each other's spool."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["StateLock"]

log = logging.getLogger(__name__)


class StateLock:
    """Holds a folder until ``release`` or the end of the process, however it ends."""

    def __init__(self, folder: Path) -> None:
        """Take the lock; ``Misconfigured`` if another agent has it. A folder that cannot be written is not locked."""
        self._fd = -1
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning(
                "cannot write to the state folder %s (%s): samples that the hub has not confirmed are lost when the "
                "agent stops; make the folder writable or choose another with --state-dir",
                folder,
                error.strerror,
            )
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise Misconfigured(
                f"another agent uses the state folder {folder}; stop that agent or choose another folder "
                "with --state-dir"
            ) from error
        self._fd = fd

    def release(self) -> None:
        """Let go; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
