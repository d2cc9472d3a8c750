"""Doors for older tools and watched folders, put together from the configuration."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct, structs

from gpuherd.api.guard import Guard
from gpuherd.api.legacy.get_status import GetStatusApp
from gpuherd.api.legacy.gpustat import GpustatApp
from gpuherd.api.legacy.old_login import OldLogin, exposure_of, read_login_file
from gpuherd.api.outfit import Door, Watch
from gpuherd.api.sender import Senders
from gpuherd.api.server import WebServer
from gpuherd.api.services import Services
from gpuherd.api.settings import listen_address
from gpuherd.collect.scrub import scrub
from gpuherd.fleet.views import FleetNotice
from gpuherd.sources.files import FolderWatch
from gpuherd.sources.following import Arrivals
from gpuherd.sources.settings import FolderSettings
from gpuherd.wiring.config import Config
from gpuherd.wiring.settings import LegacySettings

__all__ = ["Teller", "folder_watch", "legacy_doors"]

Teller = Callable[[], Sequence[FleetNotice]]

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 4096


class _Watch(Struct, frozen=True):
    name: str
    look_every_seconds: float
    look: Callable[[], Awaitable[None]]


def folder_watch(settings: FolderSettings, arrivals: Arrivals, folder: Path) -> Watch:
    """Watch a folder into which reports are dropped."""
    located = structs.replace(settings, path=folder / settings.path.expanduser())
    watch = FolderWatch(located, arrivals, scrub=scrub)
    return _Watch(f"watch {located.path}", watch.look_every_seconds, watch.look)


def legacy_doors(config: Config, services: Services, arrivals: Arrivals, tellers: list[Teller]) -> list[Door]:
    """Open a listener of its own for each old tool that the configuration lets in.

    ``tellers`` gets what tells of things that happen at the doors.
    """
    legacy: LegacySettings = config.legacy
    guard = Guard([*config.hub.allowed_hosts, socket.gethostname()])
    doors: list[Door] = []
    if legacy.gpustat is not None:
        key = "legacy.gpustat.listen"
        login_file = legacy.gpustat.login_file
        posts = GpustatApp(
            legacy.gpustat,
            arrivals,
            login=None if login_file is None else _login(config.folder / login_file),
            fleet_view=lambda: services.door_view("gpustat"),
            guard=guard,
            scrub=scrub,
            offline_after_seconds=config.availability.offline_after_seconds,
        )
        tellers.append(posts.notices)
        address = listen_address(legacy.gpustat.listen, key)
        doors.append(WebServer(posts, address=address, max_connections=MAX_CONNECTIONS, key=key))
    if legacy.get_status is not None:
        key = "legacy.get_status.listen"
        status = GetStatusApp(
            legacy.get_status,
            fleet_view=lambda: services.door_view("node_info"),
            guard=guard,
            senders=Senders(config.hub.trusted_proxies),
        )
        address = listen_address(legacy.get_status.listen, key)
        doors.append(WebServer(status, address=address, max_connections=MAX_CONNECTIONS, key=key))
    return doors


def _login(file: Path) -> OldLogin:
    login = read_login_file(file)
    if (exposure := exposure_of(file)) is not None:
        log.warning("%s", exposure)
    return login
