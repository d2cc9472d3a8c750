"""Real nvidia-ml-py reads back every value of a scenario, and NOT_SUPPORTED where it has none."""

from __future__ import annotations

import random
import re
from ctypes import sizeof
from pathlib import Path
from typing import Any

import msgspec
import pynvml
import pytest

from gpuherd.collect.scenario import (
    MigSlice,
    Noise,
    Ramp,
    Scenario,
    SimulatedGpu,
    SimulatedProcess,
    Sine,
    Square,
    Steps,
    Sum,
    quantised,
    value_at,
)
from gpuherd.collect.scenario.waves import Metric

from .conftest import REPOSITORY, StageFor

NOT_SUPPORTED = "error 3"
NO_INSTANCE = 0xFFFFFFFF

FULL = SimulatedGpu(
    uuid="GPU-00000000-0000-0000-0000-000000000001",
    name="NVIDIA Everything 1",
    serial="1560000000001",
    vbios_version="92.00.45.00.06",
    brand="nvidia_rtx",
    architecture="hopper",
    compute_capability="9.0",
    compute_mode="exclusive_process",
    pci_bus_id="0000F8D6:8A:1E.0",
    pci_device_id=0x233010DE,
    pci_subsystem_id=0x16C110DE,
    minor_number=6,
    persistence_mode=True,
    display_active=False,
    display_mode=True,
    ecc_mode=True,
    mig_mode=False,
    memory_total_bytes=80 * 2**30,
    memory_reserved_bytes=3 * 2**20,
    memory_used_bytes=5 * 2**30,
    bar1_total_bytes=2**30,
    bar1_used_bytes=2**20,
    utilization_gpu_percent=71,
    utilization_memory_percent=33,
    utilization_encoder_percent=12,
    utilization_decoder_percent=13,
    temperature_celsius=64,
    temperature_memory_celsius=75,
    temperature_slowdown_celsius=89,
    temperature_shutdown_celsius=92,
    power_watts=321.4567,
    power_limit_watts=400,
    power_limit_default_watts=350,
    power_limit_min_watts=100,
    power_limit_max_watts=450,
    energy_joules=123456.789,
    fan_percent=47,
    clock_graphics_mhz=1401,
    clock_sm_mhz=1402,
    clock_memory_mhz=1593,
    clock_video_mhz=1275,
    clock_graphics_max_mhz=1411,
    clock_sm_max_mhz=1412,
    clock_memory_max_mhz=1594,
    clock_video_max_mhz=1290,
    performance_state=2,
    throttle_reasons=0x24,
    ecc_corrected_volatile=11,
    ecc_uncorrected_volatile=12,
    ecc_corrected_aggregate=21,
    ecc_uncorrected_aggregate=22,
    remapped_rows_corrected=1,
    remapped_rows_uncorrected=2,
    remapped_rows_pending=True,
    remapped_rows_failed=False,
    pcie_tx_bytes_per_second=7_000,
    pcie_rx_bytes_per_second=9_000,
    pcie_replay_count=4,
    pcie_link_generation=4,
    pcie_link_width=8,
    pcie_link_generation_max=5,
    pcie_link_width_max=16,
    processes=(
        SimulatedProcess(pid=501, memory_used_bytes=2**30, sm_percent=40, memory_percent=20),
        SimulatedProcess(pid=502, type="graphics", sm_percent=5, encoder_percent=7, decoder_percent=8),
        SimulatedProcess(pid=503, type="compute+graphics", memory_used_bytes=4096),
        SimulatedProcess(pid=504, memory_used_bytes=1, alive_from=100),
        SimulatedProcess(pid=505, memory_used_bytes=1, alive_until=10),
    ),
)
SCENARIO = Scenario(
    driver_version="550.54.15",
    cuda_version="12.4",
    nvml_version="12.550.54.15",
    frozen_time=50,
    gpus=(FULL, SimulatedGpu(uuid="GPU-bare", name="Bare")),
)


def test_every_metric_is_read_back(stage: StageFor) -> None:
    report = stage(SCENARIO).read()
    assert (report["driver"], report["nvml"], report["cuda"]) == ("550.54.15", "12.550.54.15", 12040)
    gpu = report["gpus"][0]
    used, reserved, total = 5 * 2**30, 3 * 2**20, 80 * 2**30
    assert gpu == {
        "uuid": FULL.uuid,
        "name": "NVIDIA Everything 1",
        "index": 0,
        "serial": "1560000000001",
        "vbios": "92.00.45.00.06",
        "brand": pynvml.NVML_BRAND_NVIDIA_RTX,
        "architecture": pynvml.NVML_DEVICE_ARCH_HOPPER,
        "capability": [9, 0],
        "compute_mode": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        "pci": {
            "busIdLegacy": "F8D6:8A:1E.0",
            "domain": 0xF8D6,
            "bus": 0x8A,
            "device": 0x1E,
            "pciDeviceId": 0x233010DE,
            "pciSubSystemId": 0x16C110DE,
            "busId": "0000F8D6:8A:1E.0",
        },
        "minor": 6,
        "persistence": 1,
        "display_active": 0,
        "display_mode": 1,
        "ecc_mode": [1, 1],
        "mig_mode": [0, 0],
        "memory": {"total": total, "free": total - used - reserved, "used": used + reserved},
        "memory_v2": {
            "version": pynvml.nvmlMemory_v2,
            "total": total,
            "reserved": reserved,
            "free": total - used - reserved,
            "used": used,
        },
        "bar1": {"bar1Total": 2**30, "bar1Free": 2**30 - 2**20, "bar1Used": 2**20},
        "utilization": {"gpu": 71, "memory": 33},
        "encoder": [12, 167000],
        "decoder": [13, 167000],
        "temperature": 64,
        "temperature_v": 64,
        "slowdown": 89,
        "shutdown": 92,
        "power": 321457,
        "limit": 400_000,
        "limit_default": 350_000,
        "limit_range": [100_000, 450_000],
        "energy": 123_456_789,
        "fan": 47,
        "clocks": [1401, 1402, 1593, 1275],
        "clocks_max": [1411, 1412, 1594, 1290],
        "pstate": 2,
        "throttle": 0x24,
        "events": 0x24,
        "ecc": [[11, 21], [12, 22]],
        "remapped": [1, 2, 1, 0],
        "pcie": [7, 9],
        "replays": 4,
        "link": [4, 8, 5, 16],
        "fields": {
            "memory_temp": 75,
            "energy": 123_456_789,
            "power_instant": 321457,
            "nvlink_count": NOT_SUPPORTED,
        },
        "compute": [[501, 2**30, NO_INSTANCE, NO_INSTANCE], [503, 4096, NO_INSTANCE, NO_INSTANCE]],
        "compute_v3": [[501, 2**30, NO_INSTANCE, NO_INSTANCE], [503, 4096, NO_INSTANCE, NO_INSTANCE]],
        "graphics_v3": [[502, None, NO_INSTANCE, NO_INSTANCE], [503, 4096, NO_INSTANCE, NO_INSTANCE]],
        "process_utilization": [[501, 40, 20, 0, 0], [502, 5, 0, 7, 8]],
        "slices": [],
    }


def test_what_a_scenario_does_not_tell_is_not_supported(stage: StageFor) -> None:
    bare = stage(SCENARIO).read()["gpus"][1]
    told = {"uuid": "GPU-bare", "name": "Bare", "index": 1, "slices": []}
    for key, expected in told.items():
        assert bare.pop(key) == expected
    assert [bare.pop(key) for key in ("compute", "compute_v3", "graphics_v3")] == [[], [], []]
    assert bare.pop("process_utilization") == f"error {pynvml.NVML_ERROR_NOT_FOUND}"

    def leaves(value: Any) -> list[Any]:
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if children is None else [leaf for child in children for leaf in leaves(child)]

    assert set(leaves(bare)) == {NOT_SUPPORTED}


def test_mig_slices_have_their_own_memory_and_processes(stage: StageFor) -> None:
    slices = (
        MigSlice(
            uuid="MIG-a",
            profile="2g.20gb",
            gpu_instance=3,
            compute_instance=0,
            memory_total_bytes=20 * 2**30,
            memory_used_bytes=2**30,
            processes=(SimulatedProcess(pid=601, memory_used_bytes=2**29),),
        ),
        MigSlice(uuid="MIG-b", profile="1c.3g.40gb", gpu_instance=5, compute_instance=1),
    )
    parent = msgspec.structs.replace(
        FULL, mig_mode=True, utilization_gpu_percent=None, mig_slices=slices, processes=()
    )
    gpu = stage(msgspec.structs.replace(SCENARIO, gpus=(parent,))).read()["gpus"][0]
    assert gpu["mig_mode"] == [1, 1]
    assert gpu["utilization"] == NOT_SUPPORTED
    assert gpu["process_utilization"] == NOT_SUPPORTED
    assert gpu["compute_v3"] == [[601, 2**29, 3, 0]]
    first, second = gpu["slices"]
    assert first["uuid"] == "MIG-a"
    assert first["name"] == "NVIDIA Everything 1 MIG 2g.20gb"
    assert (first["is_slice"], first["parent"]) == (True, FULL.uuid)
    assert (first["gpu_instance"], first["compute_instance"], first["gpu_slices"]) == (3, 0, 2)
    assert (first["memory_v2"]["total"], first["memory_v2"]["used"]) == (20 * 2**30, 2**30)
    assert (first["memory_mib"], first["compute_v3"]) == (20 * 1024, [[601, 2**29, 3, 0]])
    assert first["utilization"] == NOT_SUPPORTED
    assert (second["gpu_slices"], second["memory_v2"], second["compute_v3"]) == (3, NOT_SUPPORTED, [])


def _random_metric(draw: random.Random, depth: int = 0) -> Metric:
    mean, amplitude = draw.uniform(-50, 1e5), draw.uniform(0, 1e4)
    period, phase = draw.uniform(0.1, 500), draw.uniform(-2, 2)
    clamps: dict[str, Any] = draw.choice([{}, {"minimum": 10, "maximum": 5e4}])
    kind = draw.randrange(6 if depth < 2 else 5)
    if kind == 0:
        return Sine(mean=mean, amplitude=amplitude, period=period, phase=phase, **clamps)
    if kind == 1:
        return Square(
            low=mean, high=mean + amplitude, period=period, duty=draw.random(), phase=phase, **clamps
        )
    if kind == 2:
        return Noise(mean=mean, amplitude=amplitude, period=period, seed=draw.randrange(2**53), **clamps)
    if kind == 3:
        return Ramp(start=mean, per_second=draw.uniform(-3, 30), **clamps)
    if kind == 4:
        times = sorted(draw.uniform(-50, 300) for _ in range(draw.randint(1, 6)))
        steps = tuple((time, draw.choice([None, draw.uniform(0, 1e5)])) for time in times)
        return Steps(steps=steps, repeat=draw.choice([0.0, 17.5]), **clamps)
    parts = tuple(_random_metric(draw, depth + 1) for _ in range(draw.randint(1, 4)))
    return Sum(parts=parts, **clamps)


@pytest.mark.parametrize("t", [0.0, 0.125, 61.7, 12_345.678, -3.3])
def test_python_and_c_compute_the_same_waves(stage: StageFor, t: float) -> None:
    draw = random.Random(f"waves {t}")  # noqa: S311 - not a secret
    metrics = [_random_metric(draw) for _ in range(60)]
    gpus = tuple(
        SimulatedGpu(uuid=f"GPU-{i}", name="wave", power_watts=metric, energy_joules=metric)
        for i, metric in enumerate(metrics)
    )
    report = stage(Scenario(driver_version="1.0", frozen_time=t, gpus=gpus)).read()
    expected = []
    for metric in metrics:
        value = value_at(metric, t)
        expected.append(
            [NOT_SUPPORTED] * 2
            if value is None
            else [quantised(value * 1000, 2**32 - 2), quantised(value * 1000)]
        )
    assert [[gpu["power"], gpu["energy"]] for gpu in report["gpus"]] == expected


def test_struct_sizes_equal_those_of_nvidia_ml_py() -> None:
    header = Path(REPOSITORY / "sim" / "nvml_abi.h").read_text()
    declared = {name: int(size) for name, size in re.findall(r"sizeof\((\w+)\) == (\d+)", header)}
    bindings = {
        "nvmlMemory_t": pynvml.c_nvmlMemory_t,
        "nvmlMemory_v2_t": pynvml.c_nvmlMemory_v2_t,
        "nvmlBAR1Memory_t": pynvml.c_nvmlBAR1Memory_t,
        "nvmlUtilization_t": pynvml.c_nvmlUtilization_t,
        "nvmlPciInfo_t": pynvml.nvmlPciInfo_t,
        "nvmlProcessInfo_t": pynvml.c_nvmlProcessInfo_v2_t,
        "nvmlProcessDetail_v1_t": pynvml.c_nvmlProcessDetail_v1_t,
        "nvmlProcessDetailList_v1_t": pynvml.c_nvmlProcessDetailList_v1_t,
        "nvmlProcessUtilizationSample_t": pynvml.c_nvmlProcessUtilizationSample_t,
        "nvmlProcessUtilizationInfo_v1_t": pynvml.c_nvmlProcessUtilizationInfo_v1_t,
        "nvmlProcessesUtilizationInfo_v1_t": pynvml.c_nvmlProcessesUtilizationInfo_v1_t,
        "nvmlFieldValue_t": pynvml.c_nvmlFieldValue_t,
        "nvmlTemperature_v1_t": pynvml.c_nvmlTemperature_v1_t,
        "nvmlEventData_t": pynvml.c_nvmlEventData_t,
        "nvmlDeviceAttributes_t": pynvml.c_nvmlDeviceAttributes,
        "nvmlConfComputeMemSizeInfo_t": pynvml.c_nvmlConfComputeMemSizeInfo_t,
    }
    historical = {"nvmlProcessInfo_v1_t": 16}  # nvidia-ml-py no longer declares it; nvitop does
    assert declared == {name: sizeof(binding) for name, binding in bindings.items()} | historical
