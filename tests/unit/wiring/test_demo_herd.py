"""The demo herd is the same every time, believable, and holds one of each trouble."""

from __future__ import annotations

import asyncio

import pytest

from gpuherd.collect.scenario import dump_scenario, parse_scenario
from gpuherd.wiring.demo_herd import DemoNode, demo_herd
from gpuherd.wiring.simulated_node import SimulatedNode


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
