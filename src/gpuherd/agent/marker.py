"""A few bytes of shared memory in which the probe notes what it is asking the driver right now.

When the probe stands still or dies the parent reads there which GPU and which call it was. Written before every
driver call, so it has to be cheap: one dictionary look-up and one copy of 96 bytes.
"""

from __future__ import annotations

import mmap
import os
import struct

from msgspec import Struct

from gpuherd.collect.reading import Progress

__all__ = ["Marker", "Position"]

_RECORD = struct.Struct("<i24s60sxxxxxxxx")
_COUNTER_AT = _RECORD.size
_SIZE = _RECORD.size + 8


class Position(Struct, frozen=True):
    """Where a probe is: the collector at work ("" when none), the GPU (-1 when no single one), the call."""

    collector: str
    device: int
    call: str


class Marker:
    """The shared note. ``fd`` is handed to the probe; both sides map it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE)
        self._view = memoryview(self._map)
        self._counter = self._view[_COUNTER_AT:].cast("Q")
        self._known: dict[tuple[str, int, str], bytes] = {}

    @classmethod
    def create(cls) -> Marker:
        """Make a new one, belonging to no file."""
        fd = os.memfd_create("gpuherd-probe", os.MFD_CLOEXEC)
        os.ftruncate(fd, _SIZE)
        return cls(fd)

    def close(self) -> None:
        """Unmap and close; further use is an error."""
        self._counter.release()
        self._view.release()
        self._map.close()
        os.close(self.fd)

    def note(self, collector: str, device: int, call: str) -> None:
        """Write where the probe is."""
        key = (collector, device, call)
        record = self._known.get(key)
        if record is None:
            record = _RECORD.pack(device, collector.encode()[:24], call.encode()[:60])
            if len(self._known) < 4096:
                self._known[key] = record
        self._view[:_COUNTER_AT] = record
        self._counter[0] += 1

    def progress_of(self, collector: str) -> Progress:
        """Make the callback that a collector tells its calls to."""

        def progress(device: int, call: str) -> None:
            self.note(collector, device, call)

        return progress

    @property
    def count(self) -> int:
        """How many notes were written; while it moves the probe is slow, not stuck."""
        return int(self._counter[0])

    @property
    def position(self) -> Position:
        """Read the note; only sure to be whole while the writer stands still."""
        device, collector, call = _RECORD.unpack(self._view[:_COUNTER_AT])
        return Position(_text(collector), device, _text(call))


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode(errors="replace")
