"""The agent: a reading each tick, numbered and put in the outbox; beside it the way to the hub, which empties it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpuherd import __version__
from gpuherd.agent.address import HubAddress
from gpuherd.agent.backoff import Backoff
from gpuherd.agent.enrol import Credentials
from gpuherd.agent.exchange import Reading
from gpuherd.agent.known_devices import KnownDevices
from gpuherd.agent.link import Link
from gpuherd.agent.lock import StateLock
from gpuherd.agent.numbering import Numbering
from gpuherd.agent.outbox import Outbox
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.spool import RunFacts
from gpuherd.agent.ticks import Slowness, Ticks
from gpuherd.agent.watch import ProbeWatch
from gpuherd.agent.xid_memory import XidMemory
from gpuherd.model.errors import Misconfigured
from gpuherd.model.reports import Problem, Report
from gpuherd.model.text import SENTENCE_LENGTH, clean
from gpuherd.wire.matrix import LAYOUT

if TYPE_CHECKING:
    from gpuherd.agent.listen import Listener
    from gpuherd.agent.node_info_port import NodeInfoPort

__all__ = ["Agent"]

log = logging.getLogger(__name__)

SYNC_SECONDS = 15.0
SHORTEST_INTERVAL_SECONDS = 0.1
LONGEST_INTERVAL_SECONDS = 3600.0
LONGEST_SILENCE_SECONDS = 2.0
"""If the next tick is further away when a hub begins to listen, a reading is made at once."""


class Agent:
    """One node's agent. ``run`` lasts until it is told to stop."""

    def __init__(
        self,
        settings: AgentSettings,
        spec: ProbeSpec,
        *,
        state_dir: Path,
        watch: ProbeWatch | None = None,
        backoff: Backoff | None = None,
        node_time: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if settings.hub_url is not None and settings.listen is not None:
            raise Misconfigured(
                "agent.listen, agent.hub_url: an agent either connects to the hub or waits for the hub to "
                "connect; remove one of the two (--listen and --hub on the command line)"
            )
        credentials = _credentials(settings, state_dir)
        self._lock = StateLock(state_dir)
        self._known = KnownDevices(state_dir / "devices")
        self._xids = XidMemory(state_dir / "xids")
        self.watch = watch or ProbeWatch(
            spec, deadline_seconds=settings.collect_deadline_seconds, devices=self._known.load()
        )
        facts = RunFacts(
            boot_id=os.urandom(16).hex(),
            layout=LAYOUT,
            interval_seconds=settings.interval_seconds,
            agent_version=__version__,
        )
        self.outbox = Outbox(state_dir / "spool", settings.spool_max_bytes, facts)
        self._ticks = Ticks(settings.interval_seconds)
        self._usual_interval_seconds = settings.interval_seconds
        self._random = random.Random()  # noqa: S311 - spreads nodes over time
        self._pausing: asyncio.Future[None] | None = None
        self._slowness = Slowness()
        self._monotonic = monotonic
        self._numbering = Numbering()
        self._node_time = node_time
        self._blind_since: float | None = None
        self._latest: Reading | None = None
        self.rounds = 0
        """Looks at this machine so far, also those that failed."""
        try:
            self.link = self._way_to_hub(settings, credentials, backoff)
            self.node_info_port = self._node_info_port(settings)
        except Misconfigured:
            self._lock.release()
            raise

    def _way_to_hub(
        self, settings: AgentSettings, credentials: Credentials | None, backoff: Backoff | None
    ) -> Link | Listener:
        if credentials is not None:
            return Link(
                credentials.address,
                credentials,
                self.outbox,
                tls_ca_file=settings.tls_ca_file,
                on_welcome=self._welcomed,
                on_pace=self._paced,
                backoff=backoff,
                node_time=self._node_time,
            )
        from gpuherd.agent.listen import Listener  # noqa: PLC0415 - only who listens pays for it

        return Listener(
            settings,
            self.outbox,
            latest=self.latest_report,
            on_welcome=self._welcomed,
            on_pace=self._paced,
            node_time=self._node_time,
        )

    def _node_info_port(self, settings: AgentSettings) -> NodeInfoPort | None:
        if settings.node_info_listen is None:
            return None
        from gpuherd.agent.node_info_port import NodeInfoPort  # noqa: PLC0415

        return NodeInfoPort(settings, latest=self.latest_report)

    def latest_report(self) -> Report | None:
        """Give the newest reading as a report; none before the first."""
        return None if self._latest is None else self._numbering.report(self._latest)

    @property
    def interval_seconds(self) -> float:
        """Time from one look to the next, as it is now."""
        return self._ticks.interval_seconds

    @property
    def has_read(self) -> bool:
        """Whether there was a first reading."""
        return self._latest is not None

    async def run(self, stop: asyncio.Event) -> None:
        """Report until ``stop`` is set; what is not confirmed by then is left on disk. Raises ``Misconfigured``."""
        tasks = [
            asyncio.create_task(_supervised("collecting", self._collect)),
            asyncio.create_task(_supervised("sending", self.link.run)),
            asyncio.create_task(_supervised("syncing the spool", self._sync)),
            asyncio.create_task(stop.wait(), name="stop"),
        ]
        if self.node_info_port is not None:
            tasks.append(
                asyncio.create_task(_supervised("answering the older tool", self.node_info_port.run))
            )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.outbox.current.close()
            self._lock.release()
        for task in done:
            task.result()

    async def _collect(self) -> None:
        try:
            while True:
                await self._collect_once()
                self.rounds += 1
                await self._pause()
        finally:
            self.rounds += 1
            # A probe sends facts and table once. If a reading was lost between it and the outbox, only a new probe
            # brings them again.
            await self.watch.stop()

    async def _collect_once(self) -> None:
        started = self._monotonic()
        reading = await self.watch.read()
        self._slowness.note(self._monotonic() - started)
        if reading is None:
            reading = self._numbering.unknown(
                self._blindness(), node_time=self._node_time(), hostname=clean(socket.gethostname())
            )
        else:
            self._blind_since = None
            self._known.save(self.watch.devices)
            reading = self._with_interval(self._xids.completed(reading))
        if self.outbox.current.next_seq == 0:
            self._numbering.begin_run()
        self.outbox.current.put(self._numbering.entries(reading))
        self._latest = reading

    async def _pause(self) -> None:
        """Wait for the next tick, or go on at once when the pace was changed: the old wait may be an hour."""
        # A bare future: this runs every tick, and a timeout around an event costs twice as much.
        loop = asyncio.get_running_loop()
        self._pausing = pausing = loop.create_future()
        timer = loop.call_later(self._ticks.wait_seconds(), self._go_on)
        try:
            await pausing
        finally:
            timer.cancel()

    def _go_on(self) -> None:
        if self._pausing is not None and not self._pausing.done():
            self._pausing.set_result(None)

    def _with_interval(self, reading: Reading) -> Reading:
        """Say when the next sample comes, if reading takes longer than the interval."""
        usual = self._ticks.interval_seconds
        interval = self._slowness.interval_seconds(usual)
        if interval is None:
            return reading
        problems = reading.sample.problems
        if self._slowness.is_lasting(usual):
            text = (
                f"reading takes longer than the interval of {usual:g} s: a sample is taken every "
                f"{interval:g} s. Find out what slows the driver down (persistence mode off, a failing "
                "GPU), or set a longer interval"
            )
            problems += (Problem(code="slow_driver", message=clean(text, SENTENCE_LENGTH)),)
        sample = msgspec.structs.replace(reading.sample, problems=problems, interval_seconds=interval)
        return msgspec.structs.replace(reading, sample=sample)

    def _blindness(self) -> tuple[Problem, ...]:
        if self._blind_since is None:
            self._blind_since = self._node_time()
        text = f"no data can be read on this node: {self.watch.trouble or 'the probe does not respond'}"
        return (
            Problem(
                code="host_failed",
                message=clean(text, SENTENCE_LENGTH),
                is_fault=True,
                since=max(self._blind_since, 0.0),
            ),
        )

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            # In a thread, because a slow disk may take seconds; on a copy of the descriptor, because this loop may
            # close the file meanwhile.
            if (descriptor := self.outbox.current.unsynced()) is not None:
                try:
                    await asyncio.to_thread(os.fsync, descriptor)
                finally:
                    os.close(descriptor)

    def _welcomed(self, interval_seconds: float | None) -> None:
        """The hub listens from now on. Frames made before are history to it: soon give it one that is not."""
        if interval_seconds is not None:
            self._set_interval(interval_seconds)
        if self._ticks.left_seconds() > LONGEST_SILENCE_SECONDS:
            self._go_on()

    def _set_interval(self, interval_seconds: float) -> None:
        bounded = min(max(interval_seconds, SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS)
        if bounded != self._usual_interval_seconds:
            log.info("the hub has set the interval to %g s", bounded)
            self._usual_interval_seconds = self._ticks.interval_seconds = bounded
            self.outbox.current.set_interval(bounded)
            self._go_on()

    def _paced(self, interval_seconds: float | None) -> None:
        """Take samples less often while the hub is overloaded; None: at the usual interval again.

        All nodes are asked at the same time. Each starts the new interval at a random moment, or their samples would
        come all at once from then on.
        """
        before, usual = self._ticks.interval_seconds, self._usual_interval_seconds
        interval = min(max(interval_seconds or usual, usual), LONGEST_INTERVAL_SECONDS)
        if interval == before:
            return
        if interval > usual:
            log.info("the hub is overloaded and has set the interval to %g s for now", interval)
        else:
            log.info("the hub is no longer overloaded; the interval is %g s again", interval)
        self._ticks.interval_seconds = interval
        offset = self._random.random() * interval
        if interval > before:
            self._ticks.put_off(offset)
        else:
            self._ticks.put_off(0.0)  # a longer interval of a moment ago may not have begun yet
            asyncio.get_running_loop().call_later(offset, self._go_on)


def _credentials(settings: AgentSettings, state_dir: Path) -> Credentials | None:
    """Give what is needed to dial the hub; none if the hub dials."""
    if settings.listen is not None:
        return None
    if settings.hub_url is None:
        raise Misconfigured(
            "agent.hub_url: is required; set it in the file or with --hub, or let the hub connect to this "
            "node with --listen"
        )
    credentials = Credentials(
        HubAddress.parse(settings.hub_url),
        credential_file=Path(settings.credential_file or state_dir / "credential"),
        join_token_file=settings.join_token_file,
        node_name=settings.node_name,
        tls_ca_file=settings.tls_ca_file,
    )
    credentials.check()
    return credentials


async def _supervised(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run a loop for ever: an unexpected error is logged and the loop starts again, later each time."""
    backoff = Backoff()
    while True:
        try:
            await work()
        except Misconfigured:
            raise
        except Exception:
            wait = backoff.next_seconds()
            log.exception("%s failed and restarts in %.1f s", name, wait)
            await asyncio.sleep(wait)
