# ruff: noqa: S608 - SQL is put together of quoted names only; what is asked for goes in as parameters
"""Tables: what is written, asked and replaced, with files that may go bad at any time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gpuherd.history.tables.catalogue import Catalogue, Snapshot
from gpuherd.history.tables.disk import DiskFull, is_full, sync_file, sync_folder
from gpuherd.history.tables.engine import Columns, Engine, Unreadable, named, quoted
from gpuherd.history.tables.segments import Segment, Shape, checksum_of, why_unsound
from gpuherd.history.tables.writing import Sortable, column_query
from gpuherd.model.errors import Failed
from gpuherd.model.history import MissingPart

__all__ = ["Answer", "Part", "Tables"]

WRITER_MEMORY_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """What of a table a question is about: the segments with rows in a range, or some by name."""

    table: str
    start: float = -math.inf
    end: float = math.inf
    segments: tuple[Segment, ...] | None = None
    """Only these, instead of those in the range."""
    with_serial: bool = False
    """Adds a column ``serial``: that of the segment which a row is in."""


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
    ) -> None:
        self.folder = folder.absolute()
        self.shapes = {shape.name: shape for shape in shapes}
        self.catalogue = Catalogue(self.folder, clock=clock)
        for shape in self.shapes.values():
            (self.folder / shape.name).mkdir(mode=0o700, exist_ok=True)
        sync_folder(self.folder)
        cores = min(4, os.cpu_count() or 1) if threads is None else threads
        self.readers = Engine(self.folder, memory_bytes=query_memory_bytes, threads=cores)
        # Apart from the readers: writing takes neither their threads nor their memory.
        self.writer = Engine(self.folder, memory_bytes=WRITER_MEMORY_BYTES, threads=1, name="writer")

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
        return self._careful(
            self.readers, sql, parts, parameters, arrays=arrays, deadline_seconds=deadline_seconds
        )

    def write(
        self, table: str, columns: Mapping[str, Sortable], *, partition: int, level: int = 0
    ) -> Segment | None:
        """Make a segment of columns, sorted; durable, and listed only by ``commit``. None if there are no rows.

        Columns of the shape that are not given are null; NaN becomes null. Raises ``DiskFull``, ``Failed``.
        """
        sql, given, lists = column_query(self.shapes[table], columns)
        return self._make(table, sql, partition, level, arrays={"given": given}, lists=lists)

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
    ) -> Segment | None:
        """Make a segment of an answer, without its passing through Python; it must come with ORDER BY.

        Its columns are taken by name; those of the shape that it lacks are null. None if there are no rows. Raises
        ``Unreadable`` if a part cannot be read wholly: a file that is bad has then been set aside; try again.
        """
        with self.catalogue.hold() as snapshot:
            text = self._fill_in(sql, parts, snapshot)
            try:
                return self._make(table, text, partition, level, parameters=parameters, arrays=arrays)
            except Unreadable as error:
                self._set_bad_aside(parts, snapshot, error)
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

    def missing(self, table: str, start: float = -math.inf, end: float = math.inf) -> tuple[MissingPart, ...]:
        """Tell what of a table had to be given up in a range."""
        return self.catalogue.missing(table, start, end)

    def close(self) -> None:
        """Let go of everything."""
        self.readers.close()
        self.writer.close()
        self.catalogue.close()

    # -- inside

    def _careful(
        self,
        engine: Engine,
        sql: str,
        parts: Mapping[str, Part],
        parameters: Sequence[object],
        *,
        arrays: Mapping[str, Columns] | None,
        deadline_seconds: float | None,
    ) -> Answer:
        for is_last in (False, False, True):
            with self.catalogue.hold() as snapshot:
                text = self._fill_in(sql, parts, snapshot)
                try:
                    columns = engine.query(text, parameters, arrays=arrays, deadline_seconds=deadline_seconds)
                except Unreadable as error:
                    if not self._set_bad_aside(parts, snapshot, error) or is_last:
                        raise
                    continue
                missing = [snapshot.missing(part.table, part.start, part.end) for part in parts.values()]
                return Answer(columns, tuple(dict.fromkeys(each for found in missing for each in found)))
        raise AssertionError  # pragma: no cover - the last round returns or raises

    def _fill_in(self, sql: str, parts: Mapping[str, Part], snapshot: Snapshot) -> str:
        for name, part in parts.items():
            sql = sql.replace("{" + name + "}", self._source(part, snapshot))
        return sql

    def _chosen(self, part: Part, snapshot: Snapshot) -> tuple[Segment, ...]:
        chosen = snapshot.segments(part.table, part.start, part.end)
        if part.segments is None:
            return chosen
        wanted = {segment.file for segment in part.segments}
        return tuple(segment for segment in snapshot.segments(part.table) if segment.file in wanted)

    def _source(self, part: Part, snapshot: Snapshot) -> str:
        shape = self.shapes[part.table]
        chosen = self._chosen(part, snapshot)
        kinds = [*shape.columns.items(), *([("serial", "BIGINT")] if part.with_serial else [])]
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {named(name)}" for name, kind in kinds)
        empty = f"SELECT {nothing} WHERE false"
        if not chosen:
            return f"({empty})"
        paths = ", ".join(quoted(str(self.folder / segment.file)) for segment in chosen)
        is_uniform = all(segment.shape == shape.fingerprint for segment in chosen)
        options = "" if is_uniform else ", union_by_name = true"
        options += ", filename = true" if part.with_serial else ""
        source = f"read_parquet([{paths}]{options})"
        if part.with_serial:
            # The file's name ends in its serial, in hexadecimal.
            serial = "CAST(concat('0x', filename[-16:-9]) AS BIGINT)"
            source = f"(SELECT * EXCLUDE (filename), {serial} AS serial FROM {source})"
        return source if is_uniform else f"({empty} UNION ALL BY NAME SELECT * FROM {source})"

    def _set_bad_aside(self, parts: Mapping[str, Part], snapshot: Snapshot, error: Unreadable) -> bool:
        is_any = False
        for part in parts.values():
            for segment in self._chosen(part, snapshot):
                reason = why_unsound(self.folder / segment.file, segment, thoroughly=True)
                if reason is not None:
                    self.catalogue.set_aside(segment, reason)
                    is_any = True
        return is_any

    def _make(
        self,
        table: str,
        sql: str,
        partition: int,
        level: int,
        *,
        parameters: Sequence[object] = (),
        arrays: Mapping[str, Columns] | None = None,
        lists: Mapping[str, list[str | None]] | None = None,
    ) -> Segment | None:
        shape = self.shapes[table]
        serial = self.catalogue.next_serial()
        beside = self.folder / "writing" / f"{serial:08x}.parquet"
        nothing = ", ".join(f"CAST(NULL AS {kind}) AS {named(name)}" for name, kind in shape.columns.items())
        typed = ", ".join(f"CAST({named(n)} AS {kind}) AS {named(n)}" for n, kind in shape.columns.items())
        whole = f"SELECT {typed} FROM ((SELECT {nothing} WHERE false) UNION ALL BY NAME ({sql}))"
        options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {shape.row_group_rows}"
        options += f", {shape.options}" if shape.options else ""
        try:
            self.writer.execute(
                f"COPY ({sql if lists is not None else whole}) TO {quoted(str(beside))} ({options})",
                parameters,
                arrays=arrays,
                lists=lists,
            )
            moment = f"epoch({named(shape.time)})" if shape.has_timestamps else named(shape.time)
            found = self.writer.query(
                f"SELECT count(*) AS n, min({moment})::DOUBLE AS a, max({moment})::DOUBLE AS b "
                f"FROM read_parquet({quoted(str(beside))})"
            )
            if not int(found["n"][0]):
                beside.unlink()
                return None
            size_bytes, checksum = beside.stat().st_size, checksum_of(beside)
            sync_file(beside)
            stamp = datetime.fromtimestamp(partition, UTC).strftime("%Y-%m-%dT%H%M")
            file = f"{table}/{stamp}-{serial:08x}.parquet"
            beside.rename(self.folder / file)
            sync_folder(self.folder / table)
        except BaseException as error:
            beside.unlink(missing_ok=True)
            if isinstance(error, OSError):
                if is_full(error):
                    raise DiskFull(f"history: the disk of {self.folder} is full; make room on it") from error
                raise Failed(f"history: cannot write in {self.folder}: {error.strerror}") from error
            if isinstance(error, Unreadable) and "No space left" in str(error.__cause__):
                raise DiskFull(f"history: the disk of {self.folder} is full; make room on it") from error
            raise
        return Segment(
            file=file,
            table=table,
            partition=partition,
            start=float(found["a"][0]),
            end=float(found["b"][0]),
            rows=int(found["n"][0]),
            size_bytes=size_bytes,
            checksum=checksum,
            serial=serial,
            level=level,
            shape=shape.fingerprint,
        )
