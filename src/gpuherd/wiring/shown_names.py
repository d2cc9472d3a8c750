"""Under which names things are shown, by the configuration."""

from __future__ import annotations

from gpuherd.fleet.names import Names
from gpuherd.wiring.aliases import read_aliases
from gpuherd.wiring.config import Config

__all__ = ["display_names"]


def display_names(config: Config) -> Names:
    """Read under which names things are shown."""
    file = config.display.aliases_file
    return Names(config.display, None if file is None else read_aliases(config.folder / file))
