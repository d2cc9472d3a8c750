"""The gpuherd that services shall start: this one, if a service can reach it."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuherd.model.errors import Misconfigured

__all__ = ["as_word", "check_reachable", "own_executable"]

_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - compared, not written
PACKAGED = "/usr/bin/gpuherd"


def own_executable() -> str:
    """Give the command line that starts this gpuherd, as systemd wants it: an absolute path and arguments."""
    packaged = Path(PACKAGED)
    beside = Path(sys.executable).parent / "gpuherd"
    if packaged.is_symlink() and packaged.resolve() == beside.resolve():
        return PACKAGED
    return as_word(str(beside)) if beside.is_file() else f"{as_word(sys.executable)} -P -m gpuherd"


def as_word(path: str) -> str:
    """Write a path as systemd reads it as one word: with its specifiers, variables and blanks escaped."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped == path and " " not in path else f'"{escaped}"'


def check_reachable(prefixes: tuple[str, ...] = (sys.prefix, sys.base_prefix)) -> None:
    """Raise ``Misconfigured`` if gpuherd or its Python is where hardened services cannot see it."""
    for prefix in prefixes:
        place = Path(prefix)
        is_hidden = any(place.is_relative_to(folder) for folder in _HIDDEN)
        is_closed = any(
            not folder.stat().st_mode & 0o001 for folder in (place, *place.parents) if folder.exists()
        )
        if is_hidden or is_closed:
            raise Misconfigured(
                f"{place}: services run as their own users, who cannot read this folder, but gpuherd or "
                "its Python is in it; install it for all users, for example: python3 -m venv /opt/gpuherd "
                "&& /opt/gpuherd/bin/pip install 'gpuherd[hub]' (with the system's python3, not your own)"
            )
