"""Tables: what is written, asked and replaced, with files that may go bad at any time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gpuherd.history.tables.adoption import adopt
from gpuherd.history.tables.catalogue import QUARANTINE_SECONDS, Catalogue, Outdated
from gpuherd.history.tables.disk import sync_folder
from gpuherd.history.tables.engine import Columns, Engine, TooMuch, Unreadable
from gpuherd.history.tables.parts import Part, filled_in
from gpuherd.history.tables.segments import Segment, Shape
from gpuherd.history.tables.soundness import Soundness
from gpuherd.history.tables.writing import Place, SegmentWriter, Sortable, Statement
from gpuherd.model.history import MissingPart

__all__ = ["Answer", "Part", "Tables"]

WRITER_MEMORY_BYTES = 256 * 2**20
CHECKED_BYTES_PER_QUERY = 64 * 2**20
"""What was not looked at since the start is checked before it is first believed, some 20 ms worth at a time."""
CHECKED_BYTES_PER_TEND = 64 * 2**20
CHECK_AGAIN_SECONDS = 86_400.0
CHANGES_PER_ENGINE = 1000
"""DuckDB remembers some 20 kB of every file it has read, also of those that are gone."""
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns by name, and what is missing from them."""

    columns: dict[str, NDArray[Any]]
    missing: tuple[MissingPart, ...] = ()


class Tables:
    """All tables in one folder. From any thread."""

    def __init__(
        self,
        folder: Path,
        shapes: Iterable[Shape],
        *,
        query_memory_bytes: int = 512 * 2**20,
        threads: int | None = None,
        clock: Callable[[], float] = time.time,
        trusted: Callable[[float], float | None] = lambda now: now,
    ) -> None:
        """``trusted``: of a time that a clock told, the one by which things are old; none: nothing is to be deleted."""
        self.folder = folder.absolute()
        self.trusted = trusted
        self.shapes = {shape.name: shape for shape in shapes}
        self.catalogue = Catalogue(self.folder, clock=clock)
        self._soundness = Soundness(self.folder)
        self._engines: list[Engine] = []
        self._renewed_at = self.catalogue.generation
        try:
            self._open(query_memory_bytes, min(4, os.cpu_count() or 1) if threads is None else threads)
        except BaseException:
            self.close()
            raise

    def _open(self, query_memory_bytes: int, threads: int) -> None:
        for shape in self.shapes.values():
            (self.folder / shape.name).mkdir(mode=0o700, exist_ok=True)
        sync_folder(self.folder)
        self._readers = Engine(self.folder, memory_bytes=query_memory_bytes, threads=threads)
        self._engines.append(self._readers)
        # Apart from the readers: writing takes neither their threads nor their memory.
        self._writing = Engine(self.folder, memory_bytes=WRITER_MEMORY_BYTES, threads=1, name="writer")
        self._engines.append(self._writing)
        self._writer = SegmentWriter(self.folder, self._writing)
        if self.catalogue.strays:
            adopt(self.catalogue, self.shapes, self._writing)

    def query(
        self,
        sql: str,
        parts: Mapping[str, Part],
        parameters: Sequence[object] = (),
        *,
        arrays: Mapping[str, Columns] | None = None,
        deadline_seconds: float | None = None,
    ) -> Answer:
        """Ask; in the SQL, ``{name}`` stands for a part of a table, and the name of ``arrays`` for numpy columns.

        A file that turns out to be bad is set aside, and the rest is asked again. Raises ``Failed`` (``TooMuch``,
        ``TooLong``) if there is no answer.
        """
        for rounds_left in reversed(range(_ROUNDS)):
            with self.catalogue.hold() as snapshot:
                chosen = {name: part.chosen(snapshot) for name, part in parts.items()}
                if self._set_unsound_aside(chosen, budget_bytes=CHECKED_BYTES_PER_QUERY):
                    continue
                restarts = self._readers.restarts
                try:
                    columns = self._readers.query(
                        filled_in(sql, parts, chosen, self.shapes, self.folder),
                        parameters,
                        arrays=arrays,
                        deadline_seconds=deadline_seconds,
                    )
                except (Unreadable, TooMuch) as error:
                    # A damaged file can ask for any amount of memory; but checking everything again whenever somebody
                    # asks too much would be a burden.
                    within = math.inf if isinstance(error, TooMuch) else 0.0
                    is_bad = self._set_unsound_aside(chosen, within_seconds=within)
                    # An error in another thread's question may have ended this one.
                    if not rounds_left or not (is_bad or self._readers.restarts > restarts):
                        raise
                    continue
                missing = [snapshot.missing(part.table, part.start, part.end) for part in parts.values()]
                return Answer(columns, tuple(dict.fromkeys(each for found in missing for each in found)))
        raise Unreadable("history: more and more files are damaged; check the disk")

    def write(
        self,
        table: str,
        columns: Mapping[str, Sortable],
        *,
        partition: int,
        level: int = 0,
        row_group_rows: int | None = None,
        settled: Mapping[str, int] | None = None,
    ) -> Segment | None:
        """Make a segment of columns; durable, and listed only by ``commit``. None if there are no rows.

        They are sorted; of rows that agree in what is unique, the last counts. Columns of the shape that are not given
        are null, and NaN becomes null. Raises ``DiskFull``, ``Failed``.

        ``settled``: what ``commit`` will be told with this segment, if it is the last made for it. The file says so
        too, in case all lists are lost.
        """
        place = self._place(partition, level, row_group_rows, settled)
        return self._trusted(self._writer.of_columns(self.shapes[table], columns, place))

    def write_query(
        self,
        table: str,
        sql: str,
        parts: Mapping[str, Part],
        parameters: Sequence[object] = (),
        *,
        partition: int,
        level: int = 0,
        arrays: Mapping[str, Columns] | None = None,
        row_group_rows: int | None = None,
        stretches: Sequence[tuple[str, Sequence[object]]] = (),
    ) -> Segment | None:
        """Make a segment of an answer, sorted, without its passing through Python. None if there are no rows.

        Its columns are taken by name, those of the shape that it lacks are null, and it must have a row once that is to
        be there once. ``stretches`` are conditions with their parameters, each put where the SQL says ``{stretch}``:
        then it is answered piece by piece, the pieces being in the table's order.

        Raises ``Unreadable`` if a part cannot be read wholly: a file that is bad has then been set aside; try again,
        without it. Damage is never copied. ``Outdated`` if a segment asked for by name is not listed any more.
        """
        with self._whole(parts) as chosen:
            text = filled_in(sql, parts, chosen, self.shapes, self.folder)
            statements = [
                Statement(text.replace("{stretch}", condition), [*parameters, *values], arrays)
                for condition, values in stretches or [("true", ())]
            ]
            place = self._place(partition, level, row_group_rows)
            segment = self._writer.of_answers(self.shapes[table], statements, place)
        return self._trusted(segment)

    def read(
        self, sql: str, parts: Mapping[str, Part], parameters: Sequence[object] = ()
    ) -> dict[str, NDArray[Any]]:
        """Ask for columns that are to be written again: from files that are sound, all of them.

        Raises as ``write_query`` does.
        """
        with self._whole(parts) as chosen:
            return self._writing.query(filled_in(sql, parts, chosen, self.shapes, self.folder), parameters)

    def told_columns(self, segments: Sequence[Segment]) -> frozenset[str]:
        """List the columns in which some of these segments have anything but nulls, as far as the files tell."""
        part = Part(segments[0].table, segments=tuple(segments))
        with self._whole({"part": part}) as chosen:
            found = self._writing.query(
                "SELECT path_in_schema AS name FROM parquet_metadata(?) "
                "WHERE stats_null_count IS NULL OR stats_null_count < num_values GROUP BY 1",
                [[str(self.folder / segment.file) for segment in chosen["part"]]],
            )
        return frozenset(found["name"].tolist())

    @contextmanager
    def _whole(self, parts: Mapping[str, Part]) -> Iterator[Mapping[str, Sequence[Segment]]]:
        """Hold parts that are to be written again: they are all there, and sound."""
        with self.catalogue.hold() as snapshot:
            chosen = {name: part.chosen(snapshot) for name, part in parts.items()}
            for name, part in parts.items():
                if part.segments is not None and len(part.segments) != len(chosen[name]):
                    raise Outdated("history: a file was replaced or removed in the meantime")
            if self._set_unsound_aside(chosen):
                raise Unreadable("history: a file was damaged and has been set aside")
            try:
                yield chosen
            except (Unreadable, TooMuch):
                self._set_unsound_aside(chosen, within_seconds=0)
                raise

    def commit(
        self,
        *,
        add: Iterable[Segment | None] = (),
        remove: Iterable[Segment] = (),
        settled: Mapping[str, int] | None = None,
    ) -> None:
        """List and unlist segments and say how far sinks have settled, in one durable step; see ``Catalogue``."""
        self.catalogue.commit(add=[s for s in add if s is not None], remove=remove, settled=settled)

    def discard(self, *segments: Segment | None) -> None:
        """Delete files that were made and are not to be listed."""
        for segment in segments:
            if segment is not None:
                (self.folder / segment.file).unlink(missing_ok=True)

    def segments(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[Segment, ...]:
        """List a table's segments with rows in a range, both ends included; by partition, then serial."""
        return self.catalogue.segments(table, start, end)

    def chosen(self, part: Part) -> tuple[Segment, ...]:
        """List the segments that a part means now."""
        with self.catalogue.hold() as snapshot:
            return part.chosen(snapshot)

    def missing(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[MissingPart, ...]:
        """Tell what of a table had to be given up in a range."""
        return self.catalogue.missing(table, start, end)

    def tend(self, now: float) -> None:
        """Do what is due in the background: take the ballast back, check files for damage, empty the quarantine.

        Blocking for a few tens of milliseconds; call it every few seconds.
        """
        self.catalogue.ballast.restore()
        trusted = self.trusted(now)
        if trusted is not None:
            self.catalogue.empty_quarantine(trusted - QUARANTINE_SECONDS)
        if self.catalogue.generation >= self._renewed_at + CHANGES_PER_ENGINE:
            self._renewed_at = self.catalogue.generation
            for engine in self._engines:
                engine.renew()
        with self.catalogue.hold() as snapshot:
            segments = snapshot.manifest.segments
            self._soundness.forget_others(segment.file for segment in segments)
            for segment, reason in self._soundness.unsound(
                segments, within_seconds=CHECK_AGAIN_SECONDS, budget_bytes=CHECKED_BYTES_PER_TEND
            ):
                self.catalogue.set_aside(segment, reason)

    def close(self) -> None:
        """Let go of everything."""
        for engine in self._engines:
            engine.close()
        self.catalogue.close()

    def _place(
        self,
        partition: int,
        level: int,
        row_group_rows: int | None,
        settled: Mapping[str, int] | None = None,
    ) -> Place:
        known = {**self.catalogue.all_settled(), **(settled or {})}
        return Place(partition, self.catalogue.next_serial(), level, row_group_rows, known)

    def _trusted(self, segment: Segment | None) -> Segment | None:
        if segment is not None:
            self._soundness.trust(segment)
        return segment

    def _set_unsound_aside(
        self,
        chosen: Mapping[str, Sequence[Segment]],
        *,
        within_seconds: float = math.inf,
        budget_bytes: float = math.inf,
    ) -> bool:
        segments = {segment.file: segment for each in chosen.values() for segment in each}.values()
        bad = self._soundness.unsound(segments, within_seconds=within_seconds, budget_bytes=budget_bytes)
        for segment, reason in bad:
            self.catalogue.set_aside(segment, reason)
        return bool(bad)
