"""Segment files of the spool: append-only records, each with a checksum, readable up to the first torn one.

A segment starts with a copy of the facts and table frames that were in force when it was begun, so it can be
understood when all older segments are gone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.model.errors import Failed
from gpuherd.wire.codec import MAX_FRAME_BYTES

__all__ = ["Contents", "SegmentWriter", "read_segment", "segment_name"]

MAGIC = b"gpuherd spool 1\n"
_HEAD = struct.Struct("<IIBBxxQ")
_CHECKED_FROM = 8  # the checksum covers all that follows length and checksum
_LARGEST_RECORD = MAX_FRAME_BYTES * 2


class Contents(Struct, frozen=True):
    """What a segment holds: the frames in force before it, its own frames, and how many bytes were sound."""

    context: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    sound_bytes: int
    is_whole: bool


def segment_name(first_seq: int) -> str:
    """Name a segment by its first frame, so that folder order is frame order."""
    return f"{first_seq:020d}.seg"


def _record(entry: Entry, is_context: bool) -> bytes:
    rest = _HEAD.pack(0, 0, entry.kind, is_context, entry.seq)[_CHECKED_FROM:] + entry.message
    return struct.pack("<II", len(entry.message), crc32(rest)) + rest


class SegmentWriter:
    """Appends to one new segment. ``OSError`` from ``append`` leaves the file as it was before."""

    def __init__(self, path: Path, context: Iterable[Entry]) -> None:
        self.path = path
        head = MAGIC + b"".join(_record(entry, True) for entry in context)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.size_bytes = 0
        self._is_dirty = False
        try:
            self._write(head)
        except OSError:
            self.close()
            path.unlink(missing_ok=True)
            raise

    def append(self, entries: Iterable[Entry]) -> int:
        """Write entries; returns the bytes added."""
        before = self.size_bytes
        self._write(b"".join(_record(entry, False) for entry in entries))
        return self.size_bytes - before

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os.ftruncate(self._fd, self.size_bytes)
            os.lseek(self._fd, self.size_bytes, os.SEEK_SET)
            raise
        self.size_bytes += len(data)
        self._is_dirty = True

    def unsynced(self) -> int | None:
        """A copy of the descriptor if something was written since the last call; the caller syncs and closes it."""
        if not self._is_dirty or self._fd < 0:
            return None
        self._is_dirty = False
        return os.dup(self._fd)

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_segment(path: Path) -> Contents:
    """Read a segment up to its first unsound record; ``Failed`` if the file cannot be read at all."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failed(f"the spool file {path} cannot be read: {error.strerror}") from error
    context: list[Entry] = []
    entries: list[Entry] = []
    if not data.startswith(MAGIC):
        return Contents((), (), 0, False)
    at = len(MAGIC)
    while at + _HEAD.size <= len(data):
        length, checksum, kind, is_context, seq = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if length > _LARGEST_RECORD or end > len(data) or kind > FrameKind.SAMPLE:
            break
        if crc32(memoryview(data)[at + _CHECKED_FROM : end]) != checksum:
            break
        entry = Entry(seq, FrameKind(kind), data[at + _HEAD.size : end])
        (context if is_context else entries).append(entry)
        at = end
    return Contents(tuple(context), tuple(entries), at, at == len(data))
