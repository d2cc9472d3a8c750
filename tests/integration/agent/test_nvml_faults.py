"""The real NVML collector in probes, on the simulated library, when the driver misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.reports import Report
from gpuherd.wiring.catalog import probe_spec
from support.watched_node import node_of, problem, temperatures

GPU_COUNT = 4
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Four A100s; ``play({"function": …, "effect": …})`` puts a fault in place, ``play()`` takes it away."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: the simulated libnvidia-ml.so.1 cannot be compiled")
    library = build_library(Path(__file__).parents[3] / "build" / "sim")
    scenario = json.loads((SCENARIOS / "hung_gpu.json").read_bytes())
    file = tmp_path / "scenario.json"

    def change(*faults: dict[str, Any]) -> None:
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({**scenario, "faults": faults}))
        fresh.replace(file)

    change()
    for name, value in simulator_environment(library, file).items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    return change


@pytest.fixture
def nvml_spec() -> ProbeSpec:
    return probe_spec(AgentSettings(collectors=("nvml",)))


def is_well(report: Report) -> bool:
    return len(report.facts.devices) == GPU_COUNT and not report.sample.problems


def read_gpus(report: Report) -> list[int]:
    return [index for index, value in enumerate(temperatures(report).values()) if value is not None]


@pytest.mark.parametrize(
    ("effect", "code"),
    [("hang", "driver_hung"), ("hang_locked", "driver_hung"), ("crash", "driver_crashed")],
)
def test_one_gpu_takes_its_probe_down_and_the_others_stay_live(
    play: Play, nvml_spec: ProbeSpec, effect: str, code: str
) -> None:
    async def main() -> None:
        async with node_of(nvml_spec) as node:
            before = await node.report()
            assert is_well(before)
            play({"function": "nvmlDeviceGet*", "gpu": 1, "effect": effect})
            report = await node.report_when(lambda report: read_gpus(report) == [0, 2, 3])
            assert report.facts == before.facts, "nothing moved in the list"
            found = problem(report, code)
            assert found is not None
            assert found.device_uuid == before.facts.devices[1].uuid
            assert "on GPU 1" in found.message
            for _ in range(3):
                assert read_gpus(await node.report()) == [0, 2, 3]
            play()
            node.clock.ahead += 31.0
            await node.report_when(is_well)

    asyncio.run(main())


def test_a_driver_that_hangs_as_a_whole(play: Play, nvml_spec: ProbeSpec) -> None:
    async def main() -> None:
        async with node_of(nvml_spec) as node:
            assert is_well(await node.report())
            play({"function": "*", "effect": "hang_locked"})
            report = await node.report_when(
                lambda report: any(
                    found.code == "driver_hung" and found.device_uuid is None and found.is_fault
                    for found in report.sample.problems
                )
            )
            assert read_gpus(report) == []
            assert len(report.facts.devices) == GPU_COUNT
            assert report.sample.host.memory_used_bytes is not None, "the host is still read"
            play()
            node.clock.ahead += 31.0
            await node.report_when(is_well)

    asyncio.run(main())


def test_a_driver_upgraded_under_the_agent(play: Play, nvml_spec: ProbeSpec) -> None:
    """Calls fail with the mismatch until library and kernel module fit again; then all is well by itself."""

    async def main() -> None:
        async with node_of(nvml_spec) as node:
            assert is_well(await node.report())
            play({"function": "*", "effect": 18})
            report = await node.report_when(lambda report: problem(report, "driver_mismatch") is not None)
            assert read_gpus(report) == []
            assert len(report.facts.devices) == GPU_COUNT
            found = problem(report, "driver_mismatch")
            assert found is not None
            assert found.is_fault
            play()
            node.clock.ahead += 31.0
            await node.report_when(is_well)

    asyncio.run(main())


def test_a_lost_gpu_is_no_reason_for_a_new_probe(play: Play, nvml_spec: ProbeSpec) -> None:
    async def main() -> None:
        async with node_of(nvml_spec) as node:
            await node.report()
            pids = node.watch.probe_pids
            play({"function": "nvmlDeviceGet*", "gpu": 2, "effect": 15})
            report = await node.report_when(lambda report: read_gpus(report) == [0, 1, 3])
            assert problem(report, "gpu_lost") is not None
            assert node.watch.probe_pids == pids

    asyncio.run(main())
