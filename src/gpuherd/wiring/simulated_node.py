"""A simulated node inside of this process: what a probe would read, without a process per node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from gpuherd.agent.exchange import Reading
from gpuherd.collect.node import NodeCollector
from gpuherd.collect.scenario import Scenario, quantised, value_at
from gpuherd.collect.simulated import SimulatedCollector
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import HostFacts, HostSample
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts, Problem, Report, Sample
from gpuherd.wire.reports import sample_to_frame

__all__ = ["SimulatedHost", "SimulatedNode"]


class _HungError(Exception):
    """The simulated driver would hang now."""


def _refuse_to_wait(seconds: float) -> None:
    raise _HungError


class SimulatedHost:
    """The machine around simulated cards, as the scenario tells it."""

    def __init__(self, scenario: Scenario, clock: Callable[[], float] = time.time) -> None:
        self._scenario = scenario
        self._clock = clock
        self._started = clock()
        self._facts = HostFacts(hostname="simulated") if scenario.host is None else scenario.host.facts

    def facts(self) -> HostFacts:
        """Say what the machine is."""
        return self._facts

    def sample(self) -> HostSample:
        """Say what the machine does now."""
        host, t = self._scenario.host, self._scenario.time(self._clock(), self._started)
        if host is None:
            return HostSample()
        cpu, memory = value_at(host.cpu_percent, t), value_at(host.memory_used_bytes, t)
        return HostSample(
            cpu_ratio=None if cpu is None else min(1.0, max(0.0, cpu / 100)),
            load_1m=value_at(host.load_1m, t),
            memory_used_bytes=None if memory is None else quantised(memory),
            uptime_seconds=max(0.0, t) + 41 * 86_400,
        )

    def disks_used_bytes(self) -> tuple[int | None, ...]:
        """Say how full the disks are: each a little fuller than the one before."""
        return tuple(disk.total_bytes * (3 + place) // 10 for place, disk in enumerate(self._facts.disks))

    def close(self) -> None:
        """Nothing to let go of."""


PULLED_AFTER_READINGS = 5


class SimulatedNode:
    """Gives readings like a watched probe. A hanging driver is told as such instead of holding everybody up."""

    def __init__(
        self,
        scenario: Scenario,
        clock: Callable[[], float] = time.time,
        *,
        reports: int | None = None,
        pulled: int | None = None,
    ) -> None:
        """``pulled``: the position of a card that is pulled out after some readings."""
        self.devices: tuple[DeviceFacts, ...] = ()
        self.trouble: str | None = None
        self.is_spent = asyncio.Event()
        """Set after ``reports`` readings, if there is such a limit."""
        self._reports_left = reports
        self._clock = clock
        self._host = SimulatedHost(scenario, clock)
        self._node = self._collecting(scenario)
        self._readings = 0
        self._pulled: Scenario | None = None
        """What is left without the card that is pulled."""
        if pulled is not None:
            left = scenario.gpus[:pulled] + scenario.gpus[pulled + 1 :]
            self._pulled = msgspec.structs.replace(scenario, gpus=left)
        self._facts: NodeFacts | None = None
        self._table: ProcessTable | None = None
        self._hung_since: float | None = None
        # Cards are known before they fail, also where it takes a while until the first report.
        self._report()
        healthy = self._collecting(msgspec.structs.replace(scenario, faults=()))
        self.devices = healthy.read().facts.devices
        healthy.close()

    def _collecting(self, scenario: Scenario) -> NodeCollector:
        collector = SimulatedCollector(scenario, clock=self._clock, sleep=_refuse_to_wait)
        return NodeCollector([collector], host=self._host, clock=self._clock)

    async def read(self) -> Reading:
        """Make one reading."""
        if self._pulled is not None and self._readings == PULLED_AFTER_READINGS:
            self._node.close()
            self._node = self._collecting(self._pulled)
        self._readings += 1
        report = self._report()
        if self._reports_left is not None:
            self._reports_left -= 1
            if self._reports_left <= 0:
                self.is_spent.set()
        self.devices = report.facts.devices
        facts = None if report.facts == self._facts else report.facts
        table = None if report.table == self._table else report.table
        self._facts, self._table = report.facts, report.table
        return Reading(
            facts=facts,
            table=table,
            sample=sample_to_frame(report.sample, seq=0, facts_revision=0, table_revision=0),
        )

    async def stop(self) -> None:
        """End the node."""
        self._node.close()

    def _report(self) -> Report:
        try:
            report = self._node.read()
        except _HungError:
            return self._blind_report()
        self._hung_since = None
        return report

    def _blind_report(self) -> Report:
        now = self._clock()
        self._hung_since = self._hung_since or now
        hung = Problem(
            code="driver_hung",
            message=(
                "the driver does not respond (simulated); on a real node: look for Xid messages, then reboot"
            ),
            is_fault=True,
            since=self._hung_since,
        )
        host = self._host.facts() if self._facts is None else self._facts.host
        return Report(
            facts=NodeFacts(host=host, devices=self.devices),
            sample=Sample(
                time=now,
                host=self._host.sample(),
                disks_used_bytes=self._host.disks_used_bytes(),
                devices=tuple(DeviceSample() for _ in self.devices),
                problems=(hung,),
            ),
        )
