"""Segment files as agents of the first release wrote them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from gpuherd.agent.numbering import Entry

__all__ = ["write_old_segment"]

_HEAD = struct.Struct("<IIBBxxQ")


def _record(entry: Entry, is_context: bool) -> bytes:
    rest = _HEAD.pack(0, 0, entry.kind, is_context, entry.seq)[8:] + entry.message
    return struct.pack("<II", len(entry.message), crc32(rest)) + rest


def write_old_segment(path: Path, context: Iterable[Entry], own: Iterable[Entry]) -> None:
    path.write_bytes(
        b"gpuherd spool 1\n"
        + b"".join(_record(entry, True) for entry in context)
        + b"".join(_record(entry, False) for entry in own)
    )
