"""Runs on disk: what the hub has not confirmed, bounded, oldest dropped first and counted.

``<state>/spool/<number>-<boot id>/`` holds one run: ``run`` (what its hello says) and segments. All of it survives
kill -9 of the agent; a power cut may lose up to ``SYNC_SECONDS`` of it. Frames lost in damaged files count as dropped.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpuherd.agent.numbering import Entry
from gpuherd.agent.segments import (
    Contents,
    RunFacts,
    SegmentWriter,
    first_seq_of,
    read_segment,
    segment_name,
)
from gpuherd.model.errors import Failed
from gpuherd.wire.frames import Layout

__all__ = ["SEGMENT_BYTES", "DiskRun", "RunFacts", "Spool"]

log = logging.getLogger(__name__)

SEGMENT_BYTES = 1024 * 1024
_RUN_FILE = "run"


class _Segment(NamedTuple):
    path: Path
    size_bytes: int


class DiskRun:
    """The part of one run that is on disk: segments in order, each named by its first frame."""

    def __init__(self, folder: Path, facts: RunFacts, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self.facts = facts
        self.last_seq = -1
        self._segment_bytes = segment_bytes
        self._acked_seq = -1
        self._segments: dict[int, _Segment] = {}  # by the number of the first frame, in order
        self._damage: dict[int, int] = {}  # frames that damaged segments have lost; not in the facts yet
        self._writer: SegmentWriter | None = None
        self._loaded: tuple[int, Contents] | None = None

    @property
    def told_facts(self) -> RunFacts:
        """Facts for a hello: frames that are known to be lost count as dropped."""
        lost = sum(self._damage.values())
        if not lost:
            return self.facts
        return msgspec.structs.replace(self.facts, dropped_frames=self.facts.dropped_frames + lost)

    @property
    def size_bytes(self) -> int:
        """Disk space of the segments."""
        return sum(segment.size_bytes for segment in self._segments.values())

    @property
    def is_empty(self) -> bool:
        """Whether no frame is left."""
        return not self._segments

    @property
    def is_droppable(self) -> bool:
        """Whether there is a segment that is not being written."""
        return len(self._segments) > 1 or (len(self._segments) == 1 and self._writer is None)

    def recover(self) -> None:
        """Find the segments that an earlier agent left, cutting off a record torn by its end."""
        for path in sorted(self.folder.glob("*.seg")):
            first = first_seq_of(path)
            if first is not None:
                self._segments[first] = _Segment(path, path.stat().st_size)
        while self._segments:
            last = max(self._segments)
            contents = self._read(last)
            if contents.entries:
                self.last_seq = contents.entries[-1].seq
                self._note_damage(last, contents)
                return
            self._remove(last)  # begun but nothing whole in it

    def facts_in_segments(self) -> RunFacts | None:
        """Return the run's facts from the newest segment that can be read."""
        for segment in reversed(self._segments.values()):
            with contextlib.suppress(Failed):
                run = read_segment(segment.path).run
                if run is not None:
                    return run
        return None

    def frame_count(self) -> int:
        """Estimate the number of frames in the segments from their numbers; never too many."""
        return self.last_seq - min(self._segments) + 1 if self._segments else 0

    def append(self, entries: list[Entry], context: Iterable[Entry]) -> None:
        """Add frames to the end, beginning a segment (with the context in force) when the last is full.

        ``OSError`` when the disk is full or not writable; nothing is added then.
        """
        if self._writer is None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.folder / _RUN_FILE).exists():
                self._save_facts()
            path = self.folder / segment_name(entries[0].seq)
            self._writer = SegmentWriter(path, self.told_facts, context)
            self._segments[entries[0].seq] = _Segment(path, self._writer.size_bytes)
        first = self._last_segment()
        try:
            self._writer.append(entries)
            self._segments[first] = _Segment(self._writer.path, self._writer.size_bytes)
        except OSError:
            if self.last_seq < first:
                self._remove(first)
            raise
        self.last_seq = entries[-1].seq
        if self._writer.size_bytes >= self._segment_bytes:
            self.seal()

    def _last_segment(self) -> int:
        return next(reversed(self._segments))

    def seal(self) -> None:
        """End the segment being written, so that it can be read."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def unsynced(self) -> int | None:
        """A copy of the written segment's descriptor if something was written since the last call."""
        return None if self._writer is None else self._writer.unsynced()

    def batch(self, after_seq: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """The next frames after ``after_seq`` from one segment, and the frames known to come before them."""
        for first, end in self._ranges():
            if end <= after_seq:
                continue
            if self._writer is not None and first == self._last_segment():
                self.seal()
            contents = self._load(first)
            entries = tuple(entry for entry in contents.entries if entry.seq > after_seq)
            if entries:
                earlier = (entry for entry in contents.entries if entry.seq <= after_seq)
                return entries, (*contents.context, *earlier)
        return (), ()

    def forget(self, through_seq: int) -> None:
        """Delete the segments that the hub has whole."""
        self._acked_seq = max(self._acked_seq, through_seq)
        for first, end in list(self._ranges()):
            if end > through_seq:
                return
            self._remove(first)

    def drop_oldest(self) -> int:
        """Delete the oldest segment that is not in use; counts in the facts, and returns, how many frames it had."""
        loaded = None if self._loaded is None else self._loaded[0]
        for first, end in self._ranges():
            if first == loaded and len(self._segments) > 1:
                continue
            self._damage.pop(first, None)  # all of it is counted now
            self._remove(first)
            lost = max(end - max(first, self._acked_seq + 1) + 1, 0)
            self.count_dropped(lost)
            return lost
        return 0

    def unload(self) -> None:
        """Let go of the segment that was last read."""
        self._loaded = None

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """First and last frame number of each segment."""
        firsts = list(self._segments)
        ends = [first - 1 for first in firsts[1:]]
        return zip(firsts, [*ends, self.last_seq], strict=False)

    def count_dropped(self, frames: int) -> None:
        """Note that frames of this run are lost, so that its hello can say so, now or after a restart."""
        self.facts = msgspec.structs.replace(self.facts, dropped_frames=self.facts.dropped_frames + frames)
        if self.folder.exists():
            try:
                self._save_facts()
            except OSError as error:
                log.warning("cannot save the number of dropped reports: %s", error.strerror)

    def delete(self) -> None:
        """Remove the run from the disk."""
        self.seal()
        for first in list(self._segments):
            self._remove(first)
        with contextlib.suppress(OSError):
            (self.folder / _RUN_FILE).unlink(missing_ok=True)
            self.folder.rmdir()

    def _load(self, first: int) -> Contents:
        if self._loaded is None or self._loaded[0] != first:
            contents = self._read(first)
            self._note_damage(first, contents)
            self._loaded = (first, contents)
        return self._loaded[1]

    def _read(self, first: int) -> Contents:
        segment = self._segments[first]
        try:
            return read_segment(segment.path)
        except Failed as failed:
            log.warning("%s; its reports are lost", failed)
            return Contents(damaged_bytes=max(segment.size_bytes, 1))

    def _note_damage(self, first: int, contents: Contents) -> None:
        """Count the lost frames of a damaged segment, once, however often it is read."""
        if contents.is_whole or first in self._damage:
            return
        end = None if first == self._last_segment() else dict(self._ranges())[first]
        lost = contents.lost_frames(max(first, self._acked_seq + 1), end)
        self._damage[first] = lost
        path, damaged_bytes = self._segments[first].path, contents.damaged_bytes
        log.warning(
            "the spool file %s is damaged: %d bytes and %d reports are lost; check the disk",
            path,
            damaged_bytes,
            lost,
        )

    def _remove(self, first: int) -> None:
        if self._writer is not None and first == self._last_segment():
            self.seal()
        segment = self._segments.pop(first, None)
        if self._loaded is not None and self._loaded[0] == first:
            self._loaded = None
        if lost := self._damage.pop(first, 0):
            self.count_dropped(lost)
        if segment is None:
            return
        try:
            segment.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("cannot delete the spool file %s: %s", segment.path, error.strerror)

    def _save_facts(self) -> None:
        _write_atomically(self.folder / _RUN_FILE, msgspec.msgpack.encode(self.facts))


class Spool:
    """All runs on disk, oldest first, together at most ``max_bytes``."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self.max_bytes = max_bytes
        # Dropping goes by whole segments: a small spool needs small ones.
        self._segment_bytes = min(SEGMENT_BYTES, max(max_bytes // 8, 4096))
        self.older: list[DiskRun] = []
        self.lost_frames = 0
        """Frames of runs that could not be recovered; the next hello reports them."""
        self._next_number = 0

    def recover(self) -> None:
        """Find the runs that earlier agents left; what cannot be read is reported and passed over."""
        try:
            folders = sorted(path for path in self._folder.iterdir() if path.is_dir())
        except OSError:
            return  # nothing there yet, or unreadable: appending will say so
        for folder in folders:
            number = folder.name.partition("-")[0]
            if not number.isdigit():
                continue
            self._next_number = max(self._next_number, int(number) + 1)
            run = self._recovered(folder)
            if run is None:
                continue
            if run.is_empty and not run.told_facts.dropped_frames:
                run.delete()
            else:
                self.older.append(run)

    def _recovered(self, folder: Path) -> DiskRun | None:
        """Return a run that an earlier agent left; one that cannot be identified is deleted and counted."""
        try:
            facts = _read_facts(folder / _RUN_FILE)
        except OSError as error:
            log.warning("cannot read the spool folder %s; skipping it: %s", folder, error)
            return None
        run = DiskRun(folder, facts or _UNKNOWN_RUN)
        run.recover()
        if facts is None:
            facts = run.facts_in_segments()
            if facts is None:
                lost = run.frame_count()
                self.lost_frames += lost
                log.warning(
                    "the spool folder %s was damaged and has been deleted; %d reports are lost; check the disk",
                    folder,
                    lost,
                )
                run.delete()
                return None
            run.facts = facts
            log.warning("the file %s was damaged and has been rebuilt; check the disk", folder / _RUN_FILE)
        return run

    def new_run(self, facts: RunFacts) -> DiskRun:
        """Begin a run; nothing is written before its first frame is appended."""
        folder = self._folder / f"{self._next_number:010d}-{facts.boot_id}"
        self._next_number += 1
        return DiskRun(folder, facts, self._segment_bytes)

    def make_room(self, current: DiskRun) -> int:
        """Drop the oldest segments until the bound is kept; returns how many frames are lost."""
        lost = 0
        runs = [*self.older, current]
        total = sum(run.size_bytes for run in runs)
        while total > self.max_bytes:
            run = next((run for run in runs if run.is_droppable), None)
            if run is None:
                break
            before = run.size_bytes
            lost += run.drop_oldest()
            total -= before - run.size_bytes
        return lost


_UNKNOWN_RUN = RunFacts(
    boot_id="unknown", layout=Layout(host=(), devices=(), processes=(), uses=()), interval_seconds=1.0
)


def _read_facts(path: Path) -> RunFacts | None:
    """Read a run's own file; None if it is damaged or missing, ``OSError`` if it cannot be read."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=RunFacts)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.new")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(fd)
    temporary.replace(path)
