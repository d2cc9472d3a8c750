"""The notice for the case that most nodes agree that the hub's clock is wrong."""

from __future__ import annotations

from gpuherd.fleet.sample_times import HubClockDoubt
from gpuherd.fleet.views import FleetNotice

__all__ = ["hub_clock_notice"]

MINUTE, HOUR, DAY = 60, 3600, 86_400


def hub_clock_notice(doubt: HubClockDoubt) -> FleetNotice:
    """Make the notice for the page and for health."""
    off = f"{_about(abs(doubt.ahead_seconds))} {'ahead of' if doubt.ahead_seconds > 0 else 'behind'}"
    return FleetNotice(
        code="hub_clock",
        message=f"the hub's clock is {off} those of {doubt.agreeing_nodes} of {doubt.heard_nodes} nodes, "
        "so the hub's clock is probably wrong, and so are the times of samples and bookings; set "
        "the clock of the hub's machine, for example with NTP",
    )


def _about(seconds: float) -> str:
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
