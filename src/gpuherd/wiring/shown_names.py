"""Under which names things are shown, by the configuration."""

from __future__ import annotations

from msgspec import structs

from gpuherd.discovery.settings import IniSettings
from gpuherd.fleet.names import Names
from gpuherd.wiring.aliases import read_aliases
from gpuherd.wiring.config import Config

__all__ = ["display_names"]


def display_names(config: Config) -> Names:
    """Read under which names things are shown."""
    display = config.display
    if display.keep_list_order is None:
        # Tables in the shape of an older tool list the hosts of its config.ini in their order there.
        is_ini = any(isinstance(group.find, IniSettings) for group in config.nodes)
        display = structs.replace(display, keep_list_order=is_ini)
    file = display.aliases_file
    return Names(display, None if file is None else read_aliases(config.folder / file))
