"""Listing anew what lies in the folder, when every copy of the list is lost."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from gpuherd.history.tables.catalogue import Catalogue
from gpuherd.history.tables.engine import Engine, quoted
from gpuherd.history.tables.segments import SEGMENT_FILE, Segment, Shape, checksum_of
from gpuherd.history.tables.writing import Origin, extent_of, origin_of
from gpuherd.model.errors import Failed

__all__ = ["adopt"]

_log = logging.getLogger(__name__)


def adopt(catalogue: Catalogue, shapes: Mapping[str, Shape], engine: Engine) -> None:
    """List every file that can be read, and set the others aside.

    How far the sinks had settled is taken from the files too. What can be made of other tables is made anew.
    """
    found: list[Segment] = []
    settled: dict[str, int] = {}
    for path in catalogue.strays:
        shape = shapes.get(path.parent.name)
        try:
            origin = origin_of(engine, path)
            is_wanted = shape is not None and not shape.is_derived
            segment = _described(path, shape, engine, origin) if shape is not None and is_wanted else None
        except (Failed, OSError) as error:
            _log.error("history: cannot recover %s: %s", path, error)
            segment = None
        if segment is None:
            catalogue.keep_aside(path)
        else:
            found.append(segment)
            for word, number in origin.settled.items():
                settled[word] = max(number, settled.get(word, 0))
    _log.error(
        "history: the manifest is missing; recovered %d of %d files; check the disk",
        len(found),
        len(catalogue.strays),
    )
    catalogue.commit(add=found, settled=settled)


def _described(path: Path, shape: Shape, engine: Engine, origin: Origin) -> Segment | None:
    name = SEGMENT_FILE.fullmatch(path.name)
    start, end, rows = extent_of(engine, shape, path)
    if name is None or not rows:
        return None
    columns = engine.query(f"DESCRIBE FROM read_parquet({quoted(str(path))})")
    kinds = dict(zip(columns["column_name"].tolist(), columns["column_type"].tolist(), strict=True))
    is_current = list(kinds.items()) == list(shape.columns.items())
    return Segment(
        file=f"{shape.name}/{path.name}",
        table=shape.name,
        partition=int(datetime.strptime(name[1], "%Y-%m-%dT%H%M").replace(tzinfo=UTC).timestamp()),
        start=start,
        end=end,
        rows=rows,
        size_bytes=path.stat().st_size,
        checksum=checksum_of(path),
        serial=int(name[2], 16),
        level=origin.level,
        shape=shape.fingerprint if is_current else "",
    )
