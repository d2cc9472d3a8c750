"""Words of nvidia-smi as values of the model: its units, its bounds; ``None`` for what is not told or cannot be.

Where the same few words come round after round, from every GPU of a herd, their meaning is remembered: that costs a
fifth of parsing them. Callers keep words short (``query.MAX_ROW_LENGTH``), so it stays small whatever a node prints.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gpuherd.collect.nvidia_smi.words import number_of
from gpuherd.model.devices import ThrottleReason

__all__ = [
    "bounded",
    "bytes_of",
    "celsius_of",
    "count_of",
    "fan_ratio_of",
    "hertz_of",
    "index_of",
    "limit_watts_of",
    "ratio_of",
    "state_of",
    "throttle_flags",
    "throttling_of",
    "watts_of",
]

REMEMBERED_WORDS = 1024

_MIB = 2**20
_STATE = re.compile(r"P(\d{1,2})")


def bounded(number: float | None, low: float, high: float) -> float | None:
    """Drop what cannot be."""
    return number if number is not None and low <= number <= high else None


def index_of(word: str | None) -> int:
    """Read a position in the driver's order; 0 for what is none."""
    return int(bounded(number_of(word), 0, 4096) or 0)


@lru_cache(REMEMBERED_WORDS)
def ratio_of(word: str | None) -> float | None:
    """Read percent as a share."""
    number = bounded(number_of(word), 0, 100)
    return None if number is None else number / 100


@lru_cache(REMEMBERED_WORDS)
def fan_ratio_of(word: str | None) -> float | None:
    """Read percent of a fan, which may turn faster than it is meant to: that counts as its maximum."""
    number = bounded(number_of(word), 0, 200)
    return None if number is None else min(1.0, number / 100)


@lru_cache(4 * REMEMBERED_WORDS)
def bytes_of(word: str | None) -> int | None:
    """Read MiB."""
    number = bounded(number_of(word), 0, 2**33)
    return None if number is None else int(number * _MIB)


@lru_cache(REMEMBERED_WORDS)
def celsius_of(word: str | None) -> float | None:
    """Read a temperature."""
    return bounded(number_of(word), -60, 250)


def watts_of(word: str | None) -> float | None:
    """Read a power draw, which is hardly ever the same twice."""
    return bounded(number_of(word), 0, 100_000)


@lru_cache(REMEMBERED_WORDS)
def limit_watts_of(word: str | None) -> float | None:
    """Read a power limit."""
    return bounded(number_of(word), 0, 100_000)


@lru_cache(REMEMBERED_WORDS)
def hertz_of(word: str | None) -> float | None:
    """Read MHz."""
    number = bounded(number_of(word), 0, 1e6)
    return None if number is None else number * 1e6


@lru_cache(REMEMBERED_WORDS)
def count_of(word: str | None) -> int | None:
    """Read how often something happened."""
    number = bounded(number_of(word), 0, 2**53)
    return None if number is None else int(number)


@lru_cache(REMEMBERED_WORDS)
def state_of(word: str | None) -> int | None:
    """Read a performance state, ``P0`` to ``P15``."""
    found = _STATE.fullmatch(word or "")
    return int(found[1]) if found is not None and int(found[1]) <= 15 else None


@lru_cache(REMEMBERED_WORDS)
def throttling_of(word: str | None) -> int | None:
    """Read the mask of reasons for lower clocks, as ``ThrottleReason`` flags."""
    return throttle_flags(number_of(word))


def throttle_flags(bits: float | None) -> int | None:
    """Map the vendor's bits; those up to DISPLAY_CLOCKS have the same values."""
    if bits is None or bits < 0 or bits >= 2**63:
        return None
    mask = int(bits)
    return mask & 0x1FF | (int(ThrottleReason.OTHER) if mask & ~0x1FF else 0)
