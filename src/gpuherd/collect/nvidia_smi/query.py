"""Parsers of ``nvidia-smi --query-gpu`` and ``--query-compute-apps`` (CSV without header and units)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuherd.collect.nvidia_smi.words import Fault, fault_of, is_failure, label_of, number_of, text_of
from gpuherd.model.devices import DeviceFacts, DeviceSample, ThrottleReason
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = [
    "APP_FIELDS",
    "FIELDS",
    "App",
    "Row",
    "bounded",
    "parse_apps",
    "parse_help",
    "parse_rows",
    "row_device",
    "supported_fields",
    "throttle_flags",
]

Row = Mapping[str, str]
_MIB = 2**20
_SUSPICIOUS = ("err", "lost", "reset", "blocked")
"""One of these is in every word that tells a failure (``words.py``)."""
_PID = re.compile(r"[0-9]{1,9}")

FIELDS: tuple[tuple[str, ...], ...] = (
    ("index",),
    ("uuid",),
    ("name",),
    ("pci.bus_id",),
    ("driver_version",),
    ("compute_cap",),
    ("mig.mode.current",),
    ("memory.total",),
    ("memory.reserved",),
    ("memory.used",),
    ("utilization.gpu",),
    ("utilization.memory",),
    ("utilization.encoder",),
    ("utilization.decoder",),
    ("temperature.gpu",),
    ("power.draw",),
    ("enforced.power.limit", "power.limit"),
    ("power.default_limit",),
    ("fan.speed",),
    ("clocks.current.sm", "clocks.sm"),
    ("clocks.current.memory", "clocks.mem"),
    ("clocks.max.sm",),
    ("pstate",),
    ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    ("ecc.errors.corrected.volatile.total",),
    ("ecc.errors.uncorrected.volatile.total",),
)
"""What is asked for; of several names for one thing the first that this nvidia-smi knows."""

APP_FIELDS = ("gpu_uuid", "pid", "used_gpu_memory", "process_name")
"""The name is last, because it may hold commas."""

_METRICS = frozenset(field for names in FIELDS[7:] for field in names)


class App(NamedTuple):
    """A process of ``--query-compute-apps``."""

    gpu_uuid: str
    pid: int
    memory_bytes: int | None


def parse_help(content: bytes) -> frozenset[str]:
    """Find the field names in ``--help-query-gpu``: lines such as ``"clocks.current.sm" or "clocks.sm"``."""
    lines = content.decode(errors="replace").splitlines()
    return frozenset(
        name for line in lines if line.startswith('"') for name in re.findall(r'"([\w.]+)"', line)
    )


def supported_fields(known: frozenset[str]) -> list[str]:
    """Choose the fields to ask for; with nothing known of this nvidia-smi, the first of each."""
    if not known:
        return [names[0] for names in FIELDS]
    return [found for names in FIELDS if (found := next((name for name in names if name in known), None))]


def parse_rows(content: bytes, fields: Sequence[str]) -> list[Row]:
    """Read the CSV; lines of another shape (warnings, which go to the same place) are left out."""
    rows: list[Row] = []
    for line in content.decode(errors="replace").splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == len(fields) and number_of(words[0]) is not None:
            rows.append(dict(zip(fields, words, strict=True)))
    return rows


def parse_apps(content: bytes) -> list[App]:
    """Read the process list in the order of ``APP_FIELDS``."""
    apps = []
    for line in content.decode(errors="replace").splitlines():
        words = [word.strip() for word in line.split(",", 3)]
        if len(words) < 3 or not _PID.fullmatch(words[1]) or not text_of(words[0]):
            continue
        memory = bounded(number_of(words[2]), 0, 2**33)
        apps.append(App(words[0], int(words[1]), None if memory is None else int(memory * _MIB)))
    return apps


def bounded(number: float | None, low: float, high: float) -> float | None:
    """Drop what cannot be."""
    return number if number is not None and low <= number <= high else None


def throttle_flags(bits: float | None) -> int | None:
    """Map the vendor's bits; those up to DISPLAY_CLOCKS have the same values."""
    if bits is None or bits < 0 or bits >= 2**63:
        return None
    mask = int(bits)
    return mask & 0x1FF | (int(ThrottleReason.OTHER) if mask & ~0x1FF else 0)


def row_device(row: Row) -> tuple[DeviceFacts, DeviceSample, list[Problem]]:
    """Make facts, sample and problems of one GPU's row."""

    def first(*names: str) -> float | None:
        for name in names:
            if name in row:
                return number_of(row[name])
        return None

    def scaled(scale: float, high: float, *names: str) -> float | None:
        number = bounded(first(*names), 0, high)
        return None if number is None else number * scale

    def percent(name: str) -> float | None:
        number = bounded(first(name), 0, 100)
        return None if number is None else number / 100

    def whole(scale: int, high: float, name: str) -> int | None:
        number = bounded(first(name), 0, high)
        return None if number is None else int(number * scale)

    index = int(bounded(number_of(row["index"]), 0, 4096) or 0)
    is_partitioned = row.get("mig.mode.current", "").lower() == "enabled"
    fan = bounded(first("fan.speed"), 0, 200)
    pstate = text_of(row.get("pstate")) or ""
    # Before 510 there was no reserved part to ask for, and used included it.
    total, has_reserved = whole(_MIB, 2**33, "memory.total"), "memory.reserved" in row
    facts = DeviceFacts(
        uuid=clean(text_of(row.get("uuid")) or f"gpu-{index}-without-uuid", 96),
        index=index,
        name=clean(text_of(row.get("name")) or "NVIDIA GPU"),
        is_partitioned=is_partitioned,
        memory_total_bytes=total,
        memory_basis="framebuffer" if has_reserved else "framebuffer_with_reserved",
        pci_bus_id=label_of(row.get("pci.bus_id")),
        compute_capability=label_of(row.get("compute_cap")),
        clock_sm_max_hertz=scaled(1e6, 1e6, "clocks.max.sm"),
        power_limit_default_watts=bounded(first("power.default_limit"), 0, 100_000),
    )
    sample = DeviceSample(
        utilization_gpu=None if is_partitioned else percent("utilization.gpu"),
        utilization_memory=None if is_partitioned else percent("utilization.memory"),
        utilization_encoder=None if is_partitioned else percent("utilization.encoder"),
        utilization_decoder=None if is_partitioned else percent("utilization.decoder"),
        memory_used_bytes=whole(_MIB, 2**33, "memory.used"),
        memory_reserved_bytes=whole(_MIB, 2**33, "memory.reserved"),
        temperature_celsius=bounded(first("temperature.gpu"), -60, 250),
        power_watts=bounded(first("power.draw"), 0, 100_000),
        power_limit_watts=bounded(first("enforced.power.limit", "power.limit"), 0, 100_000),
        fan_ratio=None if fan is None else min(1.0, fan / 100),
        clock_sm_hertz=scaled(1e6, 1e6, "clocks.current.sm", "clocks.sm"),
        clock_memory_hertz=scaled(1e6, 1e6, "clocks.current.memory", "clocks.mem"),
        performance_state=int(pstate[1:])
        if re.fullmatch(r"P\d{1,2}", pstate) and int(pstate[1:]) <= 15
        else None,
        throttle_reasons=throttle_flags(
            first("clocks_event_reasons.active", "clocks_throttle_reasons.active")
        ),
        ecc_corrected=whole(1, 2**53, "ecc.errors.corrected.volatile.total"),
        ecc_uncorrected=whole(1, 2**53, "ecc.errors.uncorrected.volatile.total"),
    )
    return facts, sample, _problems(facts, row)


def _problems(facts: DeviceFacts, row: Row) -> list[Problem]:
    words = "\n".join(row.values()).lower()
    if not any(part in words for part in _SUSPICIOUS):
        return []
    for word in row.values():
        fault = fault_of(word)
        if fault is not None:
            return [_fault_problem(facts, fault)]
    failed = [field for field, word in row.items() if is_failure(word)]
    if not failed:
        return []
    answered: Iterable[str] = (
        field for field in row if field in _METRICS and text_of(row[field]) is not None
    )
    if not any(answered):
        fault = Fault("gpu_error", "look for Xid messages in the kernel log, then reset it or reboot")
        return [_fault_problem(facts, fault)]
    return [
        Problem(
            code="metric_failed",
            message=clean(
                f"nvidia-smi fails to read {', '.join(failed)}; a reload of the driver may help", 512
            ),
            device_uuid=facts.uuid,
        )
    ]


def _fault_problem(facts: DeviceFacts, fault: Fault) -> Problem:
    return Problem(
        code=fault.code,
        message=f"GPU {facts.index} cannot be read: {fault.remedy}",
        device_uuid=facts.uuid,
        is_fault=True,
    )
