"""The yardstick of P1: nvidia-ml-py alone, asking for what our NVML collector asks, and doing nothing with it.

``python -m bench.bare_nvml SAMPLES [PAUSE]`` prints CPU seconds per sample. With a pause (seconds) before each, such as
an agent has, the caches are cold.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pynvml as nvml

QUESTIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("nvmlDeviceGetUtilizationRates", ()),
    ("nvmlDeviceGetEncoderUtilization", ()),
    ("nvmlDeviceGetDecoderUtilization", ()),
    ("nvmlDeviceGetMemoryInfo", (nvml.nvmlMemory_v2,)),
    ("nvmlDeviceGetTemperature", (nvml.NVML_TEMPERATURE_GPU,)),
    ("nvmlDeviceGetPowerUsage", ()),
    ("nvmlDeviceGetEnforcedPowerLimit", ()),
    ("nvmlDeviceGetFanSpeed", ()),
    ("nvmlDeviceGetClockInfo", (nvml.NVML_CLOCK_SM,)),
    ("nvmlDeviceGetClockInfo", (nvml.NVML_CLOCK_MEM,)),
    ("nvmlDeviceGetPerformanceState", ()),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("nvmlDeviceGetTotalEccErrors", (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC)),
    ("nvmlDeviceGetTotalEccErrors", (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)),
    ("nvmlDeviceGetTotalEnergyConsumption", ()),
    ("nvmlDeviceGetComputeRunningProcesses", ()),
    ("nvmlDeviceGetGraphicsRunningProcesses", ()),
    ("nvmlDeviceGetProcessUtilization", (0,)),
)


def look(handles: list[Any], questions: list[tuple[Callable[..., object], tuple[Any, ...]]]) -> None:
    """Ask for everything once."""
    for handle in handles:
        for ask, arguments in questions:
            try:  # noqa: SIM105 - suppress() costs more than the call
                ask(handle, *arguments)
            except nvml.NVMLError:
                pass  # not supported here


def main() -> None:
    """Look many times."""
    samples = int(sys.argv[1])
    pause_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    nvml.nvmlInit()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    questions = [(getattr(nvml, name), arguments) for name, arguments in QUESTIONS]
    look(handles, questions)
    before = time.process_time()
    for _ in range(samples):
        if pause_seconds:
            time.sleep(pause_seconds)
        look(handles, questions)
    print((time.process_time() - before) / samples)


if __name__ == "__main__":
    main()
