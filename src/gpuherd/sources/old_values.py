"""Values as older tools write them: JSON of any type, or the words nvidia-smi prints in place of a number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuherd.model.reports import Problem
from gpuherd.model.text import LABEL_LENGTH, clean

__all__ = ["label", "mebibytes", "number", "ratio", "value_problems", "whole"]

_MIB = 2**20
_MOST_MEBIBYTES = 2**33
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?(?![\d.])")
_NOTHING = frozenset(
    {"", "-", "?", "??", "n/a", "none", "null", "nan", "not supported", "not found", "not active", "unknown"}
)


def number(value: object, low: float, high: float) -> float | None:
    """Read a number, as such or as text with or without a unit behind it; ``None`` for all that cannot be."""
    if isinstance(value, str):
        found = _NUMBER.match(value.strip())
        value = float(found[0]) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None  # false for NaN


def whole(value: object, low: int, high: int) -> int | None:
    """Read a whole number; a fraction is none."""
    found = number(value, low, high)
    return None if found is None or not found.is_integer() else int(found)


def ratio(value: object) -> float | None:
    """Read a percentage as a share of 1."""
    percent = number(value, 0, 100)
    return None if percent is None else percent / 100


def mebibytes(value: object) -> int | None:
    """Read MiB as bytes."""
    size = number(value, 0, _MOST_MEBIBYTES)
    return None if size is None else int(size * _MIB)


def label(value: object, length: int = LABEL_LENGTH) -> str | None:
    """Read a name, made harmless; ``None`` for "[N/A]", "?" and alike."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    return None if _is_nothing(text) else clean(text, length)


def _is_nothing(text: str) -> bool:
    return text.strip("[]").strip().lower() in _NOTHING


def value_problems(
    uuid: str, index: int, values: Iterable[tuple[str, object]], utilization: str = ""
) -> tuple[Problem, ...]:
    """Tell what stands where numbers should be: a lost GPU, or a driver that fails to answer.

    "[N/A]" is no problem: a card that lacks a sensor is a good card. "[Unknown Error]" is one, because the value that
    could not be read might have said that the GPU is taken. So might an impossible number in the field ``utilization``.
    """
    failed = []
    for name, value in values:
        if value is None or (isinstance(value, str) and _is_nothing(value)):
            continue
        if not isinstance(value, str) or _NUMBER.match(value.strip()):
            if name == utilization and ratio(value) is None:
                failed.append(name)
            continue
        words = value.lower()
        if "is lost" in words:
            return (
                _fault(
                    uuid, index, "gpu_lost", "it has fallen off the bus; reboot, and check power and seating"
                ),
            )
        if "reset" in words and "requir" in words:
            remedy = "stop its processes and run 'nvidia-smi --gpu-reset', or reboot"
            return (_fault(uuid, index, "reset_required", remedy),)
        failed.append(name)
    if not failed:
        return ()
    message = f"the node cannot read {', '.join(failed)} of GPU {index}; a reload of the driver may help"
    return (Problem(code="metric_failed", message=clean(message, 512), device_uuid=uuid),)


def _fault(uuid: str, index: int, code: str, remedy: str) -> Problem:
    return Problem(
        code=code, message=f"GPU {index} cannot be read: {remedy}", device_uuid=uuid, is_fault=True
    )
