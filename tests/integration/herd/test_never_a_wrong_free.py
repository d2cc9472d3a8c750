"""Random faults from the simulated NVML through a real agent and its probes to a real hub: never a wrong *free*.

``hub/test_never_a_wrong_free.py`` tries far more stories on the hub alone; here all that lies before it is real.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, build_library, simulator_environment

from gpuherd.agent.backoff import Backoff
from gpuherd.agent.known_devices import KnownDevices
from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.watch import ProbeWatch
from gpuherd.api.hub import Hub
from gpuherd.fleet.clock import SystemClock
from gpuherd.fleet.views import NodeView
from gpuherd.wiring.catalog import probe_spec
from support.hub import running_hub
from support.running import PATIENCE_SECONDS, free_port
from support.soak import SOAK
from support.watched_node import Clock

ROOT = Path(__file__).parents[3]
GIB, MIB = 2**30, 2**20
CARDS = 3
STEPS = 12
WITNESS = "GPU-witness"
"""A card that nothing happens to: its temperature tells which step a sample has seen."""
FATAL_XIDS = (46, 48, 79, 110, 158)
REFUSALS = (
    ("nvmlDeviceGetMemoryInfo*", (4, 15, 999)),
    ("nvmlDeviceGetUtilizationRates", (4, 999)),
    ("nvmlDeviceGetComputeRunningProcesses*", (3, 4, 7, 25, 999)),
    ("nvmlDeviceGet*", (15, 16, 999, "hang", "crash")),
)


class SetClock(SystemClock):
    """The machine's clocks, with a wall clock that is set now and then."""

    ahead_seconds = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead_seconds


@dataclass
class Card:
    """What is true of a card, whatever anyone says of it."""

    index: int
    has_process: bool = False
    memory_bytes: int = MIB
    throttle: int = 1
    ecc: int = 0
    is_in: bool = True
    has_fatal_xid: bool = False
    refused: dict[str, int | str] = field(default_factory=dict)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.index}"

    @property
    def may_be_free(self) -> bool:
        return (
            self.is_in
            and not self.has_process
            and self.memory_bytes <= 512 * MIB
            and not self.throttle & (8 | 64 | 128)
            and self.ecc == 0
            and not self.has_fatal_xid
            and not self.refused
        )

    def scenario(self) -> dict[str, Any]:
        return _card(self.uuid, self.index) | {
            "memory_used_bytes": self.memory_bytes,
            "throttle_reasons": self.throttle,
            "ecc_uncorrected_volatile": self.ecc,
            "processes": [{"pid": 4_000_000, "memory_used_bytes": MIB}] if self.has_process else [],
        }


def _card(uuid: str, index: int) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "name": "NVIDIA A100-SXM4-80GB",
        "serial": f"156000000000{index}",
        "pci_bus_id": f"00000000:{index + 1:02x}:00.0",
        "memory_total_bytes": 80 * GIB,
        "memory_reserved_bytes": 0,
        "memory_used_bytes": MIB,
        "utilization_gpu_percent": 0,
        "utilization_memory_percent": 0,
        "temperature_celsius": 30,
        "throttle_reasons": 1,
        "ecc_uncorrected_volatile": 0,
        "ecc_corrected_volatile": 0,
        "energy_joules": {"wave": "ramp", "start": 1000, "per_second": 50},
    }


class Story:
    """A machine, its agent and its hub, and what happens to them."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.cards = [Card(index) for index in range(CARDS)]
        self.allowed = {card.uuid for card in self.cards}
        self.step = 0
        self.told: list[str] = []
        self.looks = self.offered = 0
        self._epoch = time.time()
        self._driver = 1
        self._port = free_port()
        self._clock = SetClock()
        self._watch_clock = Clock()
        self._agent: AsyncExitStack = AsyncExitStack()
        self._hub_stack: AsyncExitStack = AsyncExitStack()
        self._hub: Hub | None = None
        (folder / "state").mkdir(mode=0o700)

    # -- the machinery -----------------------------------------------------------------------------------------

    def play(self, *xids: dict[str, Any]) -> None:
        inside = [card for card in self.cards if card.is_in]
        witness = _card(WITNESS, CARDS) | {"temperature_celsius": self._marker}
        scenario = {
            "driver_version": f"550.{self._driver}",
            "epoch": self._epoch,
            "gpus": [*(card.scenario() for card in inside), witness],
            "faults": [
                {"function": function, "gpu": place, "effect": effect}
                for place, card in enumerate(inside)
                for function, effect in card.refused.items()
            ],
            "xids": xids,
        }
        fresh = self.folder / "scenario.new"
        fresh.write_text(json.dumps(scenario))
        fresh.replace(self.folder / "scenario.json")

    @property
    def _marker(self) -> int:
        return 20 + self.step % 60

    async def start_hub(self) -> None:
        self._hub = await self._hub_stack.enter_async_context(
            running_hub(
                self.folder / "hub", hub_options={"clock": self._clock}, listen=f"127.0.0.1:{self._port}"
            )
        )

    async def start_agent(self) -> None:
        assert self._hub is not None
        state_dir = self.folder / "state"
        settings = AgentSettings(
            hub_url=f"http://127.0.0.1:{self._port}/", interval_seconds=0.1, collectors=("nvml",)
        )
        spec = probe_spec(settings)
        self._watch = watch = ProbeWatch(
            spec,
            deadline_seconds=settings.collect_deadline_seconds,
            devices=KnownDevices(state_dir / "devices").load(),
            monotonic=self._watch_clock,
        )
        backoff = Backoff(first_seconds=0.05, longest_seconds=0.2)
        agent = Agent(settings, spec, state_dir=state_dir, watch=watch, backoff=backoff)
        stop = asyncio.Event()
        task = asyncio.create_task(agent.run(stop))

        async def end() -> None:
            stop.set()
            await asyncio.wait_for(task, PATIENCE_SECONDS)

        self._agent.push_async_callback(end)

    async def admit(self) -> None:
        assert self._hub is not None
        file = self.folder / "state" / "credential"
        file.write_text((await self._hub.admit("node")).credential)
        file.chmod(0o600)

    async def close(self) -> None:
        await self._agent.aclose()
        await self._hub_stack.aclose()

    def look(self) -> NodeView | None:
        """See what the hub says now. What is free must be so by the truth of before this step or by that of now."""
        assert self._hub is not None
        self._hub.fleet.tick()
        node = next(iter(self._hub.fleet.nodes()), None)
        if node is None:
            return None
        free = {device.facts.uuid for device in node.devices if device.availability.state == "free"} - {
            WITNESS
        }
        self.looks += 1
        self.offered += len(free)
        assert free <= self.allowed, (free - self.allowed, self.told)
        return node

    async def until(self, is_so: Any, what: str) -> NodeView:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            node = self.look()
            if node is not None and is_so(node):
                return node
            assert time.monotonic() < deadline, (what, self.told, node)
            await asyncio.sleep(0.02)

    def has_seen(self, node: NodeView) -> bool:
        witness = next((device for device in node.devices if device.facts.uuid == WITNESS), None)
        return (
            node.state == "live"
            and witness is not None
            and witness.sample.temperature_celsius == self._marker
        )

    async def settle(self) -> None:
        """Wait for a sample that was begun after this step; from then on only the truth of now counts."""
        first = await self.until(self.has_seen, "a sample of this step")
        # The file may have changed in the middle of that one.
        await self.until(
            lambda node: self.has_seen(node) and node.received_at != first.received_at, "one more sample"
        )
        self.allowed = {card.uuid for card in self.cards if card.may_be_free}
        self.look()

    # -- what happens ------------------------------------------------------------------------------------------

    async def happen(self) -> None:
        chance = self.chance
        card = chance.choice(self.cards)
        what = chance.choice(
            ("use", "use", "hold", "slow", "ecc", "refuse", "refuse", "refuse", "repair", "plug", "xid", "agent", "hub",
             "clock", "probe", "reboot")
        )  # fmt: skip
        self.step += 1
        xids: list[dict[str, Any]] = []
        match what:
            case "use":
                card.has_process = not card.has_process
            case "hold":
                card.memory_bytes = chance.choice((MIB, 300 * MIB, 1536 * MIB, 70 * GIB))
            case "slow":
                card.throttle = chance.choice((0, 1, 4, 8, 72, 136))
            case "ecc":
                card.ecc = chance.choice((0, 1, 7))
            case "refuse":
                function, effects = chance.choice(REFUSALS)
                card.refused[function] = chance.choice(effects)
            case "repair":
                card.refused.clear()
                self._watch_clock.ahead += 50.0
            case "plug":
                card.is_in = not card.is_in
            case "xid":
                if any(each.refused for each in self.cards) or not card.is_in:
                    what = "nothing"
                else:
                    place = [each for each in self.cards if each.is_in].index(card)
                    number = chance.choice(FATAL_XIDS)
                    # Again and again, as only those that happen while somebody listens are told.
                    xids = [{"gpu": place, "at": at / 4, "xid": number} for at in range(4000)]
            case "clock":
                self._clock.ahead_seconds += chance.choice((-86_400.0, -7200.0, -1.5, 3.0, 432_000.0))
            case "probe":
                for pid in self._watch.probe_pids:
                    os.kill(pid, signal.SIGKILL)
            case "reboot":
                self.heal()
        self.told.append(f"{what} {card.index} {card.refused}")
        if what in ("agent", "reboot"):
            await self._agent.aclose()
        if what == "hub":
            await self._hub_stack.aclose()
            await self.start_hub()
        self.play(*xids)
        if what in ("agent", "reboot"):
            await self.start_agent()
        if what == "xid":
            await self.until(
                lambda node: any(
                    device.facts.uuid == card.uuid and device.availability.state == "fault"
                    for device in node.devices
                ),
                "the Xid",
            )
            card.has_fatal_xid = True
            self.play()
        self.allowed |= {each.uuid for each in self.cards if each.may_be_free}
        await self.settle()

    def heal(self) -> None:
        """All is well again, as after a boot with another driver."""
        self._driver += 1
        self._watch_clock.ahead += 50.0
        self.cards = [Card(index) for index in range(CARDS)]

    async def end_well(self) -> None:
        """What is healthy and idle is free again."""
        self.step += 1
        await self._agent.aclose()
        self.heal()
        self.play()
        self.allowed = {card.uuid for card in self.cards}
        await self.start_agent()
        await self.until(
            lambda node: (
                self.has_seen(node)
                and all(device.availability.state == "free" for device in node.devices)
                and len(node.devices) == CARDS + 1
            ),
            "all cards are free again",
        )


@pytest.mark.soak
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed: no simulated NVML")
@pytest.mark.skipif(
    Path("/proc/self/ns/pid").stat().st_ino != 0xEFFFFFFC,
    reason="a container without the host's pids: no agent here may call a card free",
)
def test_free_is_never_wrong_through_probe_agent_and_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = build_library(ROOT / "build" / "sim")
    seeds = [random.SystemRandom().randrange(2**32) for _ in range(SOAK)] if SOAK > 1 else [17]
    looks = offered = 0
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        environment = simulator_environment(library, folder / "scenario.json")
        for name in ("LD_LIBRARY_PATH", "GPUHERD_SIM_SCENARIO"):
            if os.environ.get(name) != environment[name]:
                monkeypatch.setenv(name, environment[name])

        async def tell(story: Story) -> None:
            try:
                story.play()
                await story.start_hub()
                await story.admit()
                await story.start_agent()
                await story.settle()
                for _ in range(STEPS):
                    await story.happen()
                await story.end_well()
            finally:
                await story.close()

        story = Story(folder, random.Random(seed))  # noqa: S311 - a story, not a secret
        try:
            asyncio.run(tell(story))
        except AssertionError as error:
            raise AssertionError(f"story {seed}: {story.told}") from error
        looks, offered = looks + story.looks, offered + story.offered
    with capsys.disabled():
        print(f"\n{len(seeds)} stories of {STEPS} steps, {looks} looks: 0 wrong free, {offered} right ones")  # noqa: T201
    assert offered, "cards that are well are free"
