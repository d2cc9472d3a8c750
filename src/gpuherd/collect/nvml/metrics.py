"""What is asked of a device each tick: one table of metrics, and its binding to a device.

A metric may have several ways to be read, the best first; the first that the device supports is used. Values outside
of what can be (0xFFFFFFFF, "not available") are unknown; of what decides whether a device is free they are a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_int, c_uint, c_ulonglong, c_void_p, cast
from typing import Any, NamedTuple

import pynvml

from gpuherd.collect.nvml.library import Library, NvmlFunction
from gpuherd.model.devices import ThrottleReason

__all__ = [
    "GPU_METRICS",
    "PCIE_METRICS",
    "SLICE_METRICS",
    "WORK_METRICS",
    "Call",
    "Metric",
    "Question",
    "bind",
]

Values = dict[str, Any]
Take = Callable[[Values], tuple[str, ...] | None]
"""Puts what was read into the values; gives the names of numbers that decide and cannot be."""


class Call(NamedTuple):
    """One way to read a metric: ``function(handle, *before, *outputs)``; ``take`` reads the outputs."""

    function: str
    take: Callable[..., Take]
    outputs: tuple[Callable[[], Any], ...] = (c_uint,)
    before: tuple[Any, ...] = ()


Metric = tuple[Call, ...]

_DECISIVE = frozenset({"utilization_gpu", "memory_used_bytes", "memory_total_bytes"})
"""Without these nobody can say that a device is free."""


class Question:
    """A call with everything prepared: ask with ``function(*arguments)``, then ``take`` the answer."""

    __slots__ = ("arguments", "columns", "decides", "fallback", "function", "name", "take")

    def __init__(self, name: str, function: NvmlFunction, arguments: tuple[Any, ...], take: Take) -> None:
        self.name = name
        self.function = function
        self.arguments = arguments
        self.take = take
        self.fallback: Question | None = None
        values: Values = {}
        impossible = take(values) or ()
        self.columns = tuple(dict.fromkeys((*values, *impossible)))
        """What it tells."""
        self.decides = not _DECISIVE.isdisjoint(self.columns)


def bind(metric: Metric, library: Library, handle: c_void_p) -> Question | None:
    """Prepare a metric for a device; ``None`` if the library has no function for it."""
    first: Question | None = None
    for call in reversed(metric):
        function = library.function(call.function)
        if function is None:
            continue
        cells = tuple(make() for make in call.outputs)
        question = Question(
            call.function,
            function,
            (handle, *call.before, *(byref(cell) for cell in cells)),
            call.take(*cells),
        )
        question.fallback = first
        first = question
    return first


def _divided(field: str, divisor: int, highest: int, *, limit: float | None = None) -> Callable[..., Take]:
    def of(cell: Any, *_: Any) -> Take:
        def take(values: Values) -> None:
            number = cell.value
            if number <= highest:
                value = number / divisor
                values[field] = value if limit is None or value <= limit else limit

        return take

    return of


def _multiplied(field: str, factor: float, highest: int) -> Callable[..., Take]:
    def of(cell: Any) -> Take:
        def take(values: Values) -> None:
            number = cell.value
            if number <= highest:
                values[field] = number * factor

        return take

    return of


# The structs read every tick, as arrays: the vendor's classes intercept every attribute, which costs a microsecond.
Utilization = c_uint * 2
"""gpu, memory."""
MemoryV1 = c_ulonglong * 3
"""total, free, used."""
MemoryV2 = c_ulonglong * 5
"""version (a 32-bit number and padding), total, reserved, free, used."""


def _utilization(cell: Any) -> Take:
    def take(values: Values) -> tuple[str, ...] | None:
        gpu, memory = cell[0], cell[1]
        if memory <= 100:
            values["utilization_memory"] = memory / 100
        if gpu > 100:
            return ("utilization_gpu",)
        values["utilization_gpu"] = gpu / 100
        return None

    return take


_MOST_BYTES = 2**53


def _memory(values: Values, total: int, used: int, basis: str) -> tuple[str, ...] | None:
    values["memory_basis"] = basis
    is_total = 0 < total <= _MOST_BYTES
    values["memory_total_bytes"] = total if is_total else None
    if is_total and used <= total:
        values["memory_used_bytes"] = used
        return None
    return ("memory_used_bytes",) if is_total else ("memory_used_bytes", "memory_total_bytes")


def _memory_v2(cell: Any) -> Take:
    def take(values: Values) -> tuple[str, ...] | None:
        total, reserved, used = cell[1], cell[2], cell[4]
        if reserved <= _MOST_BYTES:
            values["memory_reserved_bytes"] = reserved
        return _memory(values, total, used, "framebuffer")

    return take


def _memory_v1(cell: Any) -> Take:
    def take(values: Values) -> tuple[str, ...] | None:
        return _memory(values, cell[0], cell[2], "framebuffer_with_reserved")

    return take


def _new_memory_v2() -> Any:
    cell = MemoryV2()
    # The version's place is the first 32 bits on every byte order.
    cast(cell, POINTER(c_uint))[0] = pynvml.nvmlMemory_v2
    return cell


def _temperature(cell: Any) -> Take:
    def take(values: Values) -> None:
        if cell.value <= 250:
            values["temperature_celsius"] = float(cell.value)

    return take


def _temperature_signed(cell: Any) -> Take:
    def take(values: Values) -> None:
        if -60 <= cell.temperature <= 250:
            values["temperature_celsius"] = float(cell.temperature)

    return take


def _new_temperature() -> Any:
    cell = pynvml.c_nvmlTemperature_v1_t()
    cell.version = pynvml.nvmlTemperature_v1
    cell.sensorType = pynvml.NVML_TEMPERATURE_GPU
    return cell


def _performance_state(cell: Any) -> Take:
    def take(values: Values) -> None:
        if 0 <= cell.value <= 15:  # 32 is NVML's unknown
            values["performance_state"] = cell.value

    return take


_KNOWN_REASONS = 0x1FF
"""The vendor's bits have the values of ThrottleReason up to DISPLAY_CLOCKS."""
_NO_REASONS = 2**64 - 1


def _throttle_reasons(cell: Any) -> Take:
    def take(values: Values) -> None:
        bits = cell.value
        if bits != _NO_REASONS:
            other = int(ThrottleReason.OTHER) if bits & ~_KNOWN_REASONS else 0
            values["throttle_reasons"] = bits & _KNOWN_REASONS | other

    return take


def _count(field: str) -> Callable[..., Take]:
    return _multiplied(field, 1, _MOST_BYTES)


_MEMORY: Metric = (
    Call("nvmlDeviceGetMemoryInfo_v2", _memory_v2, (_new_memory_v2,)),
    Call("nvmlDeviceGetMemoryInfo", _memory_v1, (MemoryV1,)),
)

_MILLIWATTS = 100_000_000
_MEGAHERTZ = 1_000_000

WORK_METRICS: Mapping[str, Metric] = {
    "utilization": (Call("nvmlDeviceGetUtilizationRates", _utilization, (Utilization,)),),
    "encoder": (
        Call("nvmlDeviceGetEncoderUtilization", _divided("utilization_encoder", 100, 100), (c_uint, c_uint)),
    ),
    "decoder": (
        Call("nvmlDeviceGetDecoderUtilization", _divided("utilization_decoder", 100, 100), (c_uint, c_uint)),
    ),
}
"""What a whole GPU does; of a partitioned one only its slices could tell."""

GPU_METRICS: Mapping[str, Metric] = {
    "memory": _MEMORY,
    "temperature": (
        Call("nvmlDeviceGetTemperature", _temperature, before=(c_int(pynvml.NVML_TEMPERATURE_GPU),)),
        Call("nvmlDeviceGetTemperatureV", _temperature_signed, (_new_temperature,)),
    ),
    "power": (Call("nvmlDeviceGetPowerUsage", _divided("power_watts", 1000, _MILLIWATTS)),),
    "power_limit": (
        Call("nvmlDeviceGetEnforcedPowerLimit", _divided("power_limit_watts", 1000, _MILLIWATTS)),
        Call("nvmlDeviceGetPowerManagementLimit", _divided("power_limit_watts", 1000, _MILLIWATTS)),
    ),
    # The driver may say a little over 100 %.
    "fan": (Call("nvmlDeviceGetFanSpeed", _divided("fan_ratio", 100, 200, limit=1.0)),),
    "clock_sm": (
        Call("nvmlDeviceGetClockInfo", _multiplied("clock_sm_hertz", 1e6, _MEGAHERTZ), before=(pynvml.NVML_CLOCK_SM,)),
    ),
    "clock_memory": (
        Call(
            "nvmlDeviceGetClockInfo", _multiplied("clock_memory_hertz", 1e6, _MEGAHERTZ),
            before=(pynvml.NVML_CLOCK_MEM,),
        ),
    ),
    "performance_state": (Call("nvmlDeviceGetPerformanceState", _performance_state, (c_int,)),),
    "throttle_reasons": (
        Call("nvmlDeviceGetCurrentClocksEventReasons", _throttle_reasons, (c_ulonglong,)),
        Call("nvmlDeviceGetCurrentClocksThrottleReasons", _throttle_reasons, (c_ulonglong,)),
    ),
    "ecc_corrected": (
        Call(
            "nvmlDeviceGetTotalEccErrors", _count("ecc_corrected"), (c_ulonglong,),
            (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC),
        ),
    ),
    "ecc_uncorrected": (
        Call(
            "nvmlDeviceGetTotalEccErrors", _count("ecc_uncorrected"), (c_ulonglong,),
            (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
        ),
    ),
    "energy": (
        Call("nvmlDeviceGetTotalEnergyConsumption", _divided("energy_joules", 1000, 10**18), (c_ulonglong,)),
    ),
}  # fmt: skip
"""What the card is like; also read of a partitioned GPU."""

PCIE_METRICS: Mapping[str, Metric] = {
    "pcie_receive": (
        Call(
            "nvmlDeviceGetPcieThroughput", _multiplied("pcie_receive_bytes_per_second", 1e3, 2**31),
            before=(pynvml.NVML_PCIE_UTIL_RX_BYTES,),
        ),
    ),
    "pcie_send": (
        Call(
            "nvmlDeviceGetPcieThroughput", _multiplied("pcie_send_bytes_per_second", 1e3, 2**31),
            before=(pynvml.NVML_PCIE_UTIL_TX_BYTES,),
        ),
    ),
}  # fmt: skip
"""Opt-in: the driver watches the bus for 20 ms per call."""

SLICE_METRICS: Mapping[str, Metric] = {"memory": _MEMORY}
"""Of a MIG slice; the rest belongs to the card."""
