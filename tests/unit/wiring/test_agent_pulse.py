"""When an agent is ready, and what it says of itself to systemd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.wiring.agent_pulse import PATIENCE_SECONDS, AgentPulse

HUB = AgentSettings(hub_url="https://gpus.example.org")
DIALLED = AgentSettings(listen="0.0.0.0")


def agent(*, has_read: bool, is_away: bool) -> Agent:
    run: Any = SimpleNamespace(is_away=is_away)
    parts = SimpleNamespace(
        rounds=3, interval_seconds=1.0, has_read=has_read, outbox=SimpleNamespace(current=run)
    )
    return cast("Agent", parts)


@pytest.mark.parametrize(
    ("settings", "has_read", "is_away", "waited_seconds", "is_ready", "words"),
    [
        (HUB, False, True, 0.0, False, "for the first time"),
        (HUB, False, True, PATIENCE_SECONDS + 1, False, "for the first time"),
        (HUB, True, True, 0.0, False, "cannot be reached"),
        (HUB, True, True, PATIENCE_SECONDS + 1, True, "cannot be reached"),
        (HUB, True, False, 0.0, True, "reporting to https://gpus.example.org"),
        (DIALLED, True, True, 0.0, True, "waiting for the hub"),
        (DIALLED, True, False, 0.0, True, "the hub listens"),
    ],
)
def test_an_agent_is_ready_when_it_reads_and_has_its_hub_or_waited_for_it(
    settings: AgentSettings, has_read: bool, is_away: bool, waited_seconds: float, is_ready: bool, words: str
) -> None:
    now = 100.0
    look = AgentPulse(agent(has_read=has_read, is_away=is_away), settings, monotonic=lambda: now)
    now += waited_seconds
    pulse = look()
    assert pulse.is_ready is is_ready
    assert words in pulse.status
    assert pulse.beats == 3
    assert pulse.longest_silence_seconds > 100
