"""A piece of shared memory in which the probe notes what it is asking the driver right now.

When the probe stands still or dies the parent reads there which GPU and which call it was. The note is made before
every driver call, well over a hundred times a sample, so it has to be cheap: each (GPU, call) is written out once
into a table, and from then on the note is one 64-bit cell, a counter and the number of the entry.
"""

from __future__ import annotations

import mmap
import os
import struct

from msgspec import Struct

from gpuherd.collect.reading import Progress

__all__ = ["Marker", "Position"]

_ENTRY = struct.Struct("<i16s44s")
_ENTRIES = 2048
_TABLE_AT = 64
_SIZE = _TABLE_AT + _ENTRIES * _ENTRY.size
_STEP = 1 << 16
_NUMBER = _STEP - 1
_SPARE = 0
"""The entry for notes that no longer fit the table; written anew each time."""


class Position(Struct, frozen=True):
    """Where a probe is: the collector at work ("" when none), the GPU (-1 when no single one), the call."""

    collector: str
    device: int
    call: str


class Marker:
    """The shared note. ``fd`` is handed to the probe; both sides map it, only the probe writes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE)
        self._view = memoryview(self._map)
        self._cell = self._view[:8].cast("Q")
        self._numbers: dict[tuple[str, int, str], int] = {}

    @classmethod
    def create(cls) -> Marker:
        """Make a new one, belonging to no file."""
        fd = os.memfd_create("gpuherd-probe", os.MFD_CLOEXEC)
        os.ftruncate(fd, _SIZE)
        return cls(fd)

    def close(self) -> None:
        """Unmap and close; further use is an error."""
        self._cell.release()
        self._view.release()
        self._map.close()
        os.close(self.fd)

    def note(self, collector: str, device: int, call: str) -> None:
        """Write where the probe is."""
        self.progress_of(collector)(device, call)

    def progress_of(self, collector: str) -> Progress:
        """Make the callback that a collector tells its calls to."""
        cell = self._cell
        numbers: dict[tuple[int, str], int] = {}
        step = 0

        def progress(device: int, call: str) -> None:
            nonlocal step
            number = numbers.get((device, call))
            if number is None:
                number = self._number_of(collector, device, call)
                if number != _SPARE:
                    numbers[device, call] = number
            step += _STEP
            cell[0] = step | number

        return progress

    def _number_of(self, collector: str, device: int, call: str) -> int:
        key = (collector, device, call)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._numbers) + 1
            if number < _ENTRIES:
                self._numbers[key] = number
            else:
                number = _SPARE
            entry = (device, collector.encode()[:16], call.encode()[:44])
            _ENTRY.pack_into(self._view, _TABLE_AT + number * _ENTRY.size, *entry)
        return number

    @property
    def beat(self) -> int:
        """A number that changes with every note; while it does the probe is slow, not stuck."""
        return int(self._cell[0])

    @property
    def position(self) -> Position:
        """Read the note; only sure to be right while the writer stands still."""
        number = min(int(self._cell[0]) & _NUMBER, _ENTRIES - 1)
        device, collector, call = _ENTRY.unpack_from(self._view, _TABLE_AT + number * _ENTRY.size)
        return Position(_text(collector), device, _text(call))


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode(errors="replace")
