"""Prints what nvidia-ml-py reads of every device as JSON; an NVML error becomes ``"error <number>"``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pynvml as nvml

CLOCKS = ("graphics", "sm", "memory", "video")


def ask(function: Callable[..., Any], *arguments: object) -> Any:
    try:
        answer = function(*arguments)
    except nvml.NVMLError as error:
        return f"error {error.value}"
    if isinstance(answer, bytes):
        return answer.decode()
    if hasattr(answer, "_fields_"):
        fields = {field[0]: getattr(answer, field[0]) for field in answer._fields_}
        return {key: value.decode() if isinstance(value, bytes) else value for key, value in fields.items()}
    return answer


def processes(function: Callable[..., Any], handle: object) -> Any:
    found = ask(function, handle)
    if isinstance(found, str):
        return found
    return [[p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId] for p in found]


def utilization(handle: object) -> Any:
    samples = ask(nvml.nvmlDeviceGetProcessUtilization, handle, 0)
    if isinstance(samples, str):
        return samples
    return [[s.pid, s.smUtil, s.memUtil, s.encUtil, s.decUtil] for s in samples]


def field_values(handle: object) -> dict[str, Any]:
    ids = {"memory_temp": 82, "energy": 83, "power_instant": 186, "nvlink_count": 91}
    values = nvml.nvmlDeviceGetFieldValues(handle, list(ids.values()))
    return {
        name: value.value.ullVal if value.nvmlReturn == 0 else f"error {value.nvmlReturn}"
        for name, value in zip(ids, values, strict=True)
    }


def device(handle: object) -> dict[str, Any]:
    return {
        "uuid": ask(nvml.nvmlDeviceGetUUID, handle),
        "name": ask(nvml.nvmlDeviceGetName, handle),
        "memory": ask(nvml.nvmlDeviceGetMemoryInfo, handle),
        "memory_v2": ask(nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2),
        "bar1": ask(nvml.nvmlDeviceGetBAR1MemoryInfo, handle),
        "compute": processes(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle),
        "compute_v3": processes(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle),
        "graphics_v3": processes(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, handle),
        "utilization": ask(nvml.nvmlDeviceGetUtilizationRates, handle),
    }


def gpu(handle: Any) -> dict[str, Any]:
    slices = []
    for index in range(ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle)):
        found = ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if not isinstance(found, str):
            slices.append(mig_slice(found))
    return {
        **device(handle),
        "slices": slices,
        "index": ask(nvml.nvmlDeviceGetIndex, handle),
        "serial": ask(nvml.nvmlDeviceGetSerial, handle),
        "vbios": ask(nvml.nvmlDeviceGetVbiosVersion, handle),
        "brand": ask(nvml.nvmlDeviceGetBrand, handle),
        "architecture": ask(nvml.nvmlDeviceGetArchitecture, handle),
        "capability": ask(nvml.nvmlDeviceGetCudaComputeCapability, handle),
        "compute_mode": ask(nvml.nvmlDeviceGetComputeMode, handle),
        "pci": ask(nvml.nvmlDeviceGetPciInfo, handle),
        "minor": ask(nvml.nvmlDeviceGetMinorNumber, handle),
        "persistence": ask(nvml.nvmlDeviceGetPersistenceMode, handle),
        "display_active": ask(nvml.nvmlDeviceGetDisplayActive, handle),
        "display_mode": ask(nvml.nvmlDeviceGetDisplayMode, handle),
        "ecc_mode": ask(nvml.nvmlDeviceGetEccMode, handle),
        "mig_mode": ask(nvml.nvmlDeviceGetMigMode, handle),
        "encoder": ask(nvml.nvmlDeviceGetEncoderUtilization, handle),
        "decoder": ask(nvml.nvmlDeviceGetDecoderUtilization, handle),
        "temperature": ask(nvml.nvmlDeviceGetTemperature, handle, 0),
        "temperature_v": ask(nvml.nvmlDeviceGetTemperatureV, handle, 0),
        "shutdown": ask(nvml.nvmlDeviceGetTemperatureThreshold, handle, 0),
        "slowdown": ask(nvml.nvmlDeviceGetTemperatureThreshold, handle, 1),
        "power": ask(nvml.nvmlDeviceGetPowerUsage, handle),
        "limit": ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle),
        "limit_default": ask(nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle),
        "limit_range": ask(nvml.nvmlDeviceGetPowerManagementLimitConstraints, handle),
        "energy": ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle),
        "fan": ask(nvml.nvmlDeviceGetFanSpeed, handle),
        "clocks": [ask(nvml.nvmlDeviceGetClockInfo, handle, kind) for kind in range(4)],
        "clocks_max": [ask(nvml.nvmlDeviceGetMaxClockInfo, handle, kind) for kind in range(4)],
        "pstate": ask(nvml.nvmlDeviceGetPerformanceState, handle),
        "throttle": ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        "events": ask(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle),
        "ecc": [
            [ask(nvml.nvmlDeviceGetTotalEccErrors, handle, kind, counter) for counter in (0, 1)]
            for kind in (0, 1)
        ],
        "remapped": ask(nvml.nvmlDeviceGetRemappedRows, handle),
        "pcie": [ask(nvml.nvmlDeviceGetPcieThroughput, handle, counter) for counter in (0, 1)],
        "replays": ask(nvml.nvmlDeviceGetPcieReplayCounter, handle),
        "link": [
            ask(nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            ask(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
            ask(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
            ask(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        ],
        "fields": field_values(handle),
        "process_utilization": utilization(handle),
    }


def mig_slice(handle: Any) -> dict[str, Any]:
    parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    attributes = nvml.nvmlDeviceGetAttributes(handle)
    return {
        **device(handle),
        "is_slice": bool(nvml.nvmlDeviceIsMigDeviceHandle(handle)),
        "parent": nvml.nvmlDeviceGetUUID(parent),
        "gpu_instance": nvml.nvmlDeviceGetGpuInstanceId(handle),
        "compute_instance": nvml.nvmlDeviceGetComputeInstanceId(handle),
        "gpu_slices": attributes.gpuInstanceSliceCount,
        "memory_mib": attributes.memorySizeMB,
    }


def main() -> None:
    nvml.nvmlInit()
    gpus = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = ask(nvml.nvmlDeviceGetHandleByIndex, index)
        gpus.append(handle if isinstance(handle, str) else gpu(handle))
    report = {
        "driver": ask(nvml.nvmlSystemGetDriverVersion),
        "nvml": ask(nvml.nvmlSystemGetNVMLVersion),
        "cuda": ask(nvml.nvmlSystemGetCudaDriverVersion),
        "gpus": gpus,
    }
    nvml.nvmlShutdown()
    print(json.dumps(report))  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main()
