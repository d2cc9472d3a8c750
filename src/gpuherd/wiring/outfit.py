"""What the configuration adds to a hub: lists of nodes and ways to them, watched folders, doors for older tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from gpuherd.agent.spec import resolve
from gpuherd.api.hub import Hub
from gpuherd.api.node_groups import Group
from gpuherd.api.outfit import Door, Watch
from gpuherd.api.services import Services
from gpuherd.auth.ways import LoginWays
from gpuherd.bookings.times import read_zone
from gpuherd.client.herd_views import Herd
from gpuherd.fleet.views import FleetNotice, FleetView
from gpuherd.sources.following import Arrivals, Way
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import NodeInfoSettings
from gpuherd.wiring.booking_files import with_full_paths
from gpuherd.wiring.catalog import WAYS
from gpuherd.wiring.config import Config
from gpuherd.wiring.exporting.page import PageSettings, herd_page
from gpuherd.wiring.exporting.timer import ExportTimer
from gpuherd.wiring.finders import make_finder, way_of
from gpuherd.wiring.login_ways import login_ways
from gpuherd.wiring.past import past_outfit
from gpuherd.wiring.settings import LegacySettings
from gpuherd.wiring.shown_names import display_names
from gpuherd.wiring.ways.surroundings import Surroundings

__all__ = ["ConfiguredOutfit", "configured_hub", "configured_ways"]

ONE_PAGE_SECONDS = 15
"""How often the page reloads that needs no other file."""


def configured_hub(config: Config) -> Hub:
    """Build a hub with everything that the configuration asks for; ``Misconfigured`` if it cannot be had."""
    with config.source.locating():
        return Hub(
            config.hub,
            config.availability,
            outfit=ConfiguredOutfit(config),
            names=display_names(config),
            privacy=config.privacy,
            bookings=with_full_paths(config.bookings, config.folder),
            login=config.login,
            ways=configured_ways(config),
            past=past_outfit(config.history, config.usage, config.folder),
        )


def configured_ways(config: Config) -> LoginWays:
    """Make the ways to log in, besides local accounts; ``Misconfigured`` for one that could not work."""
    return login_ways(config.login, trusted_proxies=tuple(config.hub.trusted_proxies), folder=config.folder)


class ConfiguredOutfit:
    """Builds the parts that gpuherd.toml names."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._tellers: list[Callable[[], Sequence[FleetNotice]]] = []

    def groups(self, links: NodeLinks) -> Sequence[Group]:
        """Make the lists of nodes that the hub asks."""
        config = self._config
        surroundings = Surroundings(state_dir=config.hub.state_dir, links=links, folder=config.folder)
        groups: list[Group] = []
        for number, settings in enumerate(config.nodes):
            place = f"nodes[{number}]"
            with config.source.locating(place):
                finder, fixed = make_finder(settings, f"{place}.hosts", config.folder)
                way: Way = resolve(WAYS[way_of(settings)])(settings.reach, surroundings)
            # Under its name a list's nodes are remembered: no two may share one, though they share a file.
            is_taken = any(group.name == finder.name for group in groups)
            name = f"{finder.name} ({place})" if is_taken else finder.name
            groups.append(Group(finder, way, name=name, fixed=fixed))
        return groups

    def watches(self, arrivals: Arrivals) -> Sequence[Watch]:
        """Watch the folders into which reports are dropped."""
        if not self._config.folders:
            return ()
        watch: Callable[..., Watch] = resolve("gpuherd.wiring.old_tools:folder_watch")
        return [watch(settings, arrivals, self._config.folder) for settings in self._config.folders]

    def doors(self, services: Services, arrivals: Arrivals) -> Sequence[Door]:
        """Open the doors for older tools that are asked for."""
        config = self._config
        if config.legacy == LegacySettings():
            return ()
        doors: Callable[..., Sequence[Door]] = resolve("gpuherd.wiring.old_tools:legacy_doors")
        with config.source.locating():
            return doors(config, services, arrivals, self._tellers)

    def chores(self, services: Services) -> Sequence[Watch]:
        """Keep the files up to date that are asked for."""
        config = self._config
        if not config.export.is_wanted:
            return ()
        return [ExportTimer(config.export, services, folder=config.folder)]

    def notices(self) -> Sequence[FleetNotice]:
        """Tell of doors that ask for no credential and what happens there, and of a password that everyone knows."""
        happened = [notice for tell in self._tellers for notice in tell()]
        return [*self._open_doors(), *happened, *self._known_passwords()]

    def one_page(self, view: FleetView, zone: str) -> bytes | None:
        """Write the page of ``gpuherd export``, for a proxy that passes on only the base path."""
        settings = PageSettings(
            zone=read_zone(zone),
            reload_seconds=ONE_PAGE_SECONDS,
            old_after_seconds=3 * ONE_PAGE_SECONDS,
            live_page=self._config.hub.mount or "/",
            remark="The proxy passes on only this address, so this page reloads instead of being live, and nobody can "
            "log in. In Caddy, write a star: reverse_proxy /gpus* localhost:8042",
        )
        return herd_page(msgspec.convert(view, Herd, from_attributes=True), settings)

    def _known_passwords(self) -> list[FleetNotice]:
        return [
            FleetNotice(
                code="known_password",
                message=f"nodes[{number}] use the default password from the old tool's README, which "
                "everyone knows; change it on the nodes and put the new one into a file for "
                "reach.password_file",
            )
            for number, settings in enumerate(self._config.nodes)
            if isinstance(settings.reach, NodeInfoSettings) and settings.reach.password_file is None
        ]

    def _open_doors(self) -> list[FleetNotice]:
        legacy = self._config.legacy
        return [
            FleetNotice(
                code="open_door",
                message=f"{what} without any login from {', '.join(settings.networks)}; remove it when the "
                f"old tool is gone (legacy.{name} in gpuherd.toml)",
            )
            for name, settings, what in (
                (
                    "gpustat",
                    legacy.gpustat,
                    "nodes can report, and all data can be read, through the old gpustat protocol",
                ),
                ("get_status", legacy.get_status, "all data can be read through the old GET /get-status"),
            )
            if settings is not None
        ]
