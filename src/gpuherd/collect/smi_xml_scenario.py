"""Recorded cards: the output of ``nvidia-smi -q -x`` as a scenario that the simulator replays.

Knows schema versions 9 to 13. What they call by different names is listed newest first; what a recording does not
tell (``N/A``, ``[Not Supported]``, ``ERR!``, absent) stays ``None``. Recorded processes become named fakes.
"""

from __future__ import annotations

import math
import re
import uuid
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

import msgspec

from gpuherd.collect.scenario import Scenario
from gpuherd.model.errors import Misconfigured

__all__ = ["scenario_from_smi_xml"]

MAX_XML_BYTES = 16 * 1024 * 1024
_MIB = 2**20
_KB = 1000

_TEXTS = {
    "serial": "serial",
    "vbios_version": "vbios_version",
    "pci_bus_id": "pci/pci_bus_id",
}
_HEXADECIMALS = {"pci_device_id": "pci/pci_device_id", "pci_subsystem_id": "pci/pci_sub_system_id"}
_SWITCHES = {
    "persistence_mode": "persistence_mode",
    "display_active": "display_active",
    "display_mode": "display_mode",
    "ecc_mode": "ecc_mode/current_ecc",
    "mig_mode": "mig_mode/current_mig",
    "remapped_rows_pending": "remapped_rows/remapped_row_pending",
    "remapped_rows_failed": "remapped_rows/remapped_row_failure",
}
_WORDS = {
    "brand": ("product_brand", {"Quadro", "Tesla", "GeForce", "Titan", "Quadro RTX", "NVIDIA RTX", "NVIDIA"}),
    "architecture": (
        "product_architecture",
        {"Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell"},
    ),
    "compute_mode": ("compute_mode", {"Default", "Exclusive Process", "Prohibited"}),
}
_MEMORY = {
    "memory_total_bytes": ("fb_memory_usage/total",),
    "memory_reserved_bytes": ("fb_memory_usage/reserved",),
    "memory_used_bytes": ("fb_memory_usage/used",),
    "bar1_total_bytes": ("bar1_memory_usage/total",),
    "bar1_used_bytes": ("bar1_memory_usage/used",),
}
_PCIE_TRAFFIC = {"pcie_tx_bytes_per_second": ("pci/tx_util",), "pcie_rx_bytes_per_second": ("pci/rx_util",)}
_NUMBERS = {
    "minor_number": ("minor_number",),
    "utilization_gpu_percent": ("utilization/gpu_util",),
    "utilization_memory_percent": ("utilization/memory_util",),
    "utilization_encoder_percent": ("utilization/encoder_util",),
    "utilization_decoder_percent": ("utilization/decoder_util",),
    "temperature_celsius": ("temperature/gpu_temp",),
    "temperature_memory_celsius": ("temperature/memory_temp",),
    "temperature_slowdown_celsius": ("temperature/gpu_temp_slow_threshold",),
    "temperature_shutdown_celsius": ("temperature/gpu_temp_max_threshold",),
    "power_watts": (
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
        "gpu_power_readings/power_draw",
        "power_readings/power_draw",
    ),
    "power_limit_watts": (
        "gpu_power_readings/current_power_limit",
        "power_readings/enforced_power_limit",
    ),
    "power_limit_default_watts": (
        "gpu_power_readings/default_power_limit",
        "power_readings/default_power_limit",
    ),
    "power_limit_min_watts": ("gpu_power_readings/min_power_limit", "power_readings/min_power_limit"),
    "power_limit_max_watts": ("gpu_power_readings/max_power_limit", "power_readings/max_power_limit"),
    "fan_percent": ("fan_speed",),
    "clock_graphics_mhz": ("clocks/graphics_clock",),
    "clock_sm_mhz": ("clocks/sm_clock",),
    "clock_memory_mhz": ("clocks/mem_clock",),
    "clock_video_mhz": ("clocks/video_clock",),
    "clock_graphics_max_mhz": ("max_clocks/graphics_clock",),
    "clock_sm_max_mhz": ("max_clocks/sm_clock",),
    "clock_memory_max_mhz": ("max_clocks/mem_clock",),
    "clock_video_max_mhz": ("max_clocks/video_clock",),
    "performance_state": ("performance_state",),
    "remapped_rows_corrected": ("remapped_rows/remapped_row_corr",),
    "remapped_rows_uncorrected": ("remapped_rows/remapped_row_unc",),
    "pcie_replay_count": ("pci/replay_counter",),
    "pcie_link_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie_link_generation_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "pcie_link_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie_link_width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
}
_THROTTLE_BITS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
# Version 10 counts by bit errors; later ones by where they happened, and 13 splits one of the places.
_ECC_PARTS = {
    "corrected": (("single_bit/total",), ("sram_correctable", "dram_correctable")),
    "uncorrected": (
        ("double_bit/total",),
        (
            "sram_uncorrectable",
            "sram_uncorrectable_parity",
            "sram_uncorrectable_secded",
            "dram_uncorrectable",
        ),
    ),
}
# Multiprocessors of a slice to its compute slices on A100 and H100: the recording does not name the profile.
_COMPUTE_SLICES = {14: 1, 28: 2, 42: 3, 56: 4, 98: 7, 16: 1, 32: 2, 46: 3, 60: 3, 64: 4, 132: 7}
_PROCESS_TYPES = {"C": "compute", "M+C": "compute", "G": "graphics", "C+G": "compute+graphics"}
_NOTHING = re.compile(
    r"|-|N/A|None|Not Found|Not Supported|ERR!|Unknown Error|\[.*\]|Requested functionality .*"
)
_NUMBER = re.compile(r"P?(\d+(?:\.\d+)?)\s*[A-Za-z%/]*")


def scenario_from_smi_xml(content: bytes, source: str = "nvidia-smi -q -x") -> Scenario:
    """The recorded node as a scenario of constants; ``source`` is named in errors. Raises ``Misconfigured``."""
    root = _parse(content, source)
    cuda_version = _text(root, "cuda_version")
    document = {
        "description": f"Recorded by nvidia-smi -q -x: {_text(root, 'timestamp') or 'time unknown'}.",
        "driver_version": _text(root, "driver_version"),
        "cuda_version": cuda_version if re.fullmatch(r"\d+\.\d+", cuda_version or "") else None,
        "gpus": [_gpu(gpu, index) for index, gpu in enumerate(root.iterfind("gpu"))],
    }
    try:
        return msgspec.convert(document, Scenario)
    except msgspec.ValidationError as error:
        raise Misconfigured(f"{source}: not the output of nvidia-smi -q -x: {error}") from error


def _parse(content: bytes, source: str) -> Element:
    if len(content) > MAX_XML_BYTES:
        raise Misconfigured(f"{source}: larger than {MAX_XML_BYTES >> 20} MiB, which no node prints")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{source}: not UTF-8 text: {error}") from error
    if "<!ENTITY" in text:
        raise Misconfigured(f"{source}: declares XML entities, which nvidia-smi never does")
    try:
        return fromstring(text)  # noqa: S314 - bounded in size and free of entities, see above
    except (ParseError, ValueError) as error:
        raise Misconfigured(f"{source}: not well-formed XML: {error}") from error


def _gpu(gpu: Element, index: int) -> dict[str, Any]:
    identity = _text(gpu, "uuid") or f"GPU-unknown-{index}"
    slices = [_slice(device, identity) for device in gpu.iterfind("mig_devices/mig_device")]
    by_instance = {(s["gpu_instance"], s["compute_instance"]): s for s in slices}
    processes: list[dict[str, Any]] = []
    for process in map(_process, gpu.iterfind("processes/process_info")):
        home = by_instance.get((process["gpu_instance"], process["compute_instance"]))
        (processes if home is None else home["processes"]).append(process)
    return {
        "uuid": identity,
        "name": _text(gpu, "product_name") or "Unknown",
        **{key: _text(gpu, path) for key, path in _TEXTS.items()},
        **{key: _hexadecimal(gpu, path) for key, path in _HEXADECIMALS.items()},
        **{key: _switch(gpu, path) for key, path in _SWITCHES.items()},
        **{key: _word(gpu, path, known) for key, (path, known) in _WORDS.items()},
        **{key: _number(gpu, paths, _MIB) for key, paths in _MEMORY.items()},
        **{key: _number(gpu, paths, _KB) for key, paths in _PCIE_TRAFFIC.items()},
        **{key: _number(gpu, paths) for key, paths in _NUMBERS.items()},
        **{
            f"ecc_{kind}_{counter}": _ecc_errors(gpu, counter, kind)
            for kind in _ECC_PARTS
            for counter in ("volatile", "aggregate")
        },
        "throttle_reasons": _throttle_reasons(gpu),
        "processes": processes,
        "mig_slices": slices,
    }


def _slice(device: Element, gpu_uuid: str) -> dict[str, Any]:
    instances = [_number(device, (f"{kind}_instance_id",)) for kind in ("gpu", "compute")]
    multiprocessors = _number(device, ("device_attributes/shared/multiprocessor_count",)) or 0
    gpu_slices = _COMPUTE_SLICES.get(int(multiprocessors), max(1, round(multiprocessors / 16)))
    gigabytes = math.ceil((_number(device, ("fb_memory_usage/total",)) or 1) / 1024)
    return {
        # Recorded without a UUID: one that stays the same for the same slice of the same GPU.
        "uuid": f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{gpu_uuid}/{instances[0]}/{instances[1]}')}",
        "profile": f"{gpu_slices}g.{gigabytes}gb",
        "gpu_instance": instances[0],
        "compute_instance": instances[1],
        **{key: _number(device, paths, _MIB) for key, paths in _MEMORY.items()},
        "processes": [],
    }


def _process(entry: Element) -> dict[str, Any]:
    return {
        "pid": _number(entry, ("pid",)),
        "type": _PROCESS_TYPES.get(_text(entry, "type") or "C", "compute"),
        "memory_used_bytes": _number(entry, ("used_memory",), _MIB),
        "gpu_instance": _number(entry, ("gpu_instance_id",)),
        "compute_instance": _number(entry, ("compute_instance_id",)),
        "command": (_text(entry, "process_name") or "unknown")[:4096],
    }


def _throttle_reasons(gpu: Element) -> int | None:
    for word in ("event", "throttle"):
        section = gpu.find(f"clocks_{word}_reasons")
        if section is not None and len(section) > 0:
            return sum(
                bit
                for name, bit in _THROTTLE_BITS.items()
                if _text(section, f"clocks_{word}_reason_{name}") == "Active"
            )
    return None


def _ecc_errors(gpu: Element, counter: str, kind: str) -> float | None:
    for names in _ECC_PARTS[kind]:
        counts = [_number(gpu, (f"ecc_errors/{counter}/{name}",)) for name in names]
        known = [count for count in counts if count is not None]
        if known:
            return sum(known)
    return None


def _text(parent: Element, path: str) -> str | None:
    """The text at ``path``, or ``None`` when it says that there is nothing to say."""
    text = (parent.findtext(path) or "").strip()
    return None if _NOTHING.fullmatch(text) else text


def _number(parent: Element, paths: tuple[str, ...], times: int = 1) -> float | None:
    """The first number found among ``paths``, without its unit; words such as ERR! are not one."""
    for path in paths:
        match = _NUMBER.fullmatch(_text(parent, path) or "")
        if match is not None:
            value = float(match[1]) * times
            return int(value) if value.is_integer() else value
    return None


def _hexadecimal(parent: Element, path: str) -> int | None:
    text = _text(parent, path) or ""
    return int(text, 16) if re.fullmatch(r"(0x)?[0-9A-Fa-f]{1,8}", text) else None


def _switch(parent: Element, path: str) -> bool | None:
    return {"Enabled": True, "Yes": True, "Disabled": False, "No": False}.get(_text(parent, path) or "")


def _word(parent: Element, path: str, known: set[str]) -> str | None:
    text = _text(parent, path)
    return text.lower().replace(" ", "_") if text in known else None
