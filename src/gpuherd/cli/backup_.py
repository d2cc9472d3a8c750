"""``gpuherd backup``: all records in one file, as ``gpuherd hub backup``."""

from __future__ import annotations

from gpuherd.cli.alone import standing_alone
from gpuherd.cli.backup import backup

__all__ = ["command"]

command = standing_alone(backup)
