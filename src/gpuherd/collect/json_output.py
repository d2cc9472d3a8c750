"""JSON that a tool printed among warnings."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

__all__ = ["printed_json"]

_STARTS = re.compile(r"[\[{]")
_MOST_STARTS = 64
"""How many brackets are tried: warnings may hold some."""


def printed_json(content: bytes) -> Any:
    """Give the longest object or list in it, as warnings may hold brackets too; ``DecodeError`` if there is none."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = content.decode(errors="replace")
    best: Any = None
    length = 0
    decoder = json.JSONDecoder()
    place = 0
    for _ in range(_MOST_STARTS):
        start = _STARTS.search(text, place)
        if start is None:
            break
        try:
            found, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            place = start.end()
            continue
        if end - start.start() > length:
            best, length = found, end - start.start()
        place = end
    if best is None:
        raise msgspec.DecodeError("its output contains no JSON")
    return best
