"""Root in a folder of someone else's: what is done there is done as its owner.

The hub's folder belongs to the hub's user. Whoever takes over the hub could lay links there for root to follow; and
what root made there the hub could not read. So root's own commands act as the folder's owner while they work in it.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gpuherd.auth.local_key import FILE_NAME as LOCAL_KEY
from gpuherd.model.errors import Misconfigured, Refused

if TYPE_CHECKING:
    from gpuherd.api.settings import HubSettings

__all__ = ["acting_as_owner", "acting_as_root", "become_owner", "check_used", "is_used"]


def _owner(folder: Path) -> tuple[int, int] | None:
    """Give user and group of a folder that root must not act in as root; None if it may, or is not root.

    ``Misconfigured`` if whoever this is has no business in it: most often root's ``sudo`` was forgotten.
    """
    try:
        facts = folder.stat()
    except OSError:
        return None
    if os.geteuid() == 0:
        return None if facts.st_uid == 0 else (facts.st_uid, facts.st_gid)
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise Misconfigured(
            f"only {_name(facts.st_uid)} can use the hub's state folder {folder}; run this with sudo"
        )
    return None


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def become_owner(folder: Path) -> None:
    """Be the folder's owner from now on, if this is root and the folder is another's."""
    owner = _owner(folder)
    if owner is not None:
        user, group = owner
        os.setgroups([group])
        os.setgid(group)
        os.setuid(user)


@contextmanager
def acting_as_owner(folder: Path) -> Iterator[bool]:
    """Act as the folder's owner for a while, if this is root and the folder is another's; tells whether it is so."""
    owner = _owner(folder)
    if owner is None:
        yield False
        return
    groups = os.getgroups()
    user, group = owner
    os.setgroups([group])
    os.setegid(group)
    os.seteuid(user)
    try:
        yield True
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextmanager
def acting_as_root() -> Iterator[None]:
    """Be root again for a moment, within ``acting_as_owner``: for files of root's own."""
    user, group = os.geteuid(), os.getegid()
    if os.getuid() != 0 or user == 0:
        yield
        return
    os.seteuid(0)
    os.setegid(0)
    try:
        yield
    finally:
        os.setegid(group)
        os.seteuid(user)


def is_used(settings: HubSettings) -> bool:
    """Whether a hub has used this folder, or is going to. Creates nothing there."""
    from gpuherd.records.backup import holds_records
    from gpuherd.records.database import records_file

    folder = settings.state_dir
    return (folder / LOCAL_KEY).exists() or holds_records(settings.records_url or records_file(folder))


def check_used(settings: HubSettings) -> None:
    """Raise ``Refused`` ``no_hub_here`` for a folder that no hub has used; create nothing there.

    A hub that uses another folder would not see what is done here. A folder is in use once a hub has started with it or
    ``gpuherd hub init`` has prepared it, or if its records contain something, such as after a restore.
    """
    if is_used(settings):
        return
    raise Refused(
        "no_hub_here",
        f"no hub has run with {settings.state_dir} yet. If yours uses another folder, name it with --state-dir or "
        "--config; to create accounts or tokens before the first start, prepare the folder with: gpuherd hub init",
    )
