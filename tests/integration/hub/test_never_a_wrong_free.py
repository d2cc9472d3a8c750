"""Random faults, refusals, restarts and clock jumps from the simulated driver to the hub: never a wrong *free*."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from gpuherd.agent.exchange import Reading
from gpuherd.agent.numbering import Numbering
from gpuherd.collect.scenario import Fault, Scenario, ScheduledXid, SimulatedGpu, SimulatedProcess
from gpuherd.collect.scenario.cards import SimulatedHost as HostScenario
from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.node import Run
from gpuherd.model.device_memory import DeviceFault, KnownDevice
from gpuherd.model.hosts import HostFacts
from gpuherd.model.processes import ProcessTable
from gpuherd.model.reports import NodeFacts
from gpuherd.records.last_reports import LastReport
from gpuherd.wire.codec import agent_decoder
from gpuherd.wire.frames import FactsFrame, Hello, SampleFrame, TableFrame
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wiring.simulated_node import SimulatedNode
from support.herd import ManualClock
from support.soak import SOAK

GIB = 2**30
NODE = "n1"
GPUS = 3
FATAL_XIDS = (46, 48, 79, 110, 119, 158)
REFUSALS = {
    "nvmlDeviceGetMemoryInfo*": (4, 999),
    "nvmlDeviceGetUtilizationRates": (4, 999),
    "nvmlDeviceGetComputeRunningProcesses*": (4, 999),
    "nvmlDevice*": (15, 16, 999, "hang"),
}
cards = st.integers(0, GPUS - 1)


@dataclass
class Card:
    """What is true of a card, whatever anyone says of it."""

    uuid: str
    has_process: bool = False
    memory_bytes: int = 0
    throttle: int = 1
    ecc: int = 0
    is_in: bool = True
    has_fatal_xid: bool = False
    refused: dict[str, int | str] = field(default_factory=dict)

    @property
    def may_be_free(self) -> bool:
        """Whether nothing forbids to call it free."""
        return (
            self.is_in
            and not self.has_process
            and self.memory_bytes <= 512 * 2**20
            and not self.throttle & (8 | 64 | 128)
            and self.ecc == 0
            and not self.has_fatal_xid
            and not self.refused
        )


class Story(RuleBasedStateMachine):
    """One node's agent and its hub."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.node_offset = 0.0
        self.boot = 0
        self.agent_runs = 0
        self.cards = [Card(uuid=f"GPU-{index:08d}-0000-0000-0000-000000000000") for index in range(GPUS)]
        self.fleet = Fleet(clock=self.clock)
        self.fleet.add_node(NODE, NODE)
        self.heard_at = -1e9
        self.known: set[str] = set()
        self.kept: dict[str, LastReport] = {}
        self.records: dict[tuple[str, str], KnownDevice | None] = {}
        self.faults: dict[tuple[str, str, str], DeviceFault | None] = {}
        self.restart_agent()
        self.report()

    def node_time(self) -> float:
        return self.clock.wall() + self.node_offset

    def scenario(self, *xids: ScheduledXid) -> Scenario:
        inside = [card for card in self.cards if card.is_in]
        return Scenario(
            driver_version="580.1",
            epoch=0.0,
            host=HostScenario(facts=HostFacts(hostname=NODE, boot_id=f"boot-{self.boot}")),
            gpus=tuple(
                SimulatedGpu(
                    uuid=card.uuid,
                    name="NVIDIA A100-SXM4-80GB",
                    pci_bus_id=f"00000000:{0x10 + self.cards.index(card):02X}:00.0",
                    memory_total_bytes=80 * GIB,
                    memory_used_bytes=card.memory_bytes,
                    utilization_gpu_percent=0,
                    throttle_reasons=card.throttle,
                    ecc_uncorrected_volatile=card.ecc,
                    processes=(SimulatedProcess(pid=100, memory_used_bytes=GIB),) if card.has_process else (),
                )
                for card in inside
            ),
            faults=tuple(
                Fault(function=function, gpu=place, effect=effect)  # type: ignore[arg-type]
                for place, card in enumerate(inside)
                for function, effect in card.refused.items()
            ),
            xids=xids,
        )

    def open_driver(self, *xids: ScheduledXid) -> None:
        self.driver = SimulatedNode(self.scenario(*xids), clock=self.node_time)
        self.facts: NodeFacts | None = None
        self.table: ProcessTable | None = None

    # -- what happens ------------------------------------------------------------------------------------------

    @rule()
    def restart_agent(self) -> None:
        self.agent_runs += 1
        self.numbering = Numbering()
        self.open_driver()
        self.open_run()

    def open_run(self) -> None:
        hello = Hello(
            boot_id=f"run-{self.agent_runs}", layout=LAYOUT, time=self.node_time(), interval_seconds=1.0
        )
        self.run_: Run = self.fleet.open_run(NODE, hello)

    @rule()
    def restart_hub(self) -> None:
        self.kept.update({each.node_id: each for each in self.fleet.take_unsaved()})
        changes = self.fleet.memory.take_changes()
        self.records.update(changes.devices)
        self.faults.update(changes.faults)
        self.fleet = Fleet(clock=self.clock)
        self.fleet.add_node(NODE, NODE)
        self.fleet.memory.load(filter(None, self.records.values()), filter(None, self.faults.values()))
        for each in self.kept.values():
            self.fleet.restore(each)
        self.numbering.begin_run()
        self.agent_runs += 1
        self.open_run()

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 70.0, 1000.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-86_400.0, -7200.0, -1.5, 3.0, 432_000.0]), of_hub=st.booleans())
    def set_clock(self, seconds: float, of_hub: bool) -> None:
        if of_hub:
            self.clock.wall_offset += seconds
            self.node_offset -= seconds
        else:
            self.node_offset += seconds

    @rule(card=cards, has_process=st.booleans())
    def use(self, card: int, has_process: bool) -> None:
        self.cards[card].has_process = has_process
        self.cards[card].memory_bytes = GIB if has_process else 0

    @rule(card=cards, share=st.sampled_from([0, 300 * 2**20, 1536 * 2**20, 70 * GIB]))
    def hold(self, card: int, share: int) -> None:
        self.cards[card].memory_bytes = share

    @rule(card=cards, bits=st.sampled_from([0, 1, 4, 8, 64 + 8, 128 + 8]))
    def slow_down(self, card: int, bits: int) -> None:
        self.cards[card].throttle = bits

    @rule(card=cards, errors=st.sampled_from([0, 1, 7]))
    def miscount(self, card: int, errors: int) -> None:
        self.cards[card].ecc = errors

    @rule(card=cards, data=st.data())
    def refuse(self, card: int, data: st.DataObject) -> None:
        function = data.draw(st.sampled_from(sorted(REFUSALS)))
        self.cards[card].refused[function] = data.draw(st.sampled_from(REFUSALS[function]))

    @rule(card=cards)
    def repair(self, card: int) -> None:
        self.cards[card].refused.clear()

    @rule(card=cards, is_in=st.booleans())
    def plug(self, card: int, is_in: bool) -> None:
        self.cards[card].is_in = is_in

    @rule(card=cards, number=st.sampled_from(FATAL_XIDS))
    def xid(self, card: int, number: int) -> None:
        """The agent reports an Xid once, and has forgotten it with its next start."""
        if not self.cards[card].is_in or any(each.refused for each in self.cards):
            return
        place = [each for each in self.cards if each.is_in].index(self.cards[card])
        self.open_driver(ScheduledXid(gpu=place, at=self.node_time() + 0.5, xid=number))
        self.clock.advance(1.0)
        self.cards[card].has_fatal_xid = True
        self.send()

    @rule()
    def reboot(self) -> None:
        self.boot += 1
        for card in self.cards:
            card.has_fatal_xid, card.ecc, card.has_process, card.memory_bytes = False, 0, False, 0
        self.restart_agent()

    @rule()
    def report(self) -> None:
        self.open_driver()
        self.send()

    def send(self) -> None:
        decoder = agent_decoder()
        for entry in self.numbering.entries(asyncio.run(self._reading())):
            frame = decoder.decode(entry.message)
            assert isinstance(frame, FactsFrame | TableFrame | SampleFrame)
            self.run_.accept(frame, entry.message)
        self.heard_at = self.clock.monotonic()
        self.truth = {card.uuid: card.may_be_free for card in self.cards}
        self.known |= {card.uuid for card in self.cards if card.is_in}

    async def _reading(self) -> Reading:
        """Read with facts and table, as the first reading of a probe."""
        reading = await self.driver.read()
        self.facts, self.table = reading.facts or self.facts, reading.table or self.table
        return Reading(facts=self.facts, table=self.table, sample=reading.sample)

    # -- what must never be ------------------------------------------------------------------------------------

    @invariant()
    def free_is_true(self) -> None:
        self.fleet.tick()
        node = self.fleet.node(NODE)
        assert node is not None
        is_fresh = self.clock.monotonic() - self.heard_at <= 3.0
        free = {device.facts.uuid for device in node.devices if device.availability.state == "free"}
        wrong = {uuid for uuid in free if not self.truth[uuid]}
        assert not wrong, "free, and the last sample says otherwise"
        assert not free or is_fresh, "free by old news"
        assert free == {one.ref.uuid for one in self.fleet.listing() if one.state == "free"}
        assert self.fleet.totals().devices["free"] == len(free)
        shown = {device.facts.uuid for device in node.devices}
        assert shown >= self.known, "a card that was there has vanished without a word"
        global offered  # noqa: PLW0603 - a count over all stories
        offered += len(free)


offered = 0


@pytest.mark.soak
def test_free_is_never_wrong_and_not_never() -> None:
    run_state_machine_as_test(
        Story, settings=settings(max_examples=60 * SOAK, stateful_step_count=40, deadline=None)
    )
    assert offered > 500, "cards that are well are free"
