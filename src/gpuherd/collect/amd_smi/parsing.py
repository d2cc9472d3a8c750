"""Parsers of ``amd-smi … --json`` (and of ``metric --csv``).

Every part may be missing or ``"N/A"``, which is unknown. Numbers come bare or as ``{"value": 12, "unit": "W"}``.
Newer ones put the list of GPUs into ``{"gpu_data": […]}``. What amd-smi calls MB are 2^20 bytes.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpuherd.collect.json_output import printed_json
from gpuherd.collect.reading import SeenUse
from gpuherd.model.devices import DeviceFacts, DeviceSample, ThrottleReason
from gpuherd.model.errors import Failed
from gpuherd.model.text import clean

__all__ = [
    "Entry",
    "device_facts",
    "device_sample",
    "driver_version",
    "impossible",
    "parse_entries",
    "parse_metric_csv",
    "uses",
]

Entry = Mapping[str, Any]
"""What one command says of one GPU."""

_SCALES = {
    "": 1.0, "%": 0.01, "w": 1.0, "mw": 0.001, "uw": 1e-6, "c": 1.0, "mhz": 1e6, "ghz": 1e9, "hz": 1.0, "j": 1.0,
    "mj": 0.001, "uj": 1e-6, "b": 1.0, "kb": 2.0**10, "mb": 2.0**20, "gb": 2.0**30,
}  # fmt: skip
_UTILIZATION = (("usage", "gfx_activity"), ("usage", "gfx_usage"))
_MEMORY_USED = (("mem_usage", "used_vram"),)
_MEMORY_SIZE = (("vram", "size"), ("vram", "vram_size_mb"), ("vram", "size_mb"))
_MEMORY_TOTAL = (("mem_usage", "total_vram"),)
_NOT_SUPPORTED = frozenset({"", "n/a", "none", "not supported"})
_WRAPPERS = ("gpu_data", "gpus", "gpu")
_CSV_SECTIONS = {
    "usage": ("gfx_activity", "umc_activity", "mm_activity"),
    "power": ("socket_power", "throttle_status"),
    "temperature": ("edge", "hotspot", "mem"),
    "ecc": ("total_correctable_count", "total_uncorrectable_count"),
    "energy": ("total_energy_consumption",),
    "mem_usage": ("total_vram", "used_vram"),
}


def parse_entries(content: bytes) -> dict[int, Entry]:
    """Read a command's JSON: what it says of each GPU, by index. ``Failed`` if there is no such JSON."""
    try:
        found = printed_json(content)
    except msgspec.DecodeError as error:
        raise Failed(f"amd-smi did not print JSON: {clean(str(error), 200)}") from error
    if isinstance(found, dict):
        found = next((found[name] for name in _WRAPPERS if isinstance(found.get(name), list)), [found])
    entries: dict[int, Entry] = {}
    for entry in found if isinstance(found, list) else []:
        index = entry.get("gpu") if isinstance(entry, dict) else None
        if isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= 4096:
            # Of two lists of a GPU's processes nobody knows which is right.
            entries[index] = {**entries[index], "process_list": None} if index in entries else entry
    return entries


def parse_metric_csv(content: bytes) -> dict[int, Entry]:
    """Read ``amd-smi metric --csv`` into the shape of its JSON; lists stand in one quoted column."""
    text = content.decode(errors="replace").replace("\0", "")
    entries: dict[int, Entry] = {}
    lines = text.splitlines()
    header = next((place for place, line in enumerate(lines) if line.startswith("gpu,")), len(lines))
    try:
        for row in csv.DictReader(io.StringIO("\n".join(lines[header:]))):
            index = row.get("gpu") or ""
            if not re.fullmatch(r"[0-9]{1,4}", index):
                continue
            entry: dict[str, Any] = {
                section: {name: row.get(name) for name in names} for section, names in _CSV_SECTIONS.items()
            }
            entry["gpu"] = int(index)
            entry["fan"] = {"usage": row.get("usage")}
            entry["clock"] = {
                name: {"clk": row.get(f"{name}_clk"), "max_clk": row.get(f"{name}_max_clk")}
                for name in ("gfx_0", "mem_0")
            }
            entries.setdefault(int(index), entry)
    except csv.Error as error:
        raise Failed(f"amd-smi did not print CSV: {clean(str(error), 200)}") from error
    return entries


def _part(entry: Any, *path: str) -> Any:
    for name in path:
        entry = entry.get(name) if isinstance(entry, dict) else None
    return entry


def _number(found: Any, unit: str, high: float) -> float | None:
    """Give a number in base units; ``unit`` is what a bare one means. ``None`` outside of 0 to ``high``."""
    if isinstance(found, dict):
        unit, found = str(found.get("unit") or unit), found.get("value")
    if isinstance(found, str) and re.fullmatch(r"\d{1,20}(\.\d{1,20})?", found.strip()):
        found = float(found)
    scale = _SCALES.get(unit.strip().lower())
    if isinstance(found, bool) or not isinstance(found, int | float) or scale is None:
        return None
    # Whole percents are divided, as everywhere: 7 % is 0.07, not 0.07000000000000001.
    value = found / 100 if scale == 0.01 else found * scale
    return value if 0 <= value <= high else None


def _first(entry: Any, unit: str, high: float, *paths: tuple[str, ...]) -> float | None:
    return next((n for path in paths if (n := _number(_part(entry, *path), unit, high)) is not None), None)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _text(entry: Any, *paths: tuple[str, ...]) -> str | None:
    for path in paths:
        found = _part(entry, *path)
        if (
            isinstance(found, str)
            and found.strip()
            and found.strip().lower() not in ("n/a", "none", "unknown")
        ):
            return clean(found.strip())
    return None


def driver_version(static: Mapping[int, Entry]) -> str | None:
    """Find the driver's version in ``amd-smi static``."""
    return next(
        (
            found
            for entry in static.values()
            if (found := _text(entry, ("driver", "version"), ("driver", "driver_version")))
        ),
        None,
    )


def _serial(entry: Entry) -> int | None:
    serial = _text(entry, ("asic", "asic_serial")) or ""
    return int(serial, 16) or None if re.fullmatch(r"(0x)?[0-9A-Fa-f]{1,16}", serial) else None


def device_facts(
    static: Mapping[int, Entry], listed: Mapping[int, Entry], metric: Mapping[int, Entry]
) -> tuple[DeviceFacts, ...]:
    """Say what the GPUs are, in amd-smi's order.

    A GPU is known by the chip's serial number, as ``GPU-…`` in the way of ROCm (``ROCR_VISIBLE_DEVICES``); where it
    is not told or not unique (partitions of one chip) by amd-smi's own id, else by its address.
    """
    serials = Counter(serial for entry in static.values() if (serial := _serial(entry)) is not None)
    found: dict[str, DeviceFacts] = {}
    for index in sorted(static.keys() | listed.keys() | metric.keys()):
        entry, named, measured = static.get(index, {}), listed.get(index, {}), metric.get(index, {})
        address = _text(entry, ("bus", "bdf")) or _text(named, ("bdf",))
        serial = _serial(entry)
        identity = (
            f"GPU-{serial:016x}" if serial is not None and serials[serial] == 1 else _text(named, ("uuid",))
        )
        identity = identity or (f"amd-at-{address.lower()}" if address else f"amd-gpu-{index}")
        if identity in found:
            identity = f"{identity[:80]}-{index}"
        memory = _first(entry, "mb", 2**53, *_MEMORY_SIZE) or _first(measured, "mb", 2**53, *_MEMORY_TOTAL)
        found[identity] = DeviceFacts(
            uuid=clean(identity, 96),
            index=index,
            name=_text(entry, ("asic", "market_name"), ("board", "product_name")) or "AMD GPU",
            vendor="amd",
            memory_total_bytes=_whole(memory) or None,
            pci_bus_id=address,
            clock_sm_max_hertz=_first(
                measured, "mhz", 1e12, ("clock", "gfx_0", "max_clk"), ("clock", "gfx", "max_clk")
            ),
        )
    return tuple(found.values())


def impossible(metric: Entry, static: Entry, facts: DeviceFacts, sample: DeviceSample) -> dict[str, object]:
    """Give what was said, by column, where a number that decides is unknown although the GPU has one."""
    told = {
        "memory_total_bytes": (
            facts.memory_total_bytes,
            _said(static, *_MEMORY_SIZE) or _said(metric, *_MEMORY_TOTAL),
        ),
        "memory_used_bytes": (sample.memory_used_bytes, _said(metric, *_MEMORY_USED)),
        "utilization_gpu": (sample.utilization_gpu, _said(metric, *_UTILIZATION)),
    }
    return {column: words[0] for column, (value, words) in told.items() if value is None and words}


def _said(entry: Entry, *paths: tuple[str, ...]) -> list[object]:
    """Give what stands at these places, other than that there is no such value."""
    found = (_part(entry, *path) for path in paths)
    values = (part.get("value") if isinstance(part, dict) else part for part in found)
    return [
        value for value in values if value is not None and str(value).strip().lower() not in _NOT_SUPPORTED
    ]


def device_sample(metric: Entry, static: Entry, memory_total_bytes: int | None = None) -> DeviceSample:
    """Say what a GPU does, from its entry in ``metric``; its limits stand in ``static``."""
    used = _whole(_first(metric, "mb", 2**53, *_MEMORY_USED))
    if used is not None and memory_total_bytes is not None and used > memory_total_bytes:
        used = None  # more than there is
    throttle = _text(metric, ("power", "throttle_status"))
    return DeviceSample(
        utilization_gpu=_first(metric, "%", 1, *_UTILIZATION),
        utilization_memory=_first(metric, "%", 1, ("usage", "umc_activity"), ("usage", "mem_usage")),
        memory_used_bytes=used,
        temperature_celsius=_first(metric, "c", 250, ("temperature", "edge"), ("temperature", "hotspot")),
        power_watts=_first(
            metric, "w", 100_000,
            ("power", "socket_power"), ("power", "current_socket_power"), ("power", "average_socket_power"),
        ),
        power_limit_watts=_first(
            static, "w", 100_000,
            ("limit", "socket_power"), ("limit", "ppt0", "socket_power_limit"), ("limit", "max_power"),
            ("limit", "power"),
        ),
        fan_ratio=_first(metric, "%", 1, ("fan", "usage")),
        clock_sm_hertz=_first(metric, "mhz", 1e12, ("clock", "gfx_0", "clk"), ("clock", "gfx", "clk")),
        clock_memory_hertz=_first(metric, "mhz", 1e12, ("clock", "mem_0", "clk"), ("clock", "mem", "clk")),
        throttle_reasons={"UNTHROTTLED": 0, "THROTTLED": int(ThrottleReason.OTHER)}.get((throttle or "").upper()),
        ecc_corrected=_whole(_first(metric, "", 2**53, ("ecc", "total_correctable_count"))),
        ecc_uncorrected=_whole(_first(metric, "", 2**53, ("ecc", "total_uncorrectable_count"))),
        energy_joules=_first(metric, "j", 1e15, ("energy", "total_energy_consumption")),
    )  # fmt: skip


def uses(
    processes: Mapping[int, Entry], indices: Sequence[int]
) -> tuple[tuple[SeenUse, ...], tuple[int, ...]]:
    """List who is on which GPU, and the GPUs whose list cannot be read.

    ``indices`` are those of the device list; places in its order are given.
    """
    found: dict[tuple[int, int], SeenUse] = {}
    unread: dict[int, None] = {}
    for place, index in enumerate(indices):
        listed = processes.get(index, {}).get("process_list")
        if not isinstance(listed, list):
            unread[place] = None
            continue
        for item in listed:
            told = _part(item, "process_info")
            process = told if isinstance(told, dict) else item
            pid = _number(_part(process, "pid"), "", 2**32)
            if pid is None:
                if not str(told).lower().startswith("no running"):
                    unread[place] = None
                continue
            memory = _first(process, "b", 2**53, ("memory_usage", "vram_mem"), ("vram_mem",), ("mem_usage",))
            use = SeenUse(device=place, pid=int(pid), gpu_memory_bytes=_whole(memory))
            found.setdefault((use.device, use.pid), use)
    return tuple(found.values()), tuple(unread)
