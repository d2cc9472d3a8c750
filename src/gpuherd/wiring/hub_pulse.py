"""How a hub fares, in the words and numbers that systemd is told."""

from __future__ import annotations

from gpuherd.api.hub import Hub
from gpuherd.wiring.systemd import Pulse

__all__ = ["hub_pulse"]

SILENCE_SECONDS = 60.0
"""Twice what a round of the hub's tick may take with its longest pause after errors."""


def hub_pulse(hub: Hub) -> Pulse:
    """Tell how a started hub fares."""
    nodes = {state: count for state, count in hub.fleet.totals().nodes.items() if count}
    told = ", ".join(f"{count} {state}" for state, count in nodes.items()) or "none yet"
    return Pulse(
        beats=hub.beats,
        longest_silence_seconds=SILENCE_SECONDS + hub.settings.tick_seconds,
        is_ready=True,
        status=f"serving {hub.url}, nodes: {told}",
    )
