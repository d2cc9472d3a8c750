"""What nvidia-smi prints in place of a value: not available, or an error."""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from gpuherd.model.text import clean

__all__ = ["Fault", "fault_of", "is_failure", "is_not_supported", "label_of", "number_of", "text_of"]

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_DIGITS = frozenset("0123456789")
_FAILURES = (
    "err!",
    "unknown error",
    "gpu is lost",
    "gpu requires reset",
    "reset required",
    "gpu access blocked",
)
_NOTHING = frozenset(
    {"", "-", "n/a", "none", "not supported", "not found", "not active", "unknown", "disabled"}
)


class Fault(NamedTuple):
    """A state in which the device as a whole must not be used."""

    code: str
    remedy: str


_LOST = Fault(
    "gpu_lost", "it has fallen off the bus; reboot, and check its power and seating if it comes back"
)
_RESET = Fault("reset_required", "stop its processes and run 'nvidia-smi --gpu-reset', or reboot")


def _bare(word: str) -> str:
    return word.strip().strip("[]").strip().lower()


def fault_of(word: str) -> Fault | None:
    """Recognise words that condemn the whole device."""
    if word[:1] in _DIGITS:
        return None  # most words are numbers
    bare = _bare(word)
    if "is lost" in bare:
        return _LOST
    return _RESET if "reset" in bare and "requir" in bare else None


def is_failure(word: str) -> bool:
    """Whether the driver failed to answer, as opposed to having no such value."""
    return word[:1] not in _DIGITS and _bare(word).startswith(_FAILURES)


def is_not_supported(word: str | None) -> bool:
    """Whether the device has no such value; also for a field that was not asked for."""
    return word is None or _bare(word) in ("n/a", "not supported")


def text_of(word: str | None) -> str | None:
    """Give a text, or ``None`` for "[N/A]", "[Not Supported]", "-", "ERR!", "[Unknown Error]" and alike."""
    if word is None:
        return None
    word = word.strip()
    if word[:1] in _DIGITS:
        return word
    bare = _bare(word)
    is_bracketed = word.startswith("[") and word.endswith("]")
    return None if is_bracketed or bare in _NOTHING or bare.startswith(_FAILURES) else word


def label_of(word: str | None) -> str | None:
    """Give a text as it may be shown."""
    text = text_of(word)
    return None if text is None else clean(text)


def number_of(word: str | None) -> float | None:
    """Give a number, with or without its unit behind it; a hexadecimal mask too."""
    if word is None:
        return None
    text = word
    if word[:1] in _DIGITS:
        try:
            number = float(word)
        except ValueError:
            pass  # a unit behind it, or a mask
        else:
            return number if isfinite(number) else None
    if word[:1] not in _DIGITS or word[1:2] in ("x", "X"):
        told = text_of(word)
        if told is None:
            return None
        text = told
        if text.lower().startswith("0x"):
            try:
                return int(text, 16)
            except ValueError:
                return None
    found = _NUMBER.match(text)
    return float(found[0]) if found else None
