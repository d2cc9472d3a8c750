"""What a table looks like, and one file of it: a segment."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated
from zlib import crc32

from msgspec import Meta, Struct

__all__ = ["SEGMENT_FILE", "Lost", "Segment", "Shape", "checksum_of", "segment_file", "why_unsound"]

SEGMENT_FILE = re.compile(r"(\d{4}-\d\d-\d\dT\d{4})-([0-9a-f]{8})\.parquet")
"""What our files are called, by partition and serial; any other is somebody else's."""

_MAGIC = b"PAR1"
_SMALLEST_BYTES = 12
_CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Shape:
    """What every row of a table has, and how its files are laid out."""

    name: str
    """Also the name of its folder."""
    columns: Mapping[str, str]
    """Type of each column in DuckDB's SQL; a file from before a column was thought of has nulls in it."""
    order_by: tuple[str, ...] = ()
    """What rows are sorted by within a file."""
    unique_by: tuple[str, ...] = ()
    """What tells rows apart; of several that agree in it, merging keeps the one written last. Empty: keeps all."""
    time: str = "time"
    """Column that a file's range of time is taken from: epoch seconds, or a timestamp."""
    row_group_rows: int = 122_880
    options: str = ""
    """More for DuckDB's COPY … TO, such as ``dictionary_size_limit 20000``."""
    is_derived: bool = False
    """Its owner makes it anew of other tables when it is not there."""

    @cached_property
    def fingerprint(self) -> str:
        """A short name of the columns: files that have the same one can be read together as they are."""
        text = "\n".join(f"{name} {kind}" for name, kind in self.columns.items())
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def has_timestamps(self) -> bool:
        """Whether its time is a timestamp rather than epoch seconds."""
        return self.columns[self.time].upper().startswith("TIMESTAMP")


class Segment(Struct, frozen=True, kw_only=True):
    """One file of a table: never changed, only replaced."""

    file: str
    """Path within the folder, such as ``devices_raw/2026-11-16T13-0000002a.parquet``."""
    table: str
    partition: int
    """UTC epoch seconds at which its stretch of time starts; its writer decides how long that is."""
    start: float
    """Time of its first row, UTC epoch seconds."""
    end: float
    """Time of its last row."""
    rows: int
    size_bytes: int
    checksum: str
    """CRC-32 of the whole file in hexadecimal: against accidents, and quick enough to be asked often."""
    serial: int
    """Later ones have seen more: they win where rows agree in what is unique."""
    level: Annotated[int, Meta(ge=0)] = 0
    """How often its rows have been merged; for its owner to decide by."""
    shape: str = ""
    """Fingerprint of its columns."""
    least: str | None = None
    most: str | None = None
    """Between which texts the first column of its order is, both included; none: not known."""

    def may_hold(self, text: str) -> bool:
        """Whether there may be rows with this text in the first column."""
        return self.least is None or self.most is None or self.least <= text <= self.most

    def shares_owners(self, other: Segment) -> bool:
        """Whether rows of both may have the same text in the first column."""
        if self.least is None or self.most is None or other.least is None or other.most is None:
            return True
        return self.least <= other.most and other.least <= self.most


class Lost(Struct, frozen=True, kw_only=True):
    """A file that was listed and cannot be used any more."""

    table: str
    start: float
    end: float
    file: str
    reason: str
    found_at: float
    """UTC epoch seconds."""


def segment_file(table: str, partition: int, serial: int) -> str:
    """Name a file so that people find it by its time; the serial makes it the only one of this name, for ever."""
    return f"{table}/{datetime.fromtimestamp(partition, UTC):%Y-%m-%dT%H%M}-{serial:08x}.parquet"


def checksum_of(path: Path) -> str:
    """Add a whole file up; ``OSError`` if it cannot be read."""
    total = 0
    with path.open("rb", buffering=0) as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            total = crc32(chunk, total)
    return f"{total:08x}"


def why_unsound(path: Path, segment: Segment, *, thoroughly: bool = False) -> str | None:
    """Tell what is wrong with a file, by its size and both ends or by every byte; none if it is sound."""
    try:
        with path.open("rb", buffering=0) as opened:
            size_bytes = os.fstat(opened.fileno()).st_size
            if size_bytes != segment.size_bytes:
                return f"it has {size_bytes} bytes instead of {segment.size_bytes}"
            if size_bytes < _SMALLEST_BYTES or opened.read(4) != _MAGIC:
                return "it does not start as a Parquet file does"
            tail = os.pread(opened.fileno(), 8, size_bytes - 8)
            if tail[4:] != _MAGIC or int.from_bytes(tail[:4], "little") > size_bytes - _SMALLEST_BYTES:
                return "it does not end as a Parquet file does"
        if thoroughly and checksum_of(path) != segment.checksum:
            return "its contents have changed since it was written"
    except FileNotFoundError:
        return "it is gone"
    except OSError as error:
        return f"it cannot be read: {error.strerror or type(error).__name__}"
    return None
