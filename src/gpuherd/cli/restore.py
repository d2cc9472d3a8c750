"""``gpuherd restore``: records out of a backup, as ``gpuherd hub restore``."""

from __future__ import annotations

from gpuherd.cli.alone import standing_alone
from gpuherd.cli.backup import restore

__all__ = ["command"]

command = standing_alone(restore)
