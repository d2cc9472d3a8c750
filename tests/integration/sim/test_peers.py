"""Real gpustat and real nvitop see the simulated cards as they would see real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from sim.build import SCENARIOS

from gpuherd.collect.scenario import (
    Scenario,
    SimulatedGpu,
    SimulatedProcess,
    load_scenario,
    quantised,
    value_at,
)
from gpuherd.collect.scenario.waves import Metric
from gpuherd.collect.smi_xml_scenario import scenario_from_smi_xml

from .conftest import REPOSITORY, Stage, StageFor

FIXTURES = Path(os.environ.get("GPUHERD_FIXTURES", REPOSITORY.parent / "shared" / "fixtures"))
RECORDINGS = sorted(FIXTURES.rglob("*.xml"))
T = 30.0
MIB = 2**20
HIGHEST_PID = 2**22
"""That Linux can be set to, on any machine."""


def frozen(name: str) -> Scenario:
    return msgspec.structs.replace(load_scenario(SCENARIOS / f"{name}.json"), frozen_time=T)


def at(metric: Metric, times: int = 1) -> int | None:
    value = value_at(metric, T)
    return None if value is None else quantised(value * times)


def expected_by_gpustat(gpu: SimulatedGpu, index: int, *, counts_reserved: bool = False) -> dict[str, Any]:
    used, total = at(gpu.memory_used_bytes), at(gpu.memory_total_bytes)
    if used is not None and counts_reserved:
        used += at(gpu.memory_reserved_bytes) or 0
    power, limit = at(gpu.power_watts, 1000), at(gpu.power_limit_watts, 1000)
    utilization = at(gpu.utilization_gpu_percent), at(gpu.utilization_memory_percent)
    return {
        "index": index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "temperature.gpu": at(gpu.temperature_celsius),
        "fan.speed": at(gpu.fan_percent),
        "utilization.gpu": None if None in utilization else utilization[0],
        "utilization.enc": at(gpu.utilization_encoder_percent),
        "utilization.dec": at(gpu.utilization_decoder_percent),
        "power.draw": None if power is None else power // 1000,
        "enforced.power.limit": None if limit is None else limit // 1000,
        "memory.used": None if used is None else used // MIB,
        "memory.total": None if total is None else total // MIB,
        "processes": [],  # gpustat drops pids that the operating system does not know
    }


def with_dead_pids(scenario: Scenario) -> Scenario:
    """Number the processes beyond the kernel's highest pid: no process of this machine can be taken for one of them."""
    return msgspec.structs.replace(
        scenario,
        gpus=tuple(
            msgspec.structs.replace(
                gpu,
                processes=tuple(
                    msgspec.structs.replace(process, pid=HIGHEST_PID + process.pid)
                    for process in gpu.processes
                ),
            )
            for gpu in scenario.gpus
        ),
    )


def gpustat(stage: Stage) -> Any:
    return stage.json(stage.tool("gpustat"), "--json")


@pytest.mark.parametrize("name", ["healthy", "mixed", "mig", "nothing_supported", "unified_memory"])
def test_gpustat(stage: StageFor, name: str) -> None:
    scenario = with_dead_pids(frozen(name))
    report = gpustat(stage(scenario))
    assert report["driver_version"] == scenario.driver_version
    assert report["gpus"] == [expected_by_gpustat(gpu, index) for index, gpu in enumerate(scenario.gpus)]


def test_gpustat_on_an_old_driver(stage: StageFor, old_library: Path) -> None:
    scenario = with_dead_pids(frozen("old_driver"))
    report = gpustat(stage(scenario, using=old_library))
    assert report["gpus"] == [
        expected_by_gpustat(gpu, index, counts_reserved=True) for index, gpu in enumerate(scenario.gpus)
    ]


def test_gpustat_names_the_owner_of_a_real_process(stage: StageFor) -> None:
    own = SimulatedProcess(pid=os.getpid(), memory_used_bytes=77 * MIB)
    gpu = SimulatedGpu(uuid="GPU-own", name="Own", processes=(own,))
    (process,) = gpustat(stage(Scenario(driver_version="1.0", gpus=(gpu,))))["gpus"][0]["processes"]
    assert process["pid"] == os.getpid()
    assert process["gpu_memory_usage"] == 77
    assert process["username"] == psutil.Process().username()


def test_gpustat_shows_a_lost_gpu(stage: StageFor) -> None:
    report = gpustat(stage(frozen("lost_gpu")))
    assert [gpu["name"] == "((GPU is lost))" for gpu in report["gpus"]] == [False, False, True, False]


def test_gpustat_gives_up_when_a_reset_is_required(stage: StageFor) -> None:
    """Not what we want of a monitor, but what it really does: the simulated error is the real one to it."""
    play = stage(frozen("reset_required"))
    done = play.run(play.tool("gpustat"), "--json")
    assert done.returncode == 1
    assert "GPU requires restart" in done.stderr + done.stdout


NVITOP = """
import json
from nvitop import Device, NA
def plain(value):
    return None if value is NA else value
def describe(device):
    return {
        "name": plain(device.name()), "uuid": plain(device.uuid()), "bus_id": plain(device.bus_id()),
        "memory_total": plain(device.memory_total()), "memory_used": plain(device.memory_used()),
        "gpu": plain(device.gpu_utilization()), "temperature": plain(device.temperature()),
        "power": plain(device.power_usage()), "fan": plain(device.fan_speed()), "sm": plain(device.sm_clock()),
        "mig": plain(device.mig_mode()) if not device.is_mig_device() else None,
        "processes": {pid: [p.type, plain(p.gpu_memory()), plain(p.gpu_sm_utilization())]
                      for pid, p in device.processes().items()},
        "slices": [describe(d) for d in device.mig_devices()] if not device.is_mig_device() else [],
    }
print(json.dumps([describe(d) for d in Device.all()]))
"""


def nvitop(stage: Stage) -> Any:
    done = stage.python(NVITOP)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nvitop_on_healthy_cards(stage: StageFor) -> None:
    scenario = frozen("healthy")
    devices = nvitop(stage(scenario))
    assert len(devices) == 8
    for device, gpu in zip(devices, scenario.gpus, strict=True):
        assert device == {
            "name": gpu.name,
            "uuid": gpu.uuid,
            "bus_id": gpu.pci_bus_id,
            "memory_total": at(gpu.memory_total_bytes),
            "memory_used": at(gpu.memory_used_bytes),
            "gpu": at(gpu.utilization_gpu_percent),
            "temperature": at(gpu.temperature_celsius),
            "power": at(gpu.power_watts, 1000),
            "fan": None,
            "sm": at(gpu.clock_sm_mhz),
            "mig": "Disabled",
            "processes": {
                str(p.pid): ["C", at(p.memory_used_bytes), at(p.sm_percent)] for p in gpu.processes
            },
            "slices": [],
        }


def test_nvitop_sees_slices_and_their_processes(stage: StageFor) -> None:
    scenario = frozen("mig")
    devices = nvitop(stage(scenario))
    assert [device["mig"] for device in devices] == ["Enabled", "Enabled", "Disabled"]
    assert [len(device["slices"]) for device in devices] == [4, 7, 0]
    for device, gpu in zip(devices, scenario.gpus, strict=True):
        for found, wanted in zip(device["slices"], gpu.mig_slices, strict=True):
            assert found["name"] == f"{gpu.name} MIG {wanted.profile}"
            assert found["uuid"] == wanted.uuid
            assert found["memory_used"] == at(wanted.memory_used_bytes)
            assert {int(pid) for pid in found["processes"]} == {p.pid for p in wanted.processes}


def test_nvitop_without_metrics(stage: StageFor) -> None:
    first, second = nvitop(stage(frozen("nothing_supported")))
    for key in ("bus_id", "gpu", "temperature", "power", "fan", "sm", "mig"):
        assert first[key] is None
        assert second[key] is None
    assert first["memory_used"] == 100 * MIB
    assert first["processes"] == {"92001": ["C", None, None]}


def test_nvitop_on_an_old_driver(stage: StageFor, old_library: Path) -> None:
    first, second = nvitop(stage(frozen("old_driver"), using=old_library))
    assert first["processes"] == {"81001": ["C", 8000 * MIB, 88]}
    assert second["processes"] == {}


@pytest.mark.parametrize("name", ["healthy", "mixed", "mig", "nothing_supported", "unified_memory"])
def test_nvitop_draws_its_screen(stage: StageFor, name: str) -> None:
    play = stage(frozen(name))
    done = play.run(play.tool("nvitop"), "--once", "--no-unicode")
    assert done.returncode == 0, done.stderr
    assert frozen(name).driver_version in done.stdout
    assert "FunctionNotFound" not in done.stderr


@pytest.mark.skipif(not RECORDINGS, reason=f"no recorded nvidia-smi -q -x output under {FIXTURES}")
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_gpustat_shows_the_values_of_a_recorded_card(stage: StageFor, recording: Path) -> None:
    scenario = with_dead_pids(scenario_from_smi_xml(recording.read_bytes(), str(recording)))
    assert scenario.gpus
    report = gpustat(stage(scenario))
    assert report["gpus"] == [expected_by_gpustat(gpu, index) for index, gpu in enumerate(scenario.gpus)]
    assert nvitop(stage(scenario))[0]["uuid"] == scenario.gpus[0].uuid
