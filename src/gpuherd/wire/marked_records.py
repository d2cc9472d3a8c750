"""Records in an append-only file: mark, length, checksum, payload.

The mark is derived from the file's name, which contains a secret salt. A damaged record does not affect the others:
reading continues at the next mark. Because the mark cannot be guessed, no payload can imitate a record.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

__all__ = ["HEADER_BYTES", "FoundRecords", "Mark", "mark_of", "read_records"]

_HEADER = struct.Struct("<8sII")
HEADER_BYTES = _HEADER.size

T = TypeVar("T")


class Mark(NamedTuple):
    """The bytes before each record of a file, and the start value of its checksums."""

    sign: bytes
    seed: int

    def pack(self, payload: bytes) -> bytes:
        """Make a record."""
        return _HEADER.pack(self.sign, len(payload), zlib.crc32(payload, self.seed)) + payload


class FoundRecords(NamedTuple, Generic[T]):
    """The readable contents of a file."""

    records: list[T]
    damaged: int
    """Offsets of unreadable parts that are followed by readable records."""
    damaged_bytes: int
    """Unreadable bytes at these offsets."""
    torn_bytes: int
    """Unreadable bytes at the end."""


def mark_of(name: str) -> Mark:
    """Make the mark of the file with this name."""
    digest = hashlib.blake2b(name.encode(), digest_size=12).digest()
    return Mark(digest[:8], int.from_bytes(digest[8:], "little"))


def read_records(
    content: bytes, mark: Mark, decode: Callable[[memoryview], T | None], *, start: int = 0
) -> FoundRecords[T]:
    """Read all records from ``start`` on; ``decode`` returns None for an invalid payload."""
    view, records, damaged, damaged_bytes = memoryview(content), list[T](), 0, 0
    place = start
    while place < len(content):
        found = _record_at(view, place, mark, decode)
        if found is not None:
            record, place = found
            records.append(record)
            continue
        behind = content.find(mark.sign, place + 1)
        while behind >= 0 and _record_at(view, behind, mark, decode) is None:
            behind = content.find(mark.sign, behind + 1)
        if behind < 0:
            return FoundRecords(records, damaged, damaged_bytes, len(content) - place)
        damaged += 1
        damaged_bytes += behind - place
        place = behind
    return FoundRecords(records, damaged, damaged_bytes, 0)


def _record_at(
    view: memoryview, place: int, mark: Mark, decode: Callable[[memoryview], T | None]
) -> tuple[T, int] | None:
    start = place + HEADER_BYTES
    if start > len(view):
        return None
    sign, length, checksum = _HEADER.unpack_from(view, place)
    if sign != mark.sign or length > len(view) - start:
        return None
    payload = view[start : start + length]
    if zlib.crc32(payload, mark.seed) != checksum:
        return None
    record = decode(payload)
    return None if record is None else (record, start + length)
