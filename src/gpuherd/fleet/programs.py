"""The name of a program, out of a command line: what may be told of a process to people whom it does not belong to."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["program_name"]

_LONGEST = 32
_PYTHON = re.compile(r"(?:i?python|pypy)[\d.]*", re.IGNORECASE)
_NAME = re.compile(r"[\w.+-]+", re.ASCII)


@lru_cache(8192)
def program_name(command: str) -> str | None:
    """Give the last part of the first word's path; none if that is no name.

    Everything from the first letter on that does not belong in a program's name is left out: processes write what they
    like into their titles (``ray::train_secret``, ``sshd: ada@pts/0``, ``TOKEN=… run``). An interpreter is called by
    its name alone.
    """
    words = command.split(maxsplit=1)
    if not words:
        return None
    last = re.split(r"[/\\]", words[0].rstrip("/\\"))[-1].lstrip("-[(")
    found = _NAME.match(last)
    if found is None:
        return None
    name = found[0][:_LONGEST].rstrip(".-")
    if name.lower().endswith(".exe"):
        name = name[:-4]
    return ("python" if _PYTHON.fullmatch(name) else name) or None
