"""When a hub writes its files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from gpuherd.api.services import Services
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.views import FleetView
from gpuherd.model.errors import Failed
from gpuherd.model.people import PrivacyClass
from gpuherd.wiring.exporting.settings import ExportSettings
from gpuherd.wiring.exporting.timer import ExportTimer
from support.herd import ManualClock


class SmallHub:
    """A hub as far as the timer asks it."""

    zone = "UTC"

    def __init__(self, clock: ManualClock) -> None:
        self._fleet = Fleet(clock=clock)
        self.asked: list[PrivacyClass] = []

    async def calm_view(self, privacy: PrivacyClass) -> FleetView:
        self.asked.append(privacy)
        return self._fleet.view()


def test_it_waits_for_the_nodes_keeps_its_pace_and_tries_again_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    hub, folder = SmallHub(clock), tmp_path / "www"
    settings = ExportSettings(html=Path("www"), every_seconds=60)
    timer = ExportTimer(settings, cast("Services", hub), folder=tmp_path, clock=clock)

    def look() -> bool:
        """Look once; tells whether anything was written."""
        page = folder / "index.html"
        before = page.stat().st_ino if page.exists() else None
        asyncio.run(timer.look())
        return page.exists() and page.stat().st_ino != before

    folder.mkdir()
    assert not look(), "before the nodes have had time to report"
    clock.advance(5)
    assert look()
    clock.advance(59)
    assert not look()
    clock.advance(1)
    assert look()
    clock.advance(60)
    folder.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(Failed, match="there is no folder"):
            look()
    (tmp_path / "elsewhere").rename(folder)
    assert look(), "as soon as it can be done"
    assert set(hub.asked) == {"public"}


def test_nothing_is_wanted_unless_a_file_is_named() -> None:
    assert not ExportSettings(every_seconds=5).is_wanted
    assert ExportSettings(json=Path("herd.json")).is_wanted
