"""The real NVML collector in probes, on the simulated library, when the driver misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim.build import COMPILER, SCENARIOS, build_library, simulator_environment

from gpuherd.agent.probe_process import PROMPT_SECONDS
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.watch import ProbeWatch
from gpuherd.agent.xid_memory import XidMemory
from gpuherd.model.reports import Report
from gpuherd.wiring.catalog import probe_spec
from support.running import PATIENCE_SECONDS
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

    def change(*faults: dict[str, Any], **more: Any) -> None:
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({**scenario, "faults": faults, **more}))
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


@pytest.mark.parametrize(
    "fault",
    [
        {"function": "nvmlDeviceGet*", "gpu": 3, "effect": "crash"},
        {"function": "nvmlDeviceGet*", "gpu": 3, "effect": "hang"},
        {"function": "nvmlDeviceGetTemperature", "gpu": 2, "effect": 1},
    ],
    ids=["neighbour crashes", "neighbour hangs", "driver reopened"],
)
def test_an_xid_survives_a_neighbour_a_new_probe_and_a_new_agent(
    play: Play, nvml_spec: ProbeSpec, tmp_path: Path, fault: dict[str, Any]
) -> None:
    epoch = int(time.time())  # energy counters go on when a probe loads the library again

    async def main() -> None:
        play(epoch=epoch)
        # Long enough for a probe that has to wait for the CPU; a hang of one GPU is noticed sooner.
        patient = {"deadline_seconds": PATIENCE_SECONDS}
        async with node_of(nvml_spec, XidMemory(tmp_path / "xids"), **patient) as node:
            await node.report()
            # Again and again, as only those that happen while somebody listens are told.
            play(epoch=epoch, xids=[{"gpu": 1, "at": second / 4, "xid": 79} for second in range(2000)])
            before = await node.report_when(lambda report: problem(report, "xid") is not None)
            xid = problem(before, "xid")
            assert xid is not None
            assert (xid.device_uuid, xid.is_fault, xid.xid) == (before.facts.devices[1].uuid, True, 79)
            play(fault, epoch=epoch)
            later = await node.report_when(
                lambda report: any(p.code != "xid" for p in report.sample.problems)
            )
            kept = problem(later, "xid")
            assert kept is not None
            assert (kept.device_uuid, kept.is_fault, kept.xid) == (xid.device_uuid, True, 79)
            play(epoch=epoch)
            node.clock.ahead += 31.0
            healed = await node.report_when(lambda report: len(read_gpus(report)) == GPU_COUNT)
            assert healed.sample.problems == (kept,), "the neighbour is back, the Xid is still there"
        async with node_of(nvml_spec, XidMemory(tmp_path / "xids"), **patient) as node:
            assert problem(await node.report(), "xid") == kept, "the same event, since the same time"

    asyncio.run(main())


def test_a_gpu_lost_before_a_new_probe_keeps_its_name(play: Play, nvml_spec: ProbeSpec) -> None:
    async def main() -> None:
        async with node_of(nvml_spec) as node:
            known = (await node.report()).facts.devices
        play({"function": "nvmlDeviceGet*", "gpu": 2, "effect": 15})
        async with node_of(nvml_spec, devices=known) as node:
            report = await node.report()
            assert [device.uuid for device in report.facts.devices] == [device.uuid for device in known]
            assert [(p.code, p.device_uuid) for p in report.sample.problems] == [("gpu_lost", known[2].uuid)]

    asyncio.run(main())


def test_a_hang_on_one_gpu_is_noticed_long_before_the_deadline(play: Play, nvml_spec: ProbeSpec) -> None:
    """A probe that answered before and waits in a call about one GPU is not waited for until the deadline."""

    async def main() -> None:
        watch = ProbeWatch(nvml_spec, deadline_seconds=3600)
        try:
            assert await watch.read() is not None
            play({"function": "nvmlDeviceGetTemperature", "gpu": 1, "effect": "hang"})
            until = time.monotonic() + PATIENCE_SECONDS
            while not len(watch.quarantine):
                reading = await asyncio.wait_for(watch.read(), PATIENCE_SECONDS)
                assert time.monotonic() < until
            assert [(ban.device, ban.code) for ban in watch.quarantine] == [(1, "driver_hung")]
            assert reading is not None, "the report that says so has the other GPUs"
            assert [p.code for p in reading.sample.problems] == ["driver_hung"]
            assert len(watch.probe_pids) == 1
        finally:
            await watch.stop()

    asyncio.run(main())


def test_slow_opening_is_not_hung(play: Play, nvml_spec: ProbeSpec) -> None:
    """The first reading may wait as long as the deadline allows: drivers take seconds to initialise a GPU."""

    async def main() -> None:
        slow = [{"function": "nvmlDeviceGetTemperature", "gpu": 1, "seconds": PROMPT_SECONDS + 0.5}]
        play(latencies=slow)
        watch = ProbeWatch(nvml_spec, deadline_seconds=3600)
        try:
            reading = await watch.read()
            assert reading is not None
            assert [p.code for p in reading.sample.problems] == []
            assert len(watch.quarantine) == 0
        finally:
            await watch.stop()

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
