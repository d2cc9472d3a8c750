"""Segment files of the spool: append-only records, each with a checksum. Only damaged records are lost.

A segment starts with the contents of its run's hello and a copy of the facts and table frames current when it was
created, so it can be read without the older segments and without the run's own file.

Segments of older agents have neither the run nor marks: they are readable up to the first damaged record.
"""

from __future__ import annotations

import os
import re
import secrets
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.model.errors import Failed
from gpuherd.model.text import Identifier
from gpuherd.wire.codec import MAX_FRAME_BYTES
from gpuherd.wire.frames import Layout
from gpuherd.wire.marked_records import HEADER_BYTES, mark_of, read_records

__all__ = ["Contents", "RunFacts", "SegmentWriter", "first_seq_of", "read_segment", "segment_name"]

_OLD_MAGIC = b"gpuherd spool 1\n"
_OLD_HEAD = struct.Struct("<IIBBxxQ")
_OLD_CHECKED_FROM = 8  # the checksum covers all that follows length and checksum
_LARGEST_OLD_RECORD = MAX_FRAME_BYTES * 2
_NAME = re.compile(r"(\d{20})(-[0-9a-f]{16})?\.seg")
_HEAD = struct.Struct("<BBQ")
_RUN = 255
"""The kind of the record that holds the run's facts."""


class RunFacts(Struct, frozen=True, kw_only=True):
    """What a run's hello says."""

    boot_id: Identifier
    layout: Layout
    interval_seconds: float
    agent_version: str | None = None
    dropped_frames: int = 0


class Contents(Struct, frozen=True):
    """Contents of a segment: the frames that were current before it, its own frames, and what could not be read."""

    context: tuple[Entry, ...] = ()
    entries: tuple[Entry, ...] = ()
    run: RunFacts | None = None
    damaged_bytes: int = 0
    torn_bytes: int = 0
    """Damaged bytes at the end; how many frames they held is unknown."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it can be read."""
        return not self.damaged_bytes

    def lost_frames(self, first_seq: int, end_seq: int | None) -> int:
        """Count the frames that a damaged segment has lost, from the gaps in their numbers.

        ``end_seq``: number of its last frame, None if that is unknown. Then the torn end counts as its size divided by
        the largest frame, which is never too many.
        """
        if self.is_whole:
            return 0
        found = {entry.seq for entry in self.entries}
        last = max(found, default=first_seq - 1) if end_seq is None else end_seq
        missing = last - first_seq + 1 - sum(1 for seq in found if first_seq <= seq <= last)
        if end_seq is None and self.entries:
            largest = max(len(entry.message) for entry in self.entries) + _HEAD.size + HEADER_BYTES
            missing += self.torn_bytes // largest
        return max(missing, 0)


def segment_name(first_seq: int) -> str:
    """Name a new segment after its first frame, so that files sort by frame number; its salt gives the mark."""
    return f"{first_seq:020d}-{secrets.token_hex(8)}.seg"


def first_seq_of(path: Path) -> int | None:
    """Return the number of a segment's first frame; None if the file is not a segment."""
    name = _NAME.fullmatch(path.name)
    return None if name is None else int(name[1])


class SegmentWriter:
    """Appends to one new segment. ``OSError`` from ``append`` leaves the file as it was before."""

    def __init__(self, path: Path, run: RunFacts, context: Iterable[Entry]) -> None:
        self.path = path
        self._mark = mark_of(path.name)
        head = [self._mark.pack(_HEAD.pack(_RUN, True, 0) + msgspec.msgpack.encode(run))]
        head += [self._record(entry, True) for entry in context]
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.size_bytes = 0
        self._is_dirty = False
        try:
            self._write(b"".join(head))
        except OSError:
            self.close()
            path.unlink(missing_ok=True)
            raise

    def _record(self, entry: Entry, is_context: bool) -> bytes:
        return self._mark.pack(_HEAD.pack(entry.kind, is_context, entry.seq) + entry.message)

    def append(self, entries: Iterable[Entry]) -> int:
        """Write entries; returns the bytes added."""
        before = self.size_bytes
        self._write(b"".join(self._record(entry, False) for entry in entries))
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


class _Frame(NamedTuple):
    entry: Entry
    is_context: bool


def read_segment(path: Path) -> Contents:
    """Read everything intact in a segment; ``Failed`` if the file cannot be read at all."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failed(f"the spool file {path} cannot be read: {error.strerror}") from error
    if data.startswith(_OLD_MAGIC):
        return _read_old(data)
    found = read_records(data, mark_of(path.name), _decode)
    frames = [record for record in found.records if isinstance(record, _Frame)]
    return Contents(
        context=tuple(frame.entry for frame in frames if frame.is_context),
        entries=tuple(frame.entry for frame in frames if not frame.is_context),
        run=next((record for record in found.records if isinstance(record, RunFacts)), None),
        # An empty file was truncated: every segment is created with its head.
        damaged_bytes=found.damaged_bytes + found.torn_bytes + int(not data),
        torn_bytes=found.torn_bytes,
    )


def _decode(payload: memoryview) -> _Frame | RunFacts | None:
    if len(payload) < _HEAD.size:
        return None
    kind, is_context, seq = _HEAD.unpack_from(payload)
    message = bytes(payload[_HEAD.size :])
    if kind == _RUN:
        try:
            return msgspec.msgpack.decode(message, type=RunFacts)
        except msgspec.DecodeError:
            return None
    if kind > FrameKind.SAMPLE:
        return None
    return _Frame(Entry(seq, FrameKind(kind), message), bool(is_context))


def _read_old(data: bytes) -> Contents:
    """Read a segment of an older agent up to its first damaged record."""
    context: list[Entry] = []
    entries: list[Entry] = []
    at = len(_OLD_MAGIC)
    while at + _OLD_HEAD.size <= len(data):
        length, checksum, kind, is_context, seq = _OLD_HEAD.unpack_from(data, at)
        end = at + _OLD_HEAD.size + length
        if length > _LARGEST_OLD_RECORD or end > len(data) or kind > FrameKind.SAMPLE:
            break
        if crc32(memoryview(data)[at + _OLD_CHECKED_FROM : end]) != checksum:
            break
        entry = Entry(seq, FrameKind(kind), data[at + _OLD_HEAD.size : end])
        (context if is_context else entries).append(entry)
        at = end
    return Contents(
        context=tuple(context),
        entries=tuple(entries),
        damaged_bytes=len(data) - at,
        torn_bytes=len(data) - at,
    )
