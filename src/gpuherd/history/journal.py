"""The journal: what was learnt, written down and synced before anyone is told that it is kept.

Numbered files in one folder, each with a salt in its name that nobody outside knows. A record is the file's mark (made
from the salt), length, checksum, payload. After a crash the last record may be torn: it was never confirmed and is
passed over. A damaged record elsewhere is passed over too, and reading goes on at the next mark: because nodes cannot
know the mark, nothing they send can pass for a record.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gpuherd.history.batch import Batch
from gpuherd.history.codec import BatchReader, BatchWriter, Entry, Record, read_record
from gpuherd.history.tables.disk import DiskFull, is_full, sync_folder
from gpuherd.model.errors import Failed
from gpuherd.wire.marked_records import mark_of, read_records

__all__ = ["Journal", "JournalFiles", "Reading"]

MAX_FILE_BYTES = 64 * 2**20
FILE_SECONDS = 3600.0
"""A file ends with the hour, whatever its size."""
MAX_RECORD_BYTES = 2**30

_NAME = re.compile(r"(\d{8,15})-([0-9a-f]{16})\.journal")


@dataclass
class Reading:
    """What a file holds, as far as it can be read."""

    batches: list[tuple[int, Batch]] = field(default_factory=list)
    """With the id that tells a batch which was written twice."""
    damaged: int = 0
    """Places from which on something could not be read, with readable records behind them."""
    torn_bytes: int = 0
    """Left over at the end."""
    lost_names: int = 0
    """Names that only damaged records had; their rows are left out."""


class JournalFiles:
    """The files as they lie there. Any number of threads may read, also while one writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> dict[int, Path]:
        """Give the files by number, oldest first."""
        found: dict[int, Path] = {}
        with contextlib.suppress(FileNotFoundError):
            for path in self.folder.iterdir():
                name = _NAME.fullmatch(path.name)
                if name is not None:
                    found[int(name[1])] = path
        return dict(sorted(found.items()))

    def measure(self) -> tuple[int, int]:
        """Give the number of all files and their bytes."""
        paths = self.paths()
        size_bytes = 0
        for path in paths.values():
            with contextlib.suppress(FileNotFoundError):
                size_bytes += path.stat().st_size
        return len(paths), size_bytes

    def read(self, number: int) -> Reading:
        """Read a file, one that is being written up to where it is complete; ``Failed`` if it cannot be opened."""
        path = self.paths().get(number)
        if path is None:
            return Reading()
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return Reading()
        except OSError as error:
            raise Failed(f"cannot read {path}: {error.strerror}; check the disk") from error
        return _read(content, path.name)


def _read(content: bytes, name: str) -> Reading:
    found = read_records(content, mark_of(name), _decode)
    reading = Reading(damaged=found.damaged, torn_bytes=found.torn_bytes)
    names: dict[int, Entry] = {}
    for record in found.records:
        names.update(record.names)
    reader, ids = BatchReader(names), set()
    for record in found.records:
        if record.id in ids:
            continue
        ids.add(record.id)
        try:
            reading.batches.append((record.id, reader.read(record)))
        except ValueError:
            reading.damaged += 1
    reading.lost_names = reader.lost_names
    return reading


def _decode(payload: memoryview) -> Record | None:
    try:
        return read_record(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _OpenFile:
    """A file that is being written."""

    def __init__(self, path: Path, opened_at: float) -> None:
        self.path = path
        self.opened_at = opened_at
        self.size_bytes = 0
        self._mark = mark_of(path.name)
        self._writer = BatchWriter()
        # Command lines are in it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)

    def record(self, batch: Batch, batch_id: int) -> bytes:
        payload = self._writer.write(batch, batch_id)
        if len(payload) > MAX_RECORD_BYTES:
            raise Failed(f"a batch of {len(payload)} bytes is too large for the journal")
        return self._mark.pack(payload)

    def write(self, content: bytes) -> None:
        """Add durably, all or nothing; ``OSError`` if it cannot, and then the file is not to be written any more."""
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fdatasync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # then the id of the batch tells that it is there twice
                os.ftruncate(self._descriptor, self.size_bytes)
                os.fsync(self._descriptor)
            raise
        self.size_bytes += len(content)

    def close(self) -> None:
        os.close(self._descriptor)
        if self.size_bytes == 0:
            with contextlib.suppress(OSError):
                self.path.unlink()


class Journal:
    """The writing side: one thread appends, another ends files that are due and deletes what nobody needs."""

    def __init__(
        self,
        folder: Path,
        *,
        min_free_bytes: int,
        first_file: int,
        newest_file: int = 0,
        opening: Callable[[], Batch | None] = lambda: None,
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        """``first_file``: no file gets a lower number. ``newest_file``: the newest there is that holds anything.

        ``opening``: what each file begins with.
        """
        self.files = JournalFiles(folder)
        self._min_free_bytes = min_free_bytes
        self._max_file_bytes = max_file_bytes
        self._opening = opening
        self._lock = threading.Lock()
        self._next = max(first_file, 1, *(number + 1 for number in self.files.paths()))
        self._newest = newest_file
        self._open: _OpenFile | None = None
        self._tried: tuple[Batch, int] | None = None

    @property
    def open_file(self) -> int:
        """The number of the file that is being written, or comes next; all before it are complete."""
        with self._lock:
            return self._next if self._open is None else self._next - 1

    def append(self, batch: Batch) -> int:
        """Write a batch durably and give its file's number.

        ``DiskFull`` if there is too little room, else ``Failed``: then nothing is added, and it may be tried again.
        """
        with self._lock:
            self._check_room(0)  # before any work: while the disk is full this is tried again and again
            if self._is_over(batch.written_at):
                self._end()
            batch_id = secrets.randbits(62)
            if self._tried is not None and self._tried[0] is batch:
                batch_id = self._tried[1]
            self._tried = (batch, batch_id)
            try:
                self._write(batch, batch_id)
            except OSError as error:
                self._end()
                kind = DiskFull if is_full(error) else Failed
                raise kind(
                    f"cannot write to {self.files.folder}: {error.strerror}; free some space or check the disk"
                ) from error
            except Failed:
                self._end()  # its dictionary has names that were never written
                raise
            self._tried = None
            self._newest = self._next - 1
            return self._newest

    def _write(self, batch: Batch, batch_id: int) -> None:
        content = b""
        if self._open is None:
            name = f"{self._next:08d}-{secrets.token_hex(8)}.journal"
            self._open = _OpenFile(self.files.folder / name, batch.written_at)
            self._next += 1
            sync_folder(self.files.folder)
            opening = self._opening()
            if opening is not None:
                content = self._open.record(opening, secrets.randbits(62))
        content += self._open.record(batch, batch_id)
        self._check_room(len(content))
        self._open.write(content)

    def _check_room(self, size_bytes: int) -> None:
        try:
            room = os.statvfs(self.files.folder)
        except OSError as error:
            raise Failed(f"cannot write to {self.files.folder}: {error.strerror}; check the disk") from error
        free_bytes = room.f_bavail * room.f_frsize
        if free_bytes - size_bytes < self._min_free_bytes:
            raise DiskFull(
                f"{self.files.folder}: only {free_bytes // 2**20} MiB are free, but history.min_free_bytes "
                f"requires {self._min_free_bytes // 2**20}; no history is stored until there is space"
            )

    def _is_over(self, now: float) -> bool:
        opened = self._open
        return opened is not None and (
            opened.size_bytes >= self._max_file_bytes
            or opened.opened_at // FILE_SECONDS != now // FILE_SECONDS
        )

    def _end(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def end_due(self, now: float) -> None:
        """End the open file if its hour is over: then it is complete although nothing comes any more."""
        with self._lock:
            if self._is_over(now):
                self._end()

    def remove_before(self, number: int) -> None:
        """Delete the files that nobody needs; also on a full disk. ``Failed`` if one cannot be deleted.

        The newest that holds anything stays in any case: it tells which frames are kept.
        """
        with self._lock:
            needed = min(number, self._newest)
        for found, path in self.files.paths().items():
            if found >= needed:
                return
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise Failed(
                    f"cannot delete {path}: {error.strerror}; let this user write to the folder"
                ) from error

    def close(self) -> None:
        """End the open file."""
        with self._lock:
            self._end()
