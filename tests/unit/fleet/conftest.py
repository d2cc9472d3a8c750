"""A herd under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.settings import AvailabilitySettings
from support.herd import ManualClock, Speaker


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fleet(clock: ManualClock) -> Fleet:
    return Fleet(clock=clock, settings=AvailabilitySettings(idle_window_seconds=600))


@pytest.fixture
def speaker(fleet: Fleet, clock: ManualClock) -> Callable[[str], Speaker]:
    def make(node_id: str) -> Speaker:
        fleet.add_node(node_id, node_id)
        return Speaker(fleet, clock, node_id)

    return make
