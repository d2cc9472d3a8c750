"""Files that shall be as we say: compared first, written whole, and every change noted."""

from __future__ import annotations

import os
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["Changes", "TargetFiles"]


class Changes:
    """What was, or would be, changed and what was right already; each once, in order."""

    def __init__(self) -> None:
        self._noted: dict[str, bool] = {}

    def note(self, what: str, *, is_change: bool) -> None:
        """Note a file or a deed."""
        self._noted[what] = self._noted.get(what, False) or is_change

    @property
    def changed(self) -> list[str]:
        """What is different from before."""
        return [what for what, is_change in self._noted.items() if is_change]

    @property
    def unchanged(self) -> list[str]:
        """What was as it should be."""
        return [what for what, is_change in self._noted.items() if not is_change]


class TargetFiles:
    """The files of a machine, or below ``root`` those of one that is being put together.

    With ``is_only_check`` nothing is written, and everything is noted as if it were.
    """

    def __init__(self, root: Path, changes: Changes, *, is_only_check: bool = False) -> None:
        self.root = root
        self._changes = changes
        self._is_only_check = is_only_check

    def at(self, path: str) -> Path:
        """Give the place of an absolute path of the machine."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """Give a file's text; None if there is no such file. Raises ``Misconfigured``."""
        try:
            return self.at(path).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise Misconfigured(f"{self.at(path)}: is not UTF-8 text; move it aside") from error
        except OSError as error:
            raise Misconfigured(
                f"{self.at(path)}: cannot be read: {error.strerror}; run this as root"
            ) from error

    def put(self, path: str, text: str, *, mode: int = 0o644) -> bool:
        """Make a file hold ``text``; tells whether that is a change. Raises ``Misconfigured``."""
        is_change = self.text(path) != text or self.at(path).stat().st_mode & 0o777 != mode
        if is_change and not self._is_only_check:
            self._write(self.at(path), text, mode)
        self._changes.note(path, is_change=is_change)
        return is_change

    def link(self, path: str, target: str) -> bool:
        """Make a symbolic link to ``target``; tells whether that is a change. Raises ``Misconfigured``."""
        place = self.at(path)
        is_change = not place.is_symlink() or os.readlink(place) != target  # noqa: PTH115 - as written, not as a path
        if is_change and not self._is_only_check:
            fresh = place.with_name(f".{place.name}.new")
            try:
                _make_folder(place.parent)
                fresh.unlink(missing_ok=True)
                fresh.symlink_to(target)
                fresh.replace(place)
            except OSError as error:
                raise Misconfigured(
                    f"{place}: cannot be created: {error.strerror}; run this as root"
                ) from error
        self._changes.note(path, is_change=is_change)
        return is_change

    def remove(self, path: str) -> bool:
        """Take a file or link away if it is there; tells whether it was. Raises ``Misconfigured``."""
        place = self.at(path)
        is_there = place.is_symlink() or place.exists()
        if is_there:
            if not self._is_only_check:
                try:
                    place.unlink()
                except OSError as error:
                    raise Misconfigured(
                        f"{place}: cannot be removed: {error.strerror}; run this as root"
                    ) from error
            self._changes.note(path, is_change=True)
        return is_there

    @staticmethod
    def _write(place: Path, text: str, mode: int) -> None:
        fresh = place.with_name(f".{place.name}.new")
        try:
            _make_folder(place.parent)
            fresh.unlink(missing_ok=True)
            # Made with its mode: a secret is never open to others, not even for a moment.
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
                    handle.write(text)
                    os.fchmod(handle.fileno(), mode)
                    handle.flush()
                    os.fsync(handle.fileno())
                fresh.replace(place)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise Misconfigured(f"{place}: cannot be written: {error.strerror}") from error


def _make_folder(folder: Path) -> None:
    """Make a folder that services may enter, whatever the umask of who installs."""
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir()
        missing.chmod(0o755)
