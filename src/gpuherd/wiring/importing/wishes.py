"""What the person who imports has said, besides the files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

__all__ = ["ReachedBy", "Wishes"]

ReachedBy = Literal["ssh", "node_info", "pull", "xmlrpc", "http_files"]


class Wishes(Struct, frozen=True, kw_only=True):
    """The options of ``gpuherd import``."""

    by: ReachedBy | None = None
    """How nodes are reached, instead of what the file suggests."""
    copy: bool = False
    """Write hosts and names into gpuherd.toml instead of referring to the old file."""
    networks: tuple[str, ...] = ()
    """Who may post to the door for older tools."""
    groups: tuple[str, ...] = ()
    """Groups of an Ansible inventory."""
    password_file: Path | None = None
    """File with the password of the older HTTP tool."""
    zone: str | None = None
    """Time zone of the dates in a comments.json."""
    files: tuple[Path, ...] = ()
    """Everything that is imported at once."""
