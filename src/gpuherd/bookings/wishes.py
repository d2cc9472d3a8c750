"""What a device must be to fit a wish such as ``2 x A100 80GB``."""

from __future__ import annotations

import re
from functools import lru_cache

from gpuherd.bookings.refusals import Unfit
from gpuherd.bookings.requests import MAX_DEVICES, AnyDevices
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.text import clean

__all__ = ["fits", "read_wish"]

# A number before × is a count, one alone only up to three digits: 4090 and 3090 Ti are models.
_WISH = re.compile(
    r"(?:any(?:\s+|$))?(?:(?P<times>\d{1,4})\s*(?:[x×*]\s*|$)|(?P<count>\d{1,3})\s+)?(?P<model>.*)",
    re.IGNORECASE | re.ASCII,
)
_WORDS = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")
_SIZE = re.compile(r"(\d+)gi?b?", re.ASCII)
_GIB = 2**30


def read_wish(text: str, *, path: str = "any") -> AnyDevices:
    """Read ``2 x A100 80GB``, ``any 2 A100``, ``A100`` or ``2``; ``Unfit`` if there is nothing to it."""
    found = _WISH.fullmatch(" ".join(text.split()))
    if found is None:
        raise AssertionError("the pattern takes every line")
    count, model = int(found["times"] or found["count"] or 1), found["model"].strip()
    if count and len(str(count)) == 4 and not model:
        count, model = 1, found["times"]  # a model whose name is a number
    if not 1 <= count <= MAX_DEVICES or (not model and not (found["times"] or found["count"])):
        raise Unfit(
            "unreadable_wish",
            f'"{clean(text, 60)}" is not a number and a type; write for example 2 x A100 80GB, up to {MAX_DEVICES}',
            path=path,
        )
    if model and not _words(model):
        raise Unfit("unreadable_wish", f'"{clean(model, 60)}" is not a GPU type', path=path)
    return AnyDevices(count=count, model=model[:128] or None)


def fits(device: ListedDevice, wish: AnyDevices) -> bool:
    """Tell whether a device is of the kind wished for. Quick: a herd has many devices and few names.

    Every word must be one of its name or its size in GB. Slices fit only if their profile is among the words: who
    wants an A100 does not want a seventh of one.
    """
    if wish.min_memory_bytes is not None and (device.memory_total_bytes or 0) < wish.min_memory_bytes:
        return False
    wanted = _words(wish.model or "")
    if device.parent_uuid is not None and not any("." in word or word == "mig" for word in wanted):
        return False
    return not wanted or wanted <= _all_words(
        device.short_name, device.full_name, device.memory_total_bytes, device.parent_uuid is not None
    )


@lru_cache(1024)
def _all_words(
    short_name: str, full_name: str, memory_total_bytes: int | None, is_slice: bool
) -> frozenset[str]:
    words = set(_words(short_name) | _words(full_name))
    if memory_total_bytes is not None:
        words.add(f"{round(memory_total_bytes / _GIB)}gb")
    if is_slice:
        words.add("mig")
    return frozenset(words)


@lru_cache(1024)
def _words(text: str) -> frozenset[str]:
    """Split a name into words; 80G, 80 GB and 80GiB are the same."""
    words: list[str] = []
    for word in _WORDS.findall(text.casefold()):
        if word in ("g", "gb", "gib") and words and words[-1].isdecimal():
            words[-1] += "gb"
        elif size := _SIZE.fullmatch(word):
            words.append(f"{size[1]}gb")
        else:
            words.append(word)
    return frozenset(words)
