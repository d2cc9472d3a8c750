"""A file that holds room for the step that makes room: forgetting needs a few kilobytes, even on a full disk."""

from __future__ import annotations

import os
from pathlib import Path

from gpuherd.history.tables.disk import is_full

__all__ = ["BALLAST_BYTES", "Ballast"]

BALLAST_BYTES = 4 * 2**20
"""Several times the longest manifest."""


class Ballast:
    """Room set aside in a folder, given up when nothing else is left and taken back later."""

    def __init__(self, path: Path, size_bytes: int = BALLAST_BYTES) -> None:
        self._path = path
        self._size_bytes = size_bytes

    @property
    def is_held(self) -> bool:
        """Whether the room is still set aside."""
        try:
            return self._path.stat().st_size == self._size_bytes
        except OSError:
            return False

    def release(self) -> bool:
        """Give the room up; false if it had been before."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True

    def restore(self) -> bool:
        """Set the room aside again if it is not; false if there is no room for it."""
        if self.is_held:
            return True
        try:
            # Noise, because some file systems keep zeros and repetitions in no room at all.
            self._path.touch(mode=0o600)
            with self._path.open("wb") as opened:
                opened.write(os.urandom(self._size_bytes))
                opened.flush()
                os.fsync(opened.fileno())
        except OSError as error:
            self._path.unlink(missing_ok=True)
            if is_full(error):
                return False
            raise
        return True
