"""Overload: detect it within seconds, report it, and ask agents for a longer interval."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from gpuherd.fleet.clock import Clock
from gpuherd.fleet.views import FleetNotice

__all__ = ["LoadHealth", "Overload", "Pressure"]

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
LATE_WRITING_SECONDS = 3.0
"""A sample waits for a tick and a write: up to 2 s at the usual load."""
LATE_READING_SECONDS = 2.0
CALM_SHARE = 0.5
"""Below this share of both limits, the hub keeps up."""
STEP_SECONDS = 5.0
"""Time for a longer interval to take effect before the hub asks for a still longer one."""
CALM_SECONDS = 10.0
"""How long the hub must keep up before it asks for a shorter interval."""
LONGEST_CALM_SECONDS = 640.0
"""The same, after overload has come back repeatedly."""
FAR_BEHIND = 3.0
"""From this degree on, the interval is quadrupled instead of doubled."""
LONGEST_STRETCH = 16.0


class Pressure(NamedTuple):
    """How far behind the hub is."""

    writing_seconds: float
    """Age of the oldest sample that is not written yet."""
    reading_seconds: float
    """How much later than usual most samples are read."""

    @property
    def degree(self) -> float:
        """1 and above: overload."""
        return max(self.writing_seconds / LATE_WRITING_SECONDS, self.reading_seconds / LATE_READING_SECONDS)


class LoadHealth(Struct, frozen=True, kw_only=True):
    """Whether the hub keeps up with the nodes."""

    overloaded_since: Annotated[
        float | None, Meta(description="Hub time, UTC epoch seconds. Null: the hub keeps up.")
    ] = None
    writing_seconds: Annotated[
        float, Meta(description="Age of the oldest sample that is not written yet.")
    ] = 0.0
    reading_seconds: Annotated[
        float, Meta(description="How much later than usual the samples of most nodes are read.")
    ] = 0.0
    interval_stretch: Annotated[
        float,
        Meta(description="The interval that agents are asked to use, as a multiple of their usual one."),
    ] = 1.0
    asked_nodes: Annotated[int, Meta(description="Nodes that currently use a longer interval.")] = 0
    episodes: Annotated[
        int, Meta(description="How many times the hub has been overloaded since it started.")
    ] = 0


class Overload:
    """Decides which interval to ask agents for.

    It looks at the pressure every half second. The interval doubles while the hub is behind, and is halved step by step
    when the hub has kept up for a while. If overload comes back after such a step, the next one waits longer.
    """

    def __init__(
        self,
        *,
        pressure: Callable[[], Pressure],
        set_stretch: Callable[[float], None],
        asked_count: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._pressure_now = pressure
        self._set_stretch = set_stretch
        self._asked_count = asked_count
        self._clock = clock
        self._pressure = Pressure(0.0, 0.0)
        self._stretch = 1.0
        self._since: float | None = None
        self._started = 0.0
        self._changed_at = self._eased_at = -math.inf
        self._calm_since = math.inf
        self._calm_seconds = CALM_SECONDS
        self._episodes = 0

    async def look(self) -> None:
        """Compare the pressure with the limits, and ask for another interval when it is time."""
        self._pressure = pressure = self._pressure_now()
        now = self._clock.monotonic()
        if pressure.degree >= 1.0:
            self._calm_since = math.inf
            self._press(now)
        elif self._since is not None and pressure.degree <= CALM_SHARE:
            self._calm_since = min(self._calm_since, now)
            if now - max(self._calm_since, self._changed_at) >= self._calm_seconds:
                self._ease(now)
        else:
            self._calm_since = math.inf
        self._set_stretch(self._stretch)

    def _press(self, now: float) -> None:
        if self._since is None:
            self._since, self._started = self._clock.wall(), now
            self._episodes += 1
            log.warning("%s", self._message())
        if now - self._changed_at < STEP_SECONDS:
            return
        if now - self._eased_at < self._calm_seconds:
            self._calm_seconds = min(2 * self._calm_seconds, LONGEST_CALM_SECONDS)
        if self._stretch < LONGEST_STRETCH:
            factor = 4 if self._pressure.degree >= FAR_BEHIND else 2
            self._stretch, self._changed_at = min(factor * self._stretch, LONGEST_STRETCH), now

    def _ease(self, now: float) -> None:
        self._changed_at = self._eased_at = now
        if self._stretch > 1.0:
            self._stretch /= 2
        if self._stretch == 1.0:
            log.info(
                "no longer overloaded, after %.0f s; agents report at their usual interval",
                now - self._started,
            )
            self._since, self._calm_since = None, math.inf

    def _message(self) -> str:
        # No figures: they change all the time, and viewers would get a new notice each second. Health has them.
        writing, reading = self._pressure
        behind = ["written"] if writing >= CALM_SHARE * LATE_WRITING_SECONDS else []
        behind += ["read"] if reading >= CALM_SHARE * LATE_READING_SECONDS else []
        state = f"samples are {' and '.join(behind)} late" if behind else "it is keeping up again for now"
        asked = (
            f"; agents report at {self._stretch:g} times their usual interval" if self._stretch > 1 else ""
        )
        return (
            f"the hub is overloaded: {state}{asked}. Nothing that agents send is lost. If this persists, "
            "give the hub more CPU or a faster disk, or the agents a longer interval_seconds"
        )

    def reasons(self) -> list[str]:
        """Describe the overload for people."""
        return [] if self._since is None else [self._message()]

    def notices(self) -> list[FleetNotice]:
        """Return the same as notices for all viewers."""
        return [
            FleetNotice(code="overloaded", message=reason, since=self._since) for reason in self.reasons()
        ]

    def health(self) -> LoadHealth:
        """Return figures about the load."""
        return LoadHealth(
            overloaded_since=self._since,
            writing_seconds=round(self._pressure.writing_seconds, 1),
            reading_seconds=round(self._pressure.reading_seconds, 1),
            interval_stretch=self._stretch,
            asked_nodes=self._asked_count(),
            episodes=self._episodes,
        )
