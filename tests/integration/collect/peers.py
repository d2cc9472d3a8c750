"""What gpustat, nvitop and our own collector say of the same cards, in one shape to compare.

A view is ``{device uuid: {field: value}}``; values in the tools' own whole units (%, MiB or bytes, mW, MHz).
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from support.running import PATIENCE_SECONDS

from .conftest import Bench

__all__ = ["View", "gpustat_view", "nvitop_view", "our_gpustat_view", "our_nvitop_view"]

View = dict[str, dict[str, Any]]
MIB = 2**20
NOT_ANSWERED = "did not answer"

NVITOP = """
import json
from nvitop import Device, NA
def plain(value):
    return None if value is NA else value
def describe(device):
    return {
        "uuid": plain(device.uuid()), "name": plain(device.name()), "bus_id": plain(device.bus_id()),
        "memory_total": plain(device.memory_total()), "memory_used": plain(device.memory_used()),
        "gpu": plain(device.gpu_utilization()), "memory": plain(device.memory_utilization()),
        "encoder": plain(device.encoder_utilization()), "decoder": plain(device.decoder_utilization()),
        "temperature": plain(device.temperature()), "power": plain(device.power_usage()),
        "power_limit": plain(device.power_limit()), "fan": plain(device.fan_speed()),
        "sm_clock": plain(device.sm_clock()), "memory_clock": plain(device.memory_clock()),
        "pstate": plain(device.performance_state()),
        "processes": {str(pid): [plain(p.gpu_memory()), plain(p.gpu_sm_utilization())]
                      for pid, p in sorted(device.processes().items())},
    }
found = []
for device in Device.all():
    found.append(describe(device))
    if not device.is_mig_device():
        found += [describe(part) for part in device.mig_devices()]
print(json.dumps(found))
"""
NVITOP_OF_GPU = (
    "uuid", "name", "bus_id", "memory_total", "memory_used", "gpu", "memory", "encoder", "decoder", "temperature",
    "power", "power_limit", "fan", "sm_clock", "memory_clock", "pstate", "processes",
)  # fmt: skip
NVITOP_OF_SLICE = ("uuid", "name", "memory_total", "memory_used", "processes")
"""nvitop answers the rest for a slice with the card's own values."""


def _lines(done: subprocess.CompletedProcess[bytes]) -> str:
    return (
        (done.stderr or done.stdout).decode().strip().splitlines()[-1:][0]
        if done.stderr or done.stdout
        else ""
    )


def gpustat_view(bench: Bench, seconds: float = PATIENCE_SECONDS) -> View | str:
    """gpustat's answer, or how it failed."""
    try:
        done = bench.run("gpustat", "--json", timeout=seconds)
    except subprocess.TimeoutExpired:
        return NOT_ANSWERED
    if done.returncode:
        return f"ended with status {done.returncode}: {_lines(done)}"
    view: View = {}
    for place, gpu in enumerate(json.loads(done.stdout)["gpus"]):
        processes = {
            str(process["pid"]): [process["username"], process["gpu_memory_usage"]]
            for process in gpu.pop("processes") or ()
        }
        key = gpu.get("uuid") or f"gpu-{place}-without-uuid"
        view[key] = gpu | {"processes": processes}
    return view


def nvitop_view(bench: Bench, seconds: float = PATIENCE_SECONDS) -> View | str:
    """nvitop's answer, or how it failed."""
    try:
        done = bench.run("python", "-c", NVITOP, timeout=seconds)
    except subprocess.TimeoutExpired:
        return NOT_ANSWERED
    if done.returncode:
        return f"ended with status {done.returncode}: {_lines(done)}"
    view: View = {}
    for place, device in enumerate(json.loads(done.stdout)):
        is_slice = (device["uuid"] or "").startswith("MIG-")
        fields = NVITOP_OF_SLICE if is_slice else NVITOP_OF_GPU
        view[device["uuid"] or f"gpu-{place}-without-uuid"] = {field: device[field] for field in fields}
    return view


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(ratio * 100)


def _whole(value: float | None, divisor: float = 1) -> int | None:
    return None if value is None else int(value // divisor)


def _processes(report: Any, place: int) -> list[tuple[Any, Any]]:
    """(process, use sample) pairs of a device."""
    table, sample = report.get("table", {}), report["sample"]
    return [
        (table["processes"][use["process"]], amount)
        for use, amount in zip(table.get("uses", ()), sample.get("uses", ()), strict=True)
        if use["device"] == place
    ]


def our_gpustat_view(report: Any) -> View:
    """Our report as gpustat would write it: whole GPUs only, processes the system knows."""
    view: View = {}
    for place, facts in enumerate(report["facts"]["devices"]):
        if facts.get("kind") == "slice":
            continue
        sample = report["sample"]["devices"][place]
        view[facts["uuid"]] = {
            "index": facts["index"],
            "uuid": facts["uuid"],
            "name": facts["name"],
            "temperature.gpu": _whole(sample.get("temperature_celsius")),
            "fan.speed": _percent(sample.get("fan_ratio")),
            "utilization.gpu": _percent(sample.get("utilization_gpu")),
            "utilization.enc": _percent(sample.get("utilization_encoder")),
            "utilization.dec": _percent(sample.get("utilization_decoder")),
            "power.draw": _whole(sample.get("power_watts")),
            "enforced.power.limit": _whole(sample.get("power_limit_watts")),
            "memory.used": _whole(sample.get("memory_used_bytes"), MIB),
            "memory.total": _whole(facts.get("memory_total_bytes"), MIB),
            "processes": {
                str(process["pid"]): [process.get("user"), _whole(use.get("gpu_memory_bytes"), MIB)]
                for process, use in _processes(report, place)
                if not process.get("is_gone")
            },
        }
    return view


def our_nvitop_view(report: Any) -> View:
    """Our report as nvitop would write it."""
    view: View = {}
    for place, facts in enumerate(report["facts"]["devices"]):
        sample = report["sample"]["devices"][place]
        state, power, limit = (
            sample.get(name) for name in ("performance_state", "power_watts", "power_limit_watts")
        )
        described = {
            "uuid": facts["uuid"],
            "name": facts["name"],
            "bus_id": facts.get("pci_bus_id"),
            "memory_total": facts.get("memory_total_bytes"),
            "memory_used": sample.get("memory_used_bytes"),
            "gpu": _percent(sample.get("utilization_gpu")),
            "memory": _percent(sample.get("utilization_memory")),
            "encoder": _percent(sample.get("utilization_encoder")),
            "decoder": _percent(sample.get("utilization_decoder")),
            "temperature": _whole(sample.get("temperature_celsius")),
            "power": None if power is None else round(power * 1000),
            "power_limit": None if limit is None else round(limit * 1000),
            "fan": _percent(sample.get("fan_ratio")),
            "sm_clock": _whole(sample.get("clock_sm_hertz"), 1e6),
            "memory_clock": _whole(sample.get("clock_memory_hertz"), 1e6),
            "pstate": None if state is None else f"P{state}",
            "processes": {
                str(process["pid"]): [use.get("gpu_memory_bytes"), _percent(use.get("utilization_sm"))]
                for process, use in sorted(_processes(report, place), key=lambda pair: pair[0]["pid"])
            },
        }
        fields = NVITOP_OF_SLICE if facts.get("kind") == "slice" else NVITOP_OF_GPU
        view[facts["uuid"]] = {field: described[field] for field in fields}
    return view
