"""The hub's own export: files that it keeps up to date while it runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpuherd.api.services import Services
from gpuherd.bookings.times import read_zone
from gpuherd.client.herd_views import Herd
from gpuherd.discovery.files import Reading, located
from gpuherd.fleet.clock import Clock, SystemClock
from gpuherd.fleet.views import FleetView
from gpuherd.wiring.exporting.page import PageSettings
from gpuherd.wiring.exporting.settings import ExportSettings
from gpuherd.wiring.exporting.targets import SeenHerd, Targets, herd_files
from gpuherd.wiring.exporting.writing import replace_files

__all__ = ["ExportTimer"]

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 5.0
"""After its start a hub waits for its nodes: what it would write before would call them all silent."""
WRITE_DEADLINE_SECONDS = 30.0
OLD_AFTER = 3
"""Times the pace: then a page says that it is old."""


class ExportTimer:
    """Writes the files again and again. What fails is tried again soon, and told by the health until it works."""

    name = "export"
    look_every_seconds = LOOK_SECONDS

    def __init__(
        self, settings: ExportSettings, services: Services, *, folder: Path, clock: Clock | None = None
    ) -> None:
        """``folder``: where relative paths begin."""
        self._settings = settings
        self._services = services
        self._clock = clock or SystemClock()
        self._targets = Targets(
            html=_full(settings.html, folder),
            csv=_full(settings.csv, folder),
            full_csv=_full(settings.full_csv, folder),
            json=_full(settings.json, folder),
        )
        self._page = PageSettings(
            zone=read_zone(services.zone),
            reload_seconds=settings.reload_seconds,
            old_after_seconds=max(OLD_AFTER * settings.every_seconds, 60.0),
        )
        self._writing = Reading("export", deadline_seconds=WRITE_DEADLINE_SECONDS)
        self._due = self._clock.monotonic() + min(SETTLE_SECONDS, settings.every_seconds)

    async def look(self) -> None:
        """Write if it is time; ``Failed`` says why that cannot be done now."""
        if self._clock.monotonic() < self._due:
            return
        begun = self._clock.monotonic()
        view = await self._services.calm_view(self._settings.privacy)
        await self._writing.do(lambda: self._write(view))
        self._due = begun + self._settings.every_seconds

    def _write(self, view: FleetView) -> None:
        """In a thread: with thousands of devices this takes a while, and a disk may take longer."""
        seen = SeenHerd(
            herd=msgspec.convert(view, Herd, from_attributes=True), answer=msgspec.json.encode(view)
        )
        replace_files(herd_files(seen, self._targets, self._page))


def _full(path: Path | None, folder: Path) -> Path | None:
    return None if path is None else located(path, folder)
