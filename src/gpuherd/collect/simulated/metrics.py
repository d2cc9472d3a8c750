"""What NVML would answer, call by call, as fields of the model: rounded to NVML's units, then to base units."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gpuherd.collect.scenario import Metric, MigSlice, SimulatedGpu, quantised, value_at
from gpuherd.model.devices import ThrottleReason

__all__ = ["CARD_CALLS", "PCIE_CALLS", "WORK_CALLS", "Call", "Memory", "memory_at"]

_U32 = 2**32 - 2
_KNOWN_REASONS = 0x1FF

Convert = Callable[[float], float | int | None]


class Call(NamedTuple):
    """An NVML function and the fields it fills; all or nothing, as NVML answers them together."""

    function: str
    fields: tuple[tuple[str, str, Convert], ...]
    """Sample field, scenario key, conversion."""

    def answer(self, gpu: SimulatedGpu, t: float) -> dict[str, float | int | None] | None:
        """Give the fields at ``t``; ``None`` = not supported. A field that is ``None`` was a sentinel."""
        values: dict[str, float | int | None] = {}
        for field, key, convert in self.fields:
            value = value_at(getattr(gpu, key), t)
            if value is None:
                return None
            values[field] = convert(value)
        return values


def _percent(value: float) -> float | None:
    number = quantised(value, _U32)
    return number / 100 if number <= 100 else None


def _fan(value: float) -> float | None:
    number = quantised(value, _U32)
    return min(number / 100, 1.0) if number <= 200 else None


def _thousandths(value: float) -> float | None:
    number = quantised(value * 1000)
    return number / 1000 if number <= 100_000_000 else None


def _energy(value: float) -> float | None:
    number = quantised(value * 1000)
    return number / 1000 if number <= 10**18 else None


def _megahertz(value: float) -> float | None:
    number = quantised(value, _U32)
    return number * 1e6 if number <= 1_000_000 else None


def _celsius(value: float) -> float | None:
    number = quantised(value, _U32)
    return float(number) if number <= 250 else None


def _state(value: float) -> int | None:
    number = quantised(value, _U32)
    return number if number <= 15 else None


def _reasons(value: float) -> int:
    bits = quantised(value)
    return bits & _KNOWN_REASONS | (int(ThrottleReason.OTHER) if bits & ~_KNOWN_REASONS else 0)


def _count(value: float) -> int | None:
    number = quantised(value)
    return number if number <= 2**53 else None


def _kilobytes(value: float) -> float:
    return quantised(value * (1.0 / 1000), _U32) * 1e3


WORK_CALLS = (
    Call(
        "nvmlDeviceGetUtilizationRates",
        (
            ("utilization_gpu", "utilization_gpu_percent", _percent),
            ("utilization_memory", "utilization_memory_percent", _percent),
        ),
    ),
    Call(
        "nvmlDeviceGetEncoderUtilization", (("utilization_encoder", "utilization_encoder_percent", _percent),)
    ),
    Call(
        "nvmlDeviceGetDecoderUtilization", (("utilization_decoder", "utilization_decoder_percent", _percent),)
    ),
)
"""What a whole GPU does; a partitioned one does not tell."""

CARD_CALLS = (
    Call("nvmlDeviceGetTemperature", (("temperature_celsius", "temperature_celsius", _celsius),)),
    Call("nvmlDeviceGetPowerUsage", (("power_watts", "power_watts", _thousandths),)),
    Call("nvmlDeviceGetEnforcedPowerLimit", (("power_limit_watts", "power_limit_watts", _thousandths),)),
    Call("nvmlDeviceGetFanSpeed", (("fan_ratio", "fan_percent", _fan),)),
    Call("nvmlDeviceGetClockInfo", (("clock_sm_hertz", "clock_sm_mhz", _megahertz),)),
    Call("nvmlDeviceGetClockInfo", (("clock_memory_hertz", "clock_memory_mhz", _megahertz),)),
    Call("nvmlDeviceGetPerformanceState", (("performance_state", "performance_state", _state),)),
    Call("nvmlDeviceGetCurrentClocksEventReasons", (("throttle_reasons", "throttle_reasons", _reasons),)),
    Call("nvmlDeviceGetTotalEccErrors", (("ecc_corrected", "ecc_corrected_volatile", _count),)),
    Call("nvmlDeviceGetTotalEccErrors", (("ecc_uncorrected", "ecc_uncorrected_volatile", _count),)),
    Call("nvmlDeviceGetTotalEnergyConsumption", (("energy_joules", "energy_joules", _energy),)),
)
"""What the card is like; also of a partitioned GPU."""

PCIE_CALLS = (
    Call(
        "nvmlDeviceGetPcieThroughput",
        (("pcie_receive_bytes_per_second", "pcie_rx_bytes_per_second", _kilobytes),),
    ),
    Call(
        "nvmlDeviceGetPcieThroughput",
        (("pcie_send_bytes_per_second", "pcie_tx_bytes_per_second", _kilobytes),),
    ),
)
"""Opt-in, as in the NVML collector."""


class Memory(NamedTuple):
    """Bytes of a GPU or slice."""

    total: int
    used: int
    reserved: int


def memory_at(device: SimulatedGpu | MigSlice, t: float) -> Memory | None:
    """Give the memory at ``t``; ``None`` where the device has none of its own to tell."""
    total, used = _bytes(device.memory_total_bytes, t), _bytes(device.memory_used_bytes, t)
    if total is None or used is None:
        return None
    return Memory(total, used, _bytes(device.memory_reserved_bytes, t) or 0)


def _bytes(metric: Metric, t: float) -> int | None:
    value = value_at(metric, t)
    return None if value is None else quantised(value)
