"""The simulated collector reports what the NVML collector reads from the C library with the same scenario."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sim.build import SCENARIOS

from gpuherd.collect.reading import CollectorUnavailable, GpuReading
from gpuherd.collect.scenario import Fault, Scenario, load_scenario
from gpuherd.collect.simulated import SimulatedCollector
from gpuherd.collect.smi_xml_scenario import scenario_from_smi_xml

from .conftest import REPOSITORY, StageFor

FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", REPOSITORY.parent / "shared" / "fixtures"))
RECORDINGS = sorted(FIXTURES.rglob("*.xml"))
HOST_MEMORY = (64 * 2**30, 8 * 2**30)
HANG_OR_SLOW = {"hung_driver", "hung_gpu", "crash", "sleeping"}

NVML = f"""
import sys, msgspec
from gpuherd.collect.nvml import NvmlCollector
from gpuherd.collect.reading import CollectorUnavailable
collector = NvmlCollector(pcie_throughput=True, host_memory=lambda: {HOST_MEMORY})
try:
    collector.open()
    collector.read()
    print(msgspec.json.encode(collector.read()).decode())
except CollectorUnavailable as error:
    print(msgspec.json.encode(error.code).decode())
"""


def by_nvml(stage: StageFor, scenario: Scenario) -> GpuReading | str:
    done = stage(scenario).python(NVML)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=GpuReading | str)


def by_simulation(scenario: Scenario) -> GpuReading | str:
    collector = SimulatedCollector(scenario, pcie_throughput=True, host_memory=lambda: HOST_MEMORY)
    try:
        collector.open()
    except CollectorUnavailable as error:
        return error.code
    collector.read()
    return collector.read()


def comparable(reading: GpuReading | str) -> Any:
    """Without what must differ: the vendor, the words of problems, and who a fake process is."""
    if isinstance(reading, str):
        return reading
    return {
        "devices": [msgspec.structs.replace(facts, vendor="") for facts in reading.devices],
        "samples": list(reading.samples),
        "uses": sorted(
            (use.device, use.pid, use.kind, use.gpu_memory_bytes, use.utilization_sm) for use in reading.uses
        ),
        "problems": sorted(
            (problem.code, problem.device_uuid or "", problem.is_fault) for problem in reading.problems
        ),
        "versions": (reading.driver_version, reading.cuda_version),
    }


@pytest.mark.parametrize("t", [0.0, 33.3])
@pytest.mark.parametrize(
    "name", [path.stem for path in sorted(SCENARIOS.glob("*.json")) if path.stem not in HANG_OR_SLOW]
)
def test_ready_scenarios(stage: StageFor, name: str, t: float) -> None:
    scenario = msgspec.structs.replace(load_scenario(SCENARIOS / f"{name}.json"), frozen_time=t)
    assert comparable(by_simulation(scenario)) == comparable(by_nvml(stage, scenario))


@pytest.mark.skipif(not RECORDINGS, reason=f"no recorded nvidia-smi -q -x output under {FIXTURES}")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_recorded_cards(stage: StageFor, recording: Path) -> None:
    scenario = scenario_from_smi_xml(recording.read_bytes(), str(recording))
    assert comparable(by_simulation(scenario)) == comparable(by_nvml(stage, scenario))


@pytest.mark.parametrize("effect", [3, 4, 15, 16, 999])
@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo*",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGet*RunningProcesses*",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetUUID",
        "nvmlDevice*",
    ],
)
def test_errors_of_one_function(stage: StageFor, function: str, effect: int) -> None:
    fault = Fault(function=function, gpu=0, effect=effect)
    scenario = msgspec.structs.replace(
        load_scenario(SCENARIOS / "mixed.json"), frozen_time=7.7, faults=(fault,)
    )
    assert comparable(by_simulation(scenario)) == comparable(by_nvml(stage, scenario))
