"""``gpuherd user``: accounts of people, as ``gpuherd hub account``."""

from __future__ import annotations

from gpuherd.cli.account import account
from gpuherd.cli.alone import standing_alone

__all__ = ["command"]

command = standing_alone(account)
