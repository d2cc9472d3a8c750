"""One GPU as nvidia-smi tells it, whether in a row of CSV or in the XML log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from gpuherd.collect.health import recovery_problem, remap_problems, retirement_problems
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
from gpuherd.collect.nvidia_smi.words import Fault, fault_of, is_failure, is_not_supported, label_of, text_of
from gpuherd.collect.reading import impossible_values
from gpuherd.model.devices import DeviceFacts, DeviceSample, HealthCheck
from gpuherd.model.reports import Problem
from gpuherd.model.text import clean

__all__ = [
    "DRIVER_VERSION",
    "FIELDS",
    "Row",
    "Words",
    "has_own_uuid",
    "hints_at_failure",
    "problems_of",
    "row_device",
    "undecided",
    "unhealthy",
    "unknown_layout",
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
    ("retired_pages.pending",),
    ("remapped_rows.pending",),
    ("remapped_rows.failure",),
    ("gpu_recovery_action",),
)
"""What is asked for; of several names for one thing the first that this nvidia-smi knows."""

DRIVER_VERSION = FIELDS.index(("driver_version",))
_MEMORY_TOTAL, _MEMORY_USED, _UTILIZATION = (
    FIELDS.index((name,)) for name in ("memory.total", "memory.used", "utilization.gpu")
)
_MIG_MODE = FIELDS.index(("mig.mode.current",))
_MIG_MODES = ("enabled", "disabled")
_HEALTH = FIELDS.index(("retired_pages.pending",))
_METRICS = frozenset(field for names in FIELDS[7:_HEALTH] for field in names)


def hints_at_failure(content: bytes) -> bool:
    """Whether some word of an answer may tell of a failure; ``False`` saves looking at each."""
    lowered = content.lower()
    return any(part in lowered for part in _SUSPICIOUS)


def row_device(row: Row) -> tuple[DeviceFacts, DeviceSample, Sequence[Problem]]:
    """Make facts, sample and problems of one GPU's row."""
    words = tuple(next((row[name] for name in names if name in row), None) for names in FIELDS)
    facts, sample = words_device(words)
    problems = problems_of(facts, row) or undecided(facts, sample, words)
    problems += unknown_layout(facts, words, problems)
    return facts, sample, problems + unhealthy(facts, words)


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
        *health,
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
        _checks(*health),
    )
    is_whole = not facts.is_partitioned
    sample = DeviceSample(
        utilization_gpu=ratio_of(utilization_gpu) if is_whole else None,
        utilization_memory=ratio_of(utilization_memory) if is_whole else None,
        utilization_encoder=ratio_of(utilization_encoder) if is_whole else None,
        utilization_decoder=ratio_of(utilization_decoder) if is_whole else None,
        memory_used_bytes=_within(bytes_of(memory_used), facts.memory_total_bytes),
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


def _within(used: int | None, total: int | None) -> int | None:
    """Drop what cannot be: more in use than there is."""
    return None if used is not None and total is not None and used > total else used


def has_own_uuid(facts: DeviceFacts) -> bool:
    """Whether nvidia-smi has told the GPU's UUID."""
    return facts.uuid.startswith("GPU-")


def undecided(facts: DeviceFacts, sample: DeviceSample, words: Words) -> list[Problem]:
    """Say which numbers that decide are missing, although nvidia-smi does not say that the GPU has no such thing."""
    if sample.memory_used_bytes is not None and (sample.utilization_gpu is not None or facts.is_partitioned):
        return []
    told: dict[str, tuple[float | None, str | None]] = {
        "memory_total_bytes": (facts.memory_total_bytes, words[_MEMORY_TOTAL]),
        "memory_used_bytes": (sample.memory_used_bytes, words[_MEMORY_USED]),
    }
    if not facts.is_partitioned:
        told["utilization_gpu"] = (sample.utilization_gpu, words[_UTILIZATION])
    failed = {
        name: word or ""
        for name, (value, word) in told.items()
        if value is None and not is_not_supported(word)
    }
    return impossible_values("nvidia-smi", facts, failed)


def unknown_layout(facts: DeviceFacts, words: Words, told: Sequence[Problem]) -> list[Problem]:
    """Say that nvidia-smi does not tell whether a GPU is split into slices, so that it may not be a whole one.

    Not if it is in fault by what was ``told`` of it.
    """
    mode = words[_MIG_MODE]
    if mode is None or any(problem.is_fault for problem in told):
        return []
    if mode.strip().lower() in _MIG_MODES or is_not_supported(mode):
        return []
    text = f"nvidia-smi does not tell whether GPU {facts.index} is split into slices (MIG), but {clean(mode, 40)!r}"
    return [Problem(code="processes_failed", message=f"{text}: run it as root", device_uuid=facts.uuid)]


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
    health_checks: tuple[HealthCheck, ...],
) -> DeviceFacts:
    index = index_of(index_word)
    return DeviceFacts(
        uuid=clean(text_of(uuid) or f"gpu-{index}-without-uuid", 96),
        index=index,
        name=clean(text_of(name) or "NVIDIA GPU"),
        is_partitioned=(mig_mode or "").lower() == "enabled",
        memory_total_bytes=bytes_of(memory_total) or None,
        # Before 510 there was no reserved part to ask for, and used included it.
        memory_basis="framebuffer" if has_reserved else "framebuffer_with_reserved",
        pci_bus_id=label_of(address),
        compute_capability=label_of(compute_capability),
        clock_sm_max_hertz=hertz_of(clock_sm_max),
        power_limit_default_watts=limit_watts_of(power_limit_default),
        health_checks=health_checks,
    )


@lru_cache(REMEMBERED_FACTS)
def _checks(
    retirement: str | None, remap: str | None, failure: str | None, action: str | None
) -> tuple[HealthCheck, ...]:
    """Name the registers of health that could be read."""
    found: list[HealthCheck] = []
    if None not in (_is_so(remap), _is_so(failure)):
        found.append("row_remap")
    if _is_so(retirement) is not None:
        found.append("page_retirement")
    if action is not None and (text_of(action) or action.strip().lower() == "none"):
        found.append("recovery_action")
    return tuple(found)


def _is_so(word: str | None) -> bool | None:
    return {"yes": True, "no": False}.get((word or "").strip().lower())


def unhealthy(facts: DeviceFacts, words: Words) -> list[Problem]:
    """Say what the registers of health tell."""
    retirement, remap, failure, action = words[_HEALTH:]
    found = retirement_problems(facts, is_pending=bool(_is_so(retirement)))
    found += remap_problems(facts, is_pending=bool(_is_so(remap)), has_failed=bool(_is_so(failure)))
    wanted = text_of(action)
    return found + recovery_problem(facts, clean(wanted, 40)) if wanted else found


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
