"""Overload is said at once, agents are asked for longer intervals step by step, and back again more slowly."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gpuherd.api.overload import CALM_SECONDS, LONGEST_STRETCH, STEP_SECONDS, Overload, Pressure
from support.herd import ManualClock

CALM, BEHIND, LATE = Pressure(1.0, 0.0), Pressure(4.5, 0.0), Pressure(1.0, 2.5)


class Stage:
    """An overload watch whose pressure the test sets."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pressure = CALM
        self.stretches: list[float] = []
        self.overload = Overload(
            pressure=lambda: self.pressure,
            set_stretch=self.stretches.append,
            asked_count=lambda: 0,
            clock=self.clock,
        )

    def look(self, pressure: Pressure, seconds: float = 0.0) -> float:
        """Let time pass under a pressure, looking every half second; return the stretch at the end."""
        self.pressure = pressure
        for _ in range(int(seconds * 2)):
            self.clock.advance(0.5)
            asyncio.run(self.overload.look())
        if not seconds:
            asyncio.run(self.overload.look())
        return self.stretches[-1]


@pytest.mark.promise("overload-is-said")
@pytest.mark.parametrize("pressure", [BEHIND, LATE])
def test_overload_is_said_once_when_it_begins_and_once_when_it_ends(
    pressure: Pressure, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="gpuherd.api.overload")
    stage = Stage()
    assert stage.look(CALM, 60) == 1.0
    assert stage.overload.reasons() == []
    assert stage.look(pressure) == 2.0, "asked at the first sign"
    (reason,) = stage.overload.reasons()
    (notice,) = stage.overload.notices()
    assert (notice.code, notice.message, notice.since) == ("overloaded", reason, stage.clock.wall())
    stage.look(pressure, 20)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    stage.look(CALM, 60)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert stage.overload.reasons() == []
    assert stage.overload.notices() == []
    assert (stage.overload.health().episodes, stage.overload.health().overloaded_since) == (1, None)


@pytest.mark.promise("overload-asks-for-less")
def test_the_interval_grows_while_the_hub_is_behind_and_returns_step_by_step() -> None:
    stage = Stage()
    assert stage.look(BEHIND) == 2.0
    assert stage.look(BEHIND, STEP_SECONDS - 0.5) == 2.0, "what was asked for needs time to show"
    assert stage.look(BEHIND, 0.5) == 4.0
    assert stage.look(BEHIND, 60) == LONGEST_STRETCH
    asked = []
    while stage.overload.reasons():
        asked.append(stage.look(CALM, CALM_SECONDS + 0.5))
    assert asked == [8.0, 4.0, 2.0, 1.0]


def test_far_behind_the_steps_are_larger() -> None:
    stage = Stage()
    assert stage.look(Pressure(13.0, 0.0)) == 4.0
    assert stage.look(Pressure(30.0, 0.0), STEP_SECONDS) == LONGEST_STRETCH
    assert stage.look(Pressure(60.0, 0.0), STEP_SECONDS) == LONGEST_STRETCH


def test_a_pressure_between_calm_and_overload_changes_nothing() -> None:
    stage = Stage()
    stage.look(BEHIND)
    assert stage.look(Pressure(2.5, 1.0), 120) == 2.0
    assert stage.overload.reasons()


@pytest.mark.promise("overload-asks-for-less")
def test_if_overload_comes_back_the_next_try_waits_longer() -> None:
    stage = Stage()
    stage.look(BEHIND, STEP_SECONDS + 1)

    def seconds_until_eased() -> float:
        started, before = stage.clock.monotonic(), stage.stretches[-1]
        while stage.look(CALM, 0.5) == before:
            pass
        return stage.clock.monotonic() - started

    waits = []
    for _ in range(3):
        waits.append(seconds_until_eased())
        stage.look(BEHIND, STEP_SECONDS + 1)
    assert waits[1] >= 1.9 * waits[0]
    assert waits[2] >= 1.9 * waits[1]
