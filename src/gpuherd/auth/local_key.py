"""The key of the hub's own machine: whoever may read the state folder may ask the running hub about anything.

For ``gpuherd doctor``, which must see more than strangers do and has no account. It reads and nothing else, is a new
one at each start of the hub, and counts only on the hub's own machine.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gpuherd.auth.secrets import LOCAL_KEY_PREFIX, is_secret, new_secret
from gpuherd.model.errors import Misconfigured

__all__ = ["make_local_key", "read_local_key"]

FILE_NAME = "local.key"


def make_local_key(state_dir: Path) -> str:
    """Make a key in a file that only this user can read; ``Misconfigured`` if it cannot be written. Blocking."""
    file, fresh, key = state_dir / FILE_NAME, state_dir / f".{FILE_NAME}.new", new_secret(LOCAL_KEY_PREFIX)
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(key + "\n")
        fresh.replace(file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            # The live view needs no disk. Until the next start the last key stays valid, if there is one.
            fresh.unlink(missing_ok=True)
            return read_local_key(state_dir) or key
        raise Misconfigured(
            f"hub.state_dir: cannot write {file}: {error.strerror}; choose a folder that this user can "
            "write to"
        ) from error
    return key


def read_local_key(state_dir: Path) -> str | None:
    """Give the key; none if there is none, or this user may not read it. Blocking."""
    try:
        key = (state_dir / FILE_NAME).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return key if is_secret(key, LOCAL_KEY_PREFIX) else None
