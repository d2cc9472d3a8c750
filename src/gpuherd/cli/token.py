"""``gpuherd token``: join tokens, as ``gpuherd hub token``."""

from __future__ import annotations

from gpuherd.cli.alone import standing_alone
from gpuherd.cli.hub import token

__all__ = ["command"]

command = standing_alone(token)
