"""Looking at a whole configuration for what would stop a start, without starting, connecting or writing anything."""

from __future__ import annotations

from gpuherd.agent.address import HubAddress
from gpuherd.agent.spec import resolve
from gpuherd.api.settings import listen_address
from gpuherd.auth.settings import LoginSettings
from gpuherd.sources.settings import PullSettings
from gpuherd.wiring.aliases import read_aliases
from gpuherd.wiring.catalog import probe_spec
from gpuherd.wiring.config import Config

__all__ = ["check_config"]


def check_config(config: Config) -> None:
    """Raise ``Misconfigured`` with file, line, key and remedy for the first thing that cannot be used.

    What only the world can tell is left out: whether hosts answer, lists can be had, folders be written.
    """
    with config.source.locating():
        probe_spec(config.agent)
        if config.agent.hub_url is not None:
            HubAddress.parse(config.agent.hub_url)
        if config.display.aliases_file is not None:
            read_aliases(config.folder / config.display.aliases_file)
        if config.login != LoginSettings():
            # Imported here, like what follows: a node has no need of it, and no package.
            resolve("gpuherd.wiring.outfit:configured_ways")(config)
        for name in ("gpustat", "get_status"):
            door = getattr(config.legacy, name)
            if door is not None:
                listen_address(door.listen, f"legacy.{name}.listen")
                resolve("gpuherd.api.networks:parse_networks")(door.networks, f"legacy.{name}.networks")
    for number, settings in enumerate(config.nodes):
        place = f"nodes[{number}]"
        with config.source.locating(place):
            # Imported here: a node has no need, and no package, to reach others.
            resolve("gpuherd.wiring.finders:make_finder")(settings, f"{place}.hosts", config.folder)
            if isinstance(settings.reach, PullSettings):
                reach = resolve("gpuherd.wiring.ways.surroundings:located")(settings.reach, config.folder)
                resolve("gpuherd.sources.pull:check_tls")(reach)
