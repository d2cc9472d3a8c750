# ruff: noqa: S608 - SQL is put together of names of ours
"""Brings the herd's sums into files, each once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from gpuherd.history.batch import Batch, Samples, Unsampled
from gpuherd.history.herd.shapes import HERD_SHAPES, MINUTE, QUARTER, SUMS
from gpuherd.history.herd.tally import MINUTE_SECONDS, Sums, Tally, added
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SinkHealth
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.tables.writing import Coded, Sortable
from gpuherd.model.errors import Failed

__all__ = ["DAY_SECONDS", "QUARTER_SECONDS", "HerdSink"]

NAME = "herd"
QUARTER_SECONDS, HOUR_SECONDS, DAY_SECONDS = 900, 3600, 86_400
COUNT_ROWS, COUNT_BATCHES = 8192, 64
"""Samples are summed up when there are so many, or somebody asks, who does not wait for long then."""
FOLD_AT_ONCE = 16
"""Pieces become one when a day has so many; and when it is over."""


class HerdSink:
    """Takes samples from the journal. Sums are added up, so each of the journal's files is taken exactly once."""

    def __init__(self, tables: Tables, settings: HistorySettings) -> None:
        self._tables = tables
        self._settings = settings
        self._tally = Tally()
        self._counting = threading.Lock()
        """Held while samples are summed up, and by whoever wants to see all sums."""
        self._lock = threading.Lock()
        """Held for moments."""
        self._heard: list[tuple[int, Samples, tuple[Unsampled, ...]]] = []
        """Samples that are not summed up yet, with their files."""
        self._heard_rows = 0
        self._waiting: dict[int, list[Sums]] = {}
        self._version = 0
        self._failure: tuple[str, float] | None = None

    @property
    def name(self) -> str:
        """Its name, for messages and health."""
        return NAME

    @property
    def settled(self) -> int:
        """The first of the journal's files that it still needs."""
        return self._tables.catalogue.settled(NAME)

    def take(self, batch: Batch, file: int) -> None:
        """Keep what the journal holds, and sum it up when there is enough."""
        if not len(batch.devices) and not batch.unsampled:
            return
        with self._lock:
            self._heard.append((file, batch.devices, batch.unsampled))
            self._heard_rows += len(batch.devices)
            is_enough = self._heard_rows >= COUNT_ROWS or len(self._heard) >= COUNT_BATCHES
        if is_enough:
            self._count()

    def _count(self) -> None:
        """Sum up what was heard. If that fails it stays: its file is not settled, and comes again at the next start."""
        with self._counting:
            with self._lock:
                heard = list(self._heard)
            for file, group in groupby(heard, key=itemgetter(0)):
                taken = list(group)
                batches = [samples for _, samples, _ in taken]
                sums = self._tally.add(*batches)
                unsampled = self._tally.add_unsampled([piece for _, _, pieces in taken for piece in pieces])
                with self._lock:
                    waiting = self._waiting.setdefault(file, [])
                    waiting += (sums, unsampled)
                    if len(waiting) > 256:
                        waiting[:] = [added(waiting)]
                    del self._heard[: len(taken)]
                    self._heard_rows -= sum(map(len, batches))

    def tend(self, now: float, open_file: int) -> None:
        """Write what is complete, fold what is over and forget what is old. Raises ``Failed``."""
        try:
            self._seal(open_file)
            self._fold(now)
            self._forget(now)
        except Failed as error:
            self._failure = (str(error), now)
            raise
        self._failure = None

    def health(self) -> SinkHealth:
        """Tell how it is doing."""
        tables = [shape.name for shape in HERD_SHAPES]
        catalogue = self._tables.catalogue
        return SinkHealth(
            name=NAME,
            state="failing" if self._failure else "ok",
            last_error=self._failure[0] if self._failure else None,
            last_error_at=self._failure[1] if self._failure else None,
            size_bytes=catalogue.size_bytes(tables),
            oldest=catalogue.oldest(tables),
            unreadable=catalogue.unreadable(tables),
            damaged_files=catalogue.damaged_files(tables),
        )

    def close(self) -> None:
        """Nothing is held open here; the tables are closed by who opened them."""

    # -- for the reader

    @property
    def version(self) -> int:
        """Changes when sums move from memory to files or between files; odd while they do."""
        return self._version

    def waiting(self) -> tuple[Sums, list[str]]:
        """Give the sums that are in no file yet, and the names of their types."""
        self._count()
        with self._lock:
            pieces = [piece for pieces in self._waiting.values() for piece in pieces]
            return added(pieces), list(self._tally.types)

    def begins_at(self) -> float | None:
        """Tell since when the herd has been watched, as far as it is still kept, UTC epoch seconds; none if never."""
        self._count()
        with self._lock:
            waiting = [
                float(piece.minute.min())
                for pieces in self._waiting.values()
                for piece in pieces
                if len(piece)
            ]
        kept = self._tables.catalogue.oldest([shape.name for shape in HERD_SHAPES])
        return min([*waiting, *([] if kept is None else [kept])], default=None)

    # -- inside

    @contextmanager
    def _moving(self) -> Iterator[None]:
        self._version += 1
        try:
            yield
        finally:
            self._version += 1

    def _seal(self, open_file: int) -> None:
        if open_file <= self.settled:
            return
        self._count()
        with self._lock:
            files = [file for file in self._waiting if file < open_file]
            sums = added([piece for file in files for piece in self._waiting[file]])
        settled = {NAME: open_file}
        days = np.unique(sums.minute // DAY_SECONDS).tolist()
        made = [
            self._write(
                MINUTE.name,
                _where(sums, sums.minute // DAY_SECONDS == day),
                day * DAY_SECONDS,
                settled=settled if day == days[-1] else None,
            )
            for day in days
        ]
        with self._moving():
            self._tables.commit(add=made, settled=settled)
            with self._lock:
                for file in files:
                    del self._waiting[file]

    def _write(
        self, table: str, sums: Sums, day: int, *, settled: Mapping[str, int] | None = None
    ) -> Segment | None:
        columns: dict[str, Sortable] = {
            "time": (sums.minute * 1000).astype("datetime64[ms]"),
            "type": Coded(sums.type, list(self._tally.types)),
            **{name: sums.values[:, place] for place, name in enumerate(SUMS)},
        }
        return self._tables.write(table, columns, partition=day, settled=settled)

    def _fold(self, now: float) -> None:
        days: dict[int, list[Segment]] = {}
        for segment in self._tables.segments(MINUTE.name):
            days.setdefault(segment.partition, []).append(segment)
        folded = {segment.partition for segment in self._tables.segments(QUARTER.name)}
        for day, segments in days.items():
            fresh = sum(segment.level == 0 for segment in segments)
            # A day that was folded has quarters; if there is nothing else of its minutes, they were forgotten. By the
            # files rather than by the clock, which may be wrong for a while.
            is_gone = fresh == len(segments) and day in folded
            is_over = is_gone or day + DAY_SECONDS + HOUR_SECONDS <= now
            if (is_over and fresh) or fresh >= FOLD_AT_ONCE:
                self._fold_day(day, segments, is_over=is_over, is_gone=is_gone)

    def _fold_day(self, day: int, segments: list[Segment], *, is_over: bool, is_gone: bool) -> None:
        """Make one of a day's pieces, and its quarters of an hour; if its minutes are gone, add to these."""
        minutes = Part(MINUTE.name, segments=tuple(segments))
        old = tuple(s for s in self._tables.segments(QUARTER.name) if s.partition == day)
        made: list[Segment | None] = []
        try:
            if not is_gone:
                sql = f"SELECT time, type, {_added(MINUTE_SECONDS)} FROM {{minutes}} GROUP BY ALL"
                level = 1 if is_over else 0
                made.append(
                    self._tables.write_query(
                        MINUTE.name, sql, {"minutes": minutes}, partition=day, level=level
                    )
                )
            if is_over:
                quarter = "make_timestamp_ms(epoch_ms(time) // 900000 * 900000)"
                source = f"SELECT time, type, {_added(MINUTE_SECONDS)} FROM {{minutes}} GROUP BY ALL" + (
                    " UNION ALL BY NAME SELECT * FROM {old}" if is_gone else ""
                )
                made.append(
                    self._tables.write_query(
                        QUARTER.name,
                        f"SELECT {quarter} AS time, type, {_added(QUARTER_SECONDS)} FROM ({source}) GROUP BY ALL",
                        {"minutes": minutes, "old": Part(QUARTER.name, segments=old)},
                        partition=day,
                        level=1,
                    )
                )
        except BaseException:
            self._tables.discard(*made)
            raise
        with self._moving():
            # Also if it is not over after all: its quarters are made anew when it is.
            self._tables.commit(add=made, remove=[*segments, *old])

    def minutes_from(self, now: float) -> float:
        """Tell from when on minutes are kept, epoch seconds."""
        return now - self._settings.minute_days * DAY_SECONDS

    def _forget(self, now: float) -> None:
        trusted = self._tables.trusted(now)
        if trusted is None:
            return
        keep = {MINUTE.name: self._settings.minute_days, QUARTER.name: self._settings.usage_days}
        due = [
            segment
            for table, days in keep.items()
            for segment in self._tables.segments(table)
            if segment.partition + DAY_SECONDS <= trusted - days * DAY_SECONDS
            and (segment.level or table != MINUTE.name)
        ]
        if due:
            with self._moving():
                self._tables.commit(remove=due)


def _added(seconds: int) -> str:
    """Give the sums of rows of so many seconds; what was covered once more after a new start is no more time."""
    return ", ".join(
        f"least(sum({name}), {seconds}) AS {name}" if name == "covered_seconds" else f"sum({name}) AS {name}"
        for name in SUMS
    )


def _where(sums: Sums, chosen: NDArray[np.bool_]) -> Sums:
    return Sums(sums.minute[chosen], sums.type[chosen], sums.values[chosen])
