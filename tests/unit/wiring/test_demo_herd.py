"""The demo herd is the same every time, believable, and holds one of each trouble."""

from __future__ import annotations

import asyncio

import pytest

from gpuherd.agent.numbering import Numbering
from gpuherd.collect.scenario import dump_scenario, parse_scenario
from gpuherd.fleet.fleet import Fleet
from gpuherd.wire.codec import agent_decoder
from gpuherd.wire.frames import FactsFrame, Hello, SampleFrame, TableFrame
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wiring.demo_herd import DemoNode, demo_herd
from gpuherd.wiring.simulated_node import SimulatedNode
from support.herd import ManualClock


def by_name(herd: tuple[DemoNode, ...]) -> dict[str, DemoNode]:
    return {node.name: node for node in herd}


def test_the_same_seed_gives_the_same_herd() -> None:
    assert demo_herd(24, seed=3, epoch=0.0) == demo_herd(24, seed=3, epoch=0.0)
    assert demo_herd(24, seed=3, epoch=0.0) != demo_herd(24, seed=4, epoch=0.0)


@pytest.mark.parametrize("nodes", [1, 2, 7, 8, 24, 50, 1000])
def test_any_number_of_nodes_with_names_of_their_own(nodes: int) -> None:
    assert len(by_name(demo_herd(nodes, epoch=0.0))) == nodes


def test_every_scenario_can_be_written_and_read_back() -> None:
    for node in demo_herd(24, epoch=0.0):
        assert parse_scenario(dump_scenario(node.scenario), node.name) == node.scenario


def test_users_are_plainly_simulated() -> None:
    users = {
        process.user
        for node in demo_herd(24, epoch=0.0)
        for gpu in node.scenario.gpus
        for process in gpu.processes
    }
    assert len(users) > 5
    assert all(user is not None and user.startswith("user") and user[4:].isdigit() for user in users)


def test_one_of_each_trouble() -> None:
    herd = by_name(demo_herd(24, epoch=1000.0))
    now = 1100.0

    async def problems(name: str) -> tuple[list[str], int]:
        node = SimulatedNode(herd[name].scenario, clock=lambda: now)
        reading = await node.read()
        return [problem.code for problem in reading.sample.problems], len(node.devices)

    assert asyncio.run(problems("l40s-01")) == (["gpu_lost"], 4)
    assert asyncio.run(problems("h100-01")) == ([], 8)
    assert asyncio.run(problems("a100-01")) == ([], 8 + 14)
    assert herd["v100-01"].reports == 4
    held = {process.user for gpu in herd["h100-06"].scenario.gpus for process in gpu.processes}
    assert held == {"user17"}


def test_a_hung_driver_is_told_and_its_gpus_stay_listed() -> None:
    scenario = by_name(demo_herd(24, epoch=1000.0))["rtx-04"].scenario
    now = [1001.0]

    async def play() -> tuple[int, list[str], int]:
        node = SimulatedNode(scenario, clock=lambda: now[0])
        await node.read()
        now[0] = 1100.0
        reading = await node.read()
        return (
            len(node.devices),
            [problem.code for problem in reading.sample.problems],
            len(reading.sample.host),
        )

    devices, codes, host_bytes = asyncio.run(play())
    assert (devices, codes) == (4, ["driver_hung"])
    assert host_bytes > 0


def test_a_card_that_fails_before_the_first_report_has_a_name() -> None:
    scenario = by_name(demo_herd(24, epoch=1000.0))["l40s-01"].scenario
    now = [1001.0]

    async def play() -> set[str]:
        node = SimulatedNode(scenario, clock=lambda: now[0])
        now[0] = 1100.0
        reading = await node.read()
        assert [problem.code for problem in reading.sample.problems] == ["gpu_lost"]
        return {device.name for device in node.devices}

    assert asyncio.run(play()) == {"NVIDIA L40S"}


def test_a_hung_driver_has_its_gpus_also_when_it_hangs_from_the_start() -> None:
    scenario = by_name(demo_herd(24, epoch=1000.0))["rtx-04"].scenario

    async def play() -> int:
        node = SimulatedNode(scenario, clock=lambda: 5000.0)
        await node.read()
        return len(node.devices)

    assert asyncio.run(play()) == 4


def test_pulled_braked_and_hung_cards_read_right_at_a_glance() -> None:
    """What the demo's hub says of them, from the simulated driver to the totals."""
    herd = by_name(demo_herd(24, epoch=1000.0))
    (name,) = (node.name for node in herd.values() if node.pulled is not None)
    clock = ManualClock()
    fleet = Fleet(clock=clock)
    shown, decoder = {}, agent_decoder()

    async def play() -> None:
        for node in (herd[name], herd["rtx-04"]):
            fleet.add_node(node.name, node.name)
            driver = SimulatedNode(node.scenario, clock=lambda: 1100.0 + clock.now, pulled=node.pulled)
            hello = Hello(boot_id="b", layout=LAYOUT, time=clock.wall(), interval_seconds=60.0)
            run, numbering = fleet.open_run(node.name, hello), Numbering()
            for _ in range(8):
                clock.advance(1.0)
                for entry in numbering.entries(await driver.read()):
                    frame = decoder.decode(entry.message)
                    assert isinstance(frame, FactsFrame | TableFrame | SampleFrame)
                    run.accept(frame, entry.message)
                fleet.tick()
            view = fleet.node(node.name)
            assert view is not None
            shown[node.name] = view

    asyncio.run(play())
    trouble = {
        device.facts.index: device.availability.reason.partition(":")[0].partition(" since")[0]
        for device in shown[name].devices
        if device.availability.state == "fault"
    }
    assert trouble == {1: "power brake", 5: "missing"}
    assert len(shown[name].devices) == 8
    assert shown[name].problems[0].message.startswith("1 GPU missing since ")
    assert {device.availability.state for device in shown["rtx-04"].devices} == {"fault"}
    assert len(shown["rtx-04"].devices) == 4
    assert fleet.totals().devices["fault"] == 2 + 4
