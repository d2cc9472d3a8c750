"""What someone wants to have: how many, of which kind, how large, for how long."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from gpuherd.client.herd_views import Gpu
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

__all__ = ["SIZE_TOLERANCE", "Wish", "fits", "read_size", "read_span", "read_type"]

GIB = 2**30
SIZE_TOLERANCE = 0.07
"""A card sold as 24, 40 or 80 GB has a few per cent less or more; the page compares sizes in the same way."""
MAX_SPAN_SECONDS = 366 * 86_400

_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_SIZE_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SPAN_PART = r"(\d{1,6}(?:\.\d{1,6})?)\s*(w|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)"
_SPAN = re.compile(rf"{_SPAN_PART}(?:(?:\s*,\s*|\s+and\s+|\s*){_SPAN_PART})*", re.ASCII)
_SPAN_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WORDS = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")
_NAMED_SIZE = re.compile(r"(\d{1,6})gi?b?", re.ASCII)


class Wish(Struct, frozen=True, kw_only=True):
    """So many devices of a kind. ``type_words`` are those that the name of a device must have."""

    count: int = 1
    type_words: frozenset[str] = frozenset()
    min_memory_bytes: int | None = None
    same_node: bool = False

    def __str__(self) -> str:
        kind = " ".join(sorted(self.type_words)) or ("GPU" if self.count == 1 else "GPUs")
        large = "" if self.min_memory_bytes is None else f" of {self.min_memory_bytes / GIB:g}G"
        return f"{self.count} {kind}{large}{' on one node' if self.same_node and self.count > 1 else ''}"


def fits(gpu: Gpu, wish: Wish) -> bool:
    """Tell whether a device is of the kind that is wanted, whoever has it.

    As in bookings, slices fit only if their profile or ``mig`` is among the words: who wants an A100 does not want a
    seventh of one. A partitioned GPU never fits, nor does one of unknown size if a size is wanted.
    """
    facts = gpu.facts
    is_slice = facts.parent_uuid is not None
    if facts.is_partitioned or (
        is_slice and not any("." in word or word == "mig" for word in wish.type_words)
    ):
        return False
    if wish.min_memory_bytes is not None:
        least = wish.min_memory_bytes * (1 - SIZE_TOLERANCE)
        if facts.memory_total_bytes is None or facts.memory_total_bytes < least:
            return False
    missing = wish.type_words - _words_of(gpu.short_name, facts.name, facts.profile or "", is_slice)
    return all(_is_size_of(word, facts.memory_total_bytes) for word in missing)


@lru_cache(1024)
def _words_of(short_name: str, name: str, profile: str, is_slice: bool) -> frozenset[str]:
    words = _split(short_name) | _split(name) | _split(profile)
    return words | {"mig"} if is_slice else words


def _is_size_of(word: str, memory_total_bytes: int | None) -> bool:
    """Tell whether a word such as 48gb is the size that a card of so many bytes is sold as."""
    size = _NAMED_SIZE.fullmatch(word)
    if size is None or memory_total_bytes is None:
        return False
    gib, sold_as_gib = memory_total_bytes / GIB, int(size[1])
    return round(gib) == sold_as_gib or abs(gib - sold_as_gib) <= sold_as_gib * SIZE_TOLERANCE


def read_type(text: str) -> frozenset[str]:
    """Read ``a100``, ``A100-80G`` or ``1g.10gb``; ``Refused`` if there is no word in it."""
    words = _split(text)
    if not words:
        raise Refused("unreadable_wish", f'"{clean(text, 60)}" is not a GPU type; write for example a100')
    return words


@lru_cache(1024)
def _split(text: str) -> frozenset[str]:
    """Split a name into words; 80G, 80 GB and 80GiB are the same."""
    words: list[str] = []
    for word in _WORDS.findall(text.casefold()):
        if word in ("g", "gb", "gib") and words and words[-1].isdecimal():
            words[-1] += "gb"
        elif size := _NAMED_SIZE.fullmatch(word):
            words.append(f"{size[1]}gb")
        else:
            words.append(word)
    return frozenset(words)


def read_size(text: str) -> int:
    """Give the bytes that ``40G``, ``40 GiB``, ``500M`` or ``40`` (GiB) mean; ``Refused`` if it is no size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise Refused("unreadable_wish", f'"{clean(text, 60)}" is not a size; write for example 40G')
    return round(float(found[1]) * _SIZE_UNITS[found[2].lower() or "g"])


def read_span(text: str) -> int:
    """Give the seconds that ``4h``, ``90m`` or ``3d 4h`` mean; ``Refused`` if it is no span of time."""
    lowered = text.strip().lower()
    if _SPAN.fullmatch(lowered):
        parts = re.findall(_SPAN_PART, lowered)
        seconds = round(sum(float(number) * _SPAN_SECONDS[unit[0]] for number, unit in parts))
        if 0 < seconds <= MAX_SPAN_SECONDS:
            return seconds
    raise Refused(
        "unreadable_time", f'"{clean(text, 60)}" is not a duration of up to a year; write for example 4h'
    )
