"""One GPU as nvidia-smi tells it, whether in a row of CSV or in the XML log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from gpuherd.collect.nvidia_smi.values import (
    bytes_of,
    celsius_of,
    count_of,
    fan_ratio_of,
    hertz_of,
    index_of,
    limit_watts_of,
    ratio_of,
    state_of,
    throttling_of,
    watts_of,
)
from gpuherd.collect.nvidia_smi.words import Fault, fault_of, is_failure, label_of, text_of
from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = [
    "DRIVER_VERSION",
    "FIELDS",
    "Row",
    "Words",
    "hints_at_failure",
    "problems_of",
    "row_device",
    "words_device",
]

Row = Mapping[str, str]
"""Words by field."""
Words = tuple[str | None, ...]
"""Words in the order of ``FIELDS``; ``None`` for what was not asked for."""
REMEMBERED_FACTS = 8192
_SUSPICIOUS = (b"err", b"lost", b"reset", b"blocked")
"""One of these is in every word that tells a failure (``words.py``)."""

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

DRIVER_VERSION = FIELDS.index(("driver_version",))
_METRICS = frozenset(field for names in FIELDS[7:] for field in names)


def hints_at_failure(content: bytes) -> bool:
    """Whether some word of an answer may tell of a failure; ``False`` saves looking at each."""
    lowered = content.lower()
    return any(part in lowered for part in _SUSPICIOUS)


def row_device(row: Row) -> tuple[DeviceFacts, DeviceSample, Sequence[Problem]]:
    """Make facts, sample and problems of one GPU's row."""
    words = tuple(next((row[name] for name in names if name in row), None) for names in FIELDS)
    facts, sample = words_device(words)
    return facts, sample, problems_of(facts, row)


def words_device(words: Words) -> tuple[DeviceFacts, DeviceSample]:
    """Make facts and sample of one GPU's words; the same facts object for the same words."""
    (
        index,
        uuid,
        name,
        address,
        _,
        compute_capability,
        mig_mode,
        memory_total,
        memory_reserved,
        memory_used,
        utilization_gpu,
        utilization_memory,
        utilization_encoder,
        utilization_decoder,
        temperature,
        power,
        power_limit,
        power_limit_default,
        fan,
        clock_sm,
        clock_memory,
        clock_sm_max,
        state,
        throttling,
        ecc_corrected,
        ecc_uncorrected,
    ) = words
    facts = _facts(
        index,
        uuid,
        name,
        address,
        compute_capability,
        mig_mode,
        memory_total,
        memory_reserved is not None,
        clock_sm_max,
        power_limit_default,
    )
    is_whole = not facts.is_partitioned
    sample = DeviceSample(
        utilization_gpu=ratio_of(utilization_gpu) if is_whole else None,
        utilization_memory=ratio_of(utilization_memory) if is_whole else None,
        utilization_encoder=ratio_of(utilization_encoder) if is_whole else None,
        utilization_decoder=ratio_of(utilization_decoder) if is_whole else None,
        memory_used_bytes=bytes_of(memory_used),
        memory_reserved_bytes=bytes_of(memory_reserved),
        temperature_celsius=celsius_of(temperature),
        power_watts=watts_of(power),
        power_limit_watts=limit_watts_of(power_limit),
        fan_ratio=fan_ratio_of(fan),
        clock_sm_hertz=hertz_of(clock_sm),
        clock_memory_hertz=hertz_of(clock_memory),
        performance_state=state_of(state),
        throttle_reasons=throttling_of(throttling),
        ecc_corrected=count_of(ecc_corrected),
        ecc_uncorrected=count_of(ecc_uncorrected),
    )
    return facts, sample


@lru_cache(REMEMBERED_FACTS)
def _facts(
    index_word: str | None,
    uuid: str | None,
    name: str | None,
    address: str | None,
    compute_capability: str | None,
    mig_mode: str | None,
    memory_total: str | None,
    has_reserved: bool,
    clock_sm_max: str | None,
    power_limit_default: str | None,
) -> DeviceFacts:
    index = index_of(index_word)
    return DeviceFacts(
        uuid=clean(text_of(uuid) or f"gpu-{index}-without-uuid", 96),
        index=index,
        name=clean(text_of(name) or "NVIDIA GPU"),
        is_partitioned=(mig_mode or "").lower() == "enabled",
        memory_total_bytes=bytes_of(memory_total),
        # Before 510 there was no reserved part to ask for, and used included it.
        memory_basis="framebuffer" if has_reserved else "framebuffer_with_reserved",
        pci_bus_id=label_of(address),
        compute_capability=label_of(compute_capability),
        clock_sm_max_hertz=hertz_of(clock_sm_max),
        power_limit_default_watts=limit_watts_of(power_limit_default),
    )


def problems_of(facts: DeviceFacts, row: Row) -> list[Problem]:
    """Say what the words tell of failures."""
    if not hints_at_failure("\n".join(row.values()).encode(errors="replace")):
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
