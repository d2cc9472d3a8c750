"""How an agent fares, in the words and numbers that systemd is told."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.wiring.systemd import Pulse

__all__ = ["AgentPulse"]

SILENCE_SECONDS = 150.0
"""Added to the interval: a driver that hangs, a probe that is slow to start and the longest pause after an error."""
PATIENCE_SECONDS = 20.0
"""An agent that reads but does not reach its hub is ready after so long: it keeps what it reads for later."""


class AgentPulse:
    """Tells how an agent fares."""

    def __init__(
        self, agent: Agent, settings: AgentSettings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent = agent
        self._address = settings.hub_url
        self._monotonic = monotonic
        self._started_at = monotonic()

    def __call__(self) -> Pulse:
        """Look at the agent: ready once it has read, and has its hub or has waited long enough for it."""
        agent = self._agent
        is_linked = not agent.outbox.current.is_away
        # A hub that dials comes when it likes.
        has_waited = self._address is None or self._monotonic() - self._started_at > PATIENCE_SECONDS
        return Pulse(
            beats=agent.rounds,
            longest_silence_seconds=agent.interval_seconds + SILENCE_SECONDS,
            is_ready=agent.has_read and (is_linked or has_waited),
            status=self._status(is_linked),
        )

    def _status(self, is_linked: bool) -> str:
        if not self._agent.has_read:
            return "reading this machine for the first time"
        if self._address is None:
            return (
                "the hub listens"
                if is_linked
                else "waiting for the hub to connect; samples are spooled to disk"
            )
        if is_linked:
            return f"reporting to {self._address}"
        return f"{self._address} cannot be reached, the log says why; samples are spooled to disk"
