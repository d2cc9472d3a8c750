"""Which files count: one list, changed in one durable step, looked at without waiting."""

from __future__ import annotations

import fcntl
import logging
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpuherd.history.tables.ballast import Ballast
from gpuherd.history.tables.disk import DiskFull, is_full
from gpuherd.history.tables.manifest import Manifest, read_manifest, write_manifest
from gpuherd.history.tables.segments import SEGMENT_FILE, Lost, Segment, why_unsound
from gpuherd.model.errors import Failed
from gpuherd.model.history import MissingPart

__all__ = ["CANNOT_BE_READ", "Catalogue", "Outdated", "Snapshot"]

CANNOT_BE_READ = "a file cannot be read"
QUARANTINE_SECONDS = 30 * 86_400.0
"""How long a damaged file is kept in quarantine."""

_log = logging.getLogger(__name__)


class Outdated(Failed):
    """A segment that was to be replaced is not listed any more; look again and start anew."""


class Snapshot:
    """The list as it was at one moment. Its files stay on disk as long as someone holds it."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.generation = manifest.generation
        self._tables: dict[str, list[Segment]] = {}
        for segment in sorted(manifest.segments, key=lambda each: (each.partition, each.serial)):
            self._tables.setdefault(segment.table, []).append(segment)

    def segments(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[Segment, ...]:
        """List a table's segments with rows in a range of time, both ends included; by partition, then serial."""
        return tuple(s for s in self._tables.get(table, ()) if s.start <= end and s.end >= start)

    def missing(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[MissingPart, ...]:
        """Tell what of a table had to be given up in a range. Anyone may read it: it names no file."""
        return tuple(
            MissingPart(start=lost.start, end=lost.end, reason=CANNOT_BE_READ)
            for lost in self.manifest.lost
            if lost.table == table and lost.start <= end and lost.end >= start
        )


class Catalogue:
    """The list of all segments in a folder, which belongs to one process at a time.

    Reading needs no lock. Changes come one after the other. Files that are no longer listed are deleted when nobody
    holds a snapshot that lists them.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._lock_file = _claim(folder)
        self._serial = 0
        self.strays: tuple[Path, ...] = ()
        """Files found without any list of them."""
        self._changing = threading.RLock()
        self._counting = threading.Lock()
        self._held: dict[int, int] = {}
        self._doomed: list[tuple[int, str]] = []
        self.ballast = Ballast(folder / "ballast")
        try:
            for scratch in ("writing", "spill"):
                _empty(folder / scratch)
            self._snapshot = Snapshot(self._recover())
            self.ballast.restore()
        except BaseException as error:
            os.close(self._lock_file)
            if isinstance(error, OSError):
                raise _unusable(folder, error) from error
            raise

    @property
    def snapshot(self) -> Snapshot:
        """The list as it is now, without waiting; its files may go unless held."""
        return self._snapshot

    @property
    def generation(self) -> int:
        """Number of changes so far."""
        return self._snapshot.generation

    def segments(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[Segment, ...]:
        """List a table's segments with rows in a range, both ends included; their files may go unless held."""
        return self._snapshot.segments(table, start, end)

    def missing(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[MissingPart, ...]:
        """Tell what of a table had to be given up in a range."""
        return self._snapshot.missing(table, start, end)

    def unreadable(self, tables: Iterable[str]) -> tuple[MissingPart, ...]:
        """Tell what of some tables had to be given up and why, file by file: for those who run the hub."""
        chosen = frozenset(tables)
        return tuple(
            MissingPart(start=lost.start, end=lost.end, reason=lost.reason)
            for lost in self._snapshot.manifest.lost
            if lost.table in chosen
        )

    def damaged_files(self, tables: Iterable[str]) -> int:
        """Count the damaged files of some tables that are still in quarantine."""
        chosen, since = frozenset(tables), self._clock() - QUARANTINE_SECONDS
        return sum(lost.table in chosen and lost.found_at >= since for lost in self._snapshot.manifest.lost)

    def lost(self) -> tuple[Lost, ...]:
        """All that had to be given up."""
        return self._snapshot.manifest.lost

    def settled(self, sink: str) -> int:
        """The first of the journal's files that this sink still needs."""
        return self._snapshot.manifest.settled.get(sink, 0)

    def all_settled(self) -> Mapping[str, int]:
        """Tell what ``settled`` tells of everyone."""
        return self._snapshot.manifest.settled

    def size_bytes(self, tables: Iterable[str] | None = None) -> int:
        """Add up the files of some tables, or of all."""
        chosen = None if tables is None else frozenset(tables)
        segments = self._snapshot.manifest.segments
        return sum(s.size_bytes for s in segments if chosen is None or s.table in chosen)

    def oldest(self, tables: Iterable[str]) -> float | None:
        """Time of the oldest row in these tables, UTC epoch seconds."""
        chosen = frozenset(tables)
        return min((s.start for s in self._snapshot.manifest.segments if s.table in chosen), default=None)

    @contextmanager
    def hold(self) -> Iterator[Snapshot]:
        """Keep all files that are listed now until done, whatever replaces them meanwhile."""
        with self._counting:
            snapshot = self._snapshot
            self._held[snapshot.generation] = self._held.get(snapshot.generation, 0) + 1
        try:
            yield snapshot
        finally:
            with self._counting:
                self._held[snapshot.generation] -= 1
                if not self._held[snapshot.generation]:
                    del self._held[snapshot.generation]
            self._delete_doomed()

    def next_serial(self) -> int:
        """Give out a number for a new segment, higher than any before."""
        with self._changing:
            self._serial += 1
            return self._serial

    def commit(
        self,
        *,
        add: Iterable[Segment] = (),
        remove: Iterable[Segment] = (),
        settled: Mapping[str, int] | None = None,
        lost: Iterable[Lost] = (),
        forgotten: Iterable[Lost] = (),
    ) -> None:
        """Change the list in one step, which a power cut leaves done or not done; returns when it is durable.

        Raises ``Outdated`` if something to be removed is not listed (any more), ``DiskFull`` or ``Failed`` if it
        cannot be written; then nothing has changed, and the files to be added are deleted.
        """
        added, removed = tuple(add), frozenset(segment.file for segment in remove)
        gone = frozenset(forgotten)
        with self._changing:
            old = self._snapshot.manifest
            listed = {segment.file: segment for segment in old.segments}
            try:
                if not removed <= listed.keys():
                    raise Outdated("history: another program replaced or removed a file in the meantime")
                new = Manifest(
                    generation=old.generation + 1,
                    serial=max([self._serial, *(segment.serial for segment in added)]),
                    settled={**old.settled, **(settled or {})},
                    segments=(*(s for s in old.segments if s.file not in removed), *added),
                    lost=(*(each for each in old.lost if each not in gone), *lost),
                )
                self._write(new)
            except Failed:
                for segment in added:
                    if segment.file not in listed:
                        self._delete(segment.file)
                raise
            with self._counting:
                self._snapshot = Snapshot(new)
                self._doomed += [(new.generation, file) for file in removed]
        self._delete_doomed()

    def set_aside(self, segment: Segment, reason: str) -> MissingPart | None:
        """Move a file that cannot be used out of the way and remember what is missing; none if it is not listed."""
        with self._changing:
            if segment.file not in {each.file for each in self.segments(segment.table)}:
                return None
            lost = self._lost(segment, reason)
            # A second name before the first one goes: whoever still reads it is not disturbed.
            self._quarantine(self.folder / segment.file, os.link)
            self.commit(remove=[segment], lost=[lost])
        return MissingPart(start=lost.start, end=lost.end, reason=CANNOT_BE_READ)

    def keep_aside(self, path: Path) -> None:
        """Move a file that is not listed into the quarantine, where somebody may look at it."""
        self._quarantine(path, os.rename)

    def _quarantine(self, path: Path, put: Callable[[Path, Path], None]) -> None:
        place = self.folder / "quarantine" / f"{path.parent.name}-{path.name}"
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            put(path, place)
            os.utime(place, (self._clock(), self._clock()))
        except OSError as error:
            _log.info("history: cannot move %s aside: %s", path, error)

    def empty_quarantine(self, before: float) -> None:
        """Delete what was set aside before a moment: it may tell who used what."""
        for path in (self.folder / "quarantine").glob("*"):
            try:
                if path.stat().st_mtime < before:
                    path.unlink()
            except OSError as error:
                _log.warning("history: cannot delete %s: %s", path, error)

    def close(self) -> None:
        """Let another process have the folder."""
        os.close(self._lock_file)

    # -- inside

    def _write(self, manifest: Manifest) -> None:
        try:
            try:
                write_manifest(self.folder, manifest)
            except OSError as error:
                if not (is_full(error) and self.ballast.release()):
                    raise
                write_manifest(self.folder, manifest)
        except OSError as error:
            if is_full(error):
                raise DiskFull(f"history: the disk of {self.folder} is full; free some space") from error
            raise Failed(f"history: cannot write in {self.folder}: {error.strerror}") from error

    def _try_to_write(self, manifest: Manifest) -> None:
        """Write at a start, which may do without: what is not written now is found again at the next."""
        try:
            self._write(manifest)
        except Failed as error:
            _log.warning("%s", error)

    def _lost(self, segment: Segment, reason: str) -> Lost:
        _log.error("history: cannot use %s: %s", self.folder / segment.file, reason)
        return Lost(
            table=segment.table,
            start=segment.start,
            end=segment.end,
            file=segment.file,
            reason=f"{segment.file} cannot be used: {reason}",
            found_at=self._clock(),
        )

    def _delete_doomed(self) -> None:
        with self._counting:
            oldest_held = min(self._held, default=math.inf)
            # Removed by change g: whoever holds an earlier list may still open it.
            due = [file for generation, file in self._doomed if generation <= oldest_held]
            self._doomed = [each for each in self._doomed if each[0] > oldest_held]
        for file in due:
            self._delete(file)

    def _delete(self, file: str) -> None:
        try:
            (self.folder / file).unlink(missing_ok=True)
        except OSError as error:
            # It is tried again at the next start.
            _log.warning("history: cannot delete %s: %s", self.folder / file, error)

    def _recover(self) -> Manifest:
        found = read_manifest(self.folder)
        files = [path for path in self.folder.glob("*/*.parquet") if SEGMENT_FILE.fullmatch(path.name)]
        if found.manifest is None:
            self.strays = tuple(sorted(files))
            self._serial = max((int(path.stem[-8:], 16) for path in files), default=0)
            if not files:
                # From now on, a file without a list is one that was never listed, not one whose list was lost.
                self._try_to_write(Manifest())
            return Manifest()
        manifest = found.manifest
        self._serial = manifest.serial
        unsound = {s.file: why for s in manifest.segments if (why := why_unsound(self.folder / s.file, s))}
        if unsound or not found.is_whole:
            manifest = Manifest(
                generation=manifest.generation + 1,
                serial=manifest.serial,
                settled=manifest.settled,
                segments=tuple(s for s in manifest.segments if s.file not in unsound),
                lost=(
                    *manifest.lost,
                    *(self._lost(s, unsound[s.file]) for s in manifest.segments if s.file in unsound),
                ),
            )
            self._try_to_write(manifest)
        listed = {segment.file for segment in manifest.segments}
        for path in files:
            file = f"{path.parent.name}/{path.name}"
            if file in listed:
                continue
            # Written and never listed, or replaced and not yet deleted. If the newest list may have been another one,
            # or it is damaged, it is not thrown away.
            if file in unsound or not found.is_newest:
                self.keep_aside(path)
            else:
                self._delete(file)
        return manifest


def _claim(folder: Path) -> int:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Failed(f"history: another hub is using {folder}; stop it, or set history.folder") from error
    return descriptor


def _unusable(folder: Path, error: OSError) -> Failed:
    return Failed(
        f"history: {folder} cannot be used: {error.strerror}; let the hub's user own it, or set history.folder"
    )


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
