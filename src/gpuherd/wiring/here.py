"""This machine alone, without a hub: read as an agent reads it, judged as the hub judges it.

The driver is asked in a probe of its own, so that one that hangs holds nobody up. What a device is is decided by
``fleet`` alone. A device that someone holds without working counts as busy until it has been watched for as long as the
idle window is, as nobody knows what it did before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from gpuherd.agent.numbering import Numbering
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.watch import ProbeWatch
from gpuherd.client.herd_views import Herd
from gpuherd.fleet.clock import SystemClock
from gpuherd.fleet.settings import AvailabilitySettings, DisplaySettings
from gpuherd.model.errors import Failed
from gpuherd.model.reports import Report
from gpuherd.wiring.catalog import probe_spec
from gpuherd.wiring.config import default_config_files, load

if TYPE_CHECKING:
    from gpuherd.fleet.fleet import Fleet

__all__ = ["Here", "device_ids_here", "look_here", "look_here_plainly"]

NODE_ID = "here"
DEADLINE_SECONDS = 20.0
"""So long a look may take: that of a driver which hangs in its first call, and what comes after it."""
AGAIN_SECONDS = 0.1
LOOK_INTERVAL_SECONDS = 1.0


class Here:
    """This machine, to be looked at any number of times: ``async with Here() as here: herd = await here.look()``."""

    def __init__(
        self,
        agent: AgentSettings | None = None,
        availability: AvailabilitySettings | None = None,
        display: DisplaySettings | None = None,
        *,
        interval_seconds: float = LOOK_INTERVAL_SECONDS,
    ) -> None:
        """``interval_seconds``: how often it is going to be looked at."""
        agent = agent or AgentSettings()
        self._watch = ProbeWatch(probe_spec(agent), deadline_seconds=agent.collect_deadline_seconds)
        self._numbering = Numbering()
        self._interval_seconds = interval_seconds
        self._name = agent.node_name or socket.gethostname()
        self._availability = availability
        self._display = display or DisplaySettings()
        self._fleet: Fleet | None = None
        self.answer = b""
        """The last look as the hub would tell it: the JSON of ``GET /api/v1/fleet``."""

    @classmethod
    def configured(cls, *, interval_seconds: float = LOOK_INTERVAL_SECONDS) -> Here:
        """Make one by this machine's gpuherd.toml as far as one may read it; ``Misconfigured`` if it is wrong."""
        file = next((file for file in default_config_files() if os.access(file, os.R_OK)), None)
        if file is None:
            return cls(interval_seconds=interval_seconds)
        config = load(file)
        return cls(config.agent, config.availability, config.display, interval_seconds=interval_seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._watch.stop()

    async def look(self) -> Herd:
        """Look once; a herd of one node, without devices if there are none. ``Failed`` if nothing can be read."""
        reading = asyncio.create_task(self._report())
        try:
            await asyncio.sleep(0)  # the probe starts; while it does, numpy is loaded
            fleet = self._judge()
            report = await _in_time(reading)
        finally:
            reading.cancel()
        fleet.accept_report(NODE_ID, report, self._interval_seconds)
        fleet.tick()
        self.answer = msgspec.json.encode(fleet.view())
        return msgspec.json.decode(self.answer, type=Herd)

    async def device_ids(self) -> frozenset[str]:
        """Read the UUIDs of this machine's GPUs and slices. ``Failed`` if nothing can be read."""
        report = await _in_time(self._report())
        return frozenset(device.uuid for device in report.facts.devices)

    def _judge(self) -> Fleet:
        if self._fleet is None:
            with _threads_without_signals():  # numpy starts some
                from gpuherd.fleet.fleet import Fleet  # noqa: PLC0415 - takes as long to load as the probe to start
                from gpuherd.fleet.names import Names  # noqa: PLC0415

            self._fleet = Fleet(clock=SystemClock(), settings=self._availability, names=Names(self._display))
            self._fleet.add_node(NODE_ID, self._name)
        return self._fleet

    async def _report(self) -> Report:
        while True:
            reading = await self._watch.read()
            if reading is None:
                why = self._watch.trouble or "the probe does not respond"
                raise Failed(f"no data can be read on this machine: {why}")
            self._numbering.entries(reading)
            report = self._numbering.report(reading)
            if not any(problem.code == "gpus_pending" for problem in report.sample.problems):
                return report
            await asyncio.sleep(AGAIN_SECONDS)


async def _in_time(reading: Awaitable[Report]) -> Report:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await reading
    except TimeoutError:
        raise Failed(
            f"the GPUs of this machine could not be read within {DEADLINE_SECONDS:.0f} s; "
            "find out why with: gpuherd doctor"
        ) from None


@contextmanager
def _threads_without_signals() -> Iterator[None]:
    """Keep signals from the threads that are started within, for as long as they live.

    A signal comes to any thread that lets it in. There it is lost to a main thread that waits for it with the signal
    blocked, as ``gpuherd run`` does for its command, or ends the process.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def look_here(*, looks: int = 1) -> Herd:
    """Look at this machine; of several looks give the last, as rates such as CPU use need two. Blocks."""
    return asyncio.run(_look(looks))[0]


def look_here_plainly(*, looks: int = 1) -> tuple[Herd, bytes]:
    """Look at this machine, and give also the JSON that a hub would tell."""
    return asyncio.run(_look(looks))


def device_ids_here() -> frozenset[str]:
    """Read the UUIDs of this machine's GPUs and slices, without numpy. Blocks; ``Failed`` if nothing can be read."""
    return asyncio.run(_device_ids())


async def _device_ids() -> frozenset[str]:
    logging.getLogger("gpuherd").addHandler(logging.NullHandler())
    async with Here.configured() as here:
        return await here.device_ids()


async def _look(looks: int) -> tuple[Herd, bytes]:
    logging.getLogger("gpuherd").addHandler(logging.NullHandler())  # what parts log is told in the herd, too
    async with Here.configured() as here:
        herd = await here.look()
        for _ in range(looks - 1):
            await asyncio.sleep(AGAIN_SECONDS)
            herd = await here.look()
        return herd, here.answer
