"""This machine's own GPUs, read once as an agent reads them."""

from __future__ import annotations

import asyncio

from gpuherd.agent.printing import ONCE_INTERVAL_SECONDS, reports
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.watch import ProbeWatch
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.reports import Report
from gpuherd.wiring.catalog import probe_spec
from gpuherd.wiring.doctor.judging import judge_reading
from gpuherd.wiring.doctor.steps import Journal, plural

__all__ = ["examine_own_gpus"]

READ_SECONDS = 20.0
STEP = "own GPUs"


async def examine_own_gpus(settings: AgentSettings, journal: Journal, *, is_node: bool) -> None:
    """Read the GPUs of this machine. ``is_node``: it has an agent, so that having none is a problem."""
    try:
        async with asyncio.timeout(READ_SECONDS + settings.collect_deadline_seconds):
            report = await _read(settings)
    except TimeoutError:
        journal.failed(
            STEP, "no answer", "this machine's GPUs cannot be read: the driver hangs; reboot if this persists"
        )
        return
    except (Failed, Misconfigured) as error:
        journal.failed(STEP, "cannot be read", str(error))
        return
    gpus = sum(device.kind == "gpu" for device in report.facts.devices)
    if not gpus and not is_node:
        journal.skipped(STEP, "none here")
        return
    driver = report.facts.host.driver_version
    judge_reading(
        journal,
        STEP,
        "this machine",
        fact=f"{plural(gpus, 'GPU')}, {plural(len(report.table.processes), 'process')}"
        + (f", driver {driver}" if driver else ""),
        gpus=gpus,
        problems=report.sample.problems,
    )


async def _read(settings: AgentSettings) -> Report:
    watch = ProbeWatch(probe_spec(settings), deadline_seconds=settings.collect_deadline_seconds)
    stream = reports(watch, ONCE_INTERVAL_SECONDS)
    try:
        return await anext(stream)
    finally:
        await watch.stop()
