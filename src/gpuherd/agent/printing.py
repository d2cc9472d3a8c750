"""Reports for people and scripts on the node itself, without any hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from gpuherd.agent.numbering import Numbering
from gpuherd.agent.ticks import Ticks
from gpuherd.agent.watch import ProbeWatch
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Report

__all__ = ["ONCE_INTERVAL_SECONDS", "reports"]

log = logging.getLogger(__name__)

ONCE_INTERVAL_SECONDS = 0.25
"""Between the two looks of ``--once``."""
MOST_FAILURES = 10


async def reports(watch: ProbeWatch, interval_seconds: float) -> AsyncIterator[Report]:
    """Give a report each tick; a tick on which nothing can be read is left out.

    ``Failed`` after ten such ticks in a row.
    """
    ticks = Ticks(interval_seconds)
    numbering = Numbering()
    failures = 0
    while True:
        reading = await watch.read()
        if reading is not None:
            failures = 0
            numbering.entries(reading)
            yield numbering.report(reading)
        else:
            failures += 1
            why = watch.trouble or "the probe does not respond"
            if failures >= MOST_FAILURES:
                raise Failed(f"no data can be read on this node: {why}")
            log.warning("%s", why)
        await asyncio.sleep(ticks.wait_seconds())
