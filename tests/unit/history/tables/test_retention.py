"""What is forgotten, and in which order."""

from __future__ import annotations

from pathlib import Path

from gpuherd.history.tables.retention import forget, shrink
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.tables import Tables
from support.rows import ROWS, kept, open_rows, put

FINE = Shape("rows", ROWS.columns, order_by=("time",))
COARSE = Shape("coarse", ROWS.columns, order_by=("time",))


def filled(folder: Path) -> Tables:
    tables = open_rows(folder, FINE, COARSE)
    for hour in range(4):
        put(tables, [(hour * 3600.0, "a", 1.0), (hour * 3600.0 + 3599, "a", 2.0)], partition=hour * 3600)
        coarse = tables.write_query(
            "coarse", "SELECT ?::DOUBLE AS time, 3.0 AS value", {}, [hour * 3600], partition=hour * 3600
        )
        tables.commit(add=[coarse])
    return tables


def starts(tables: Tables, table: str) -> list[float]:
    return [segment.start for segment in tables.segments(table)]


def test_by_age(tmp_path: Path) -> None:
    tables = filled(tmp_path)
    gone = forget(tables, {"rows": 3600.0, "coarse": 2 * 3600.0}, now=3 * 3600.0)
    # What has any row that is young enough stays whole.
    assert starts(tables, "rows") == [7200.0, 10800.0]
    assert starts(tables, "coarse") == [3600.0, 7200.0, 10800.0]
    assert len(gone) == 3
    assert not any((tmp_path / segment.file).exists() for segment in gone)
    generation = tables.catalogue.generation
    assert forget(tables, {"rows": 3600.0}, now=3 * 3600.0) == ()
    assert tables.catalogue.generation == generation
    tables.close()


def test_a_loss_is_told_as_long_as_it_would_have_been_kept(tmp_path: Path) -> None:
    tables = filled(tmp_path)
    tables.catalogue.set_aside(tables.segments("rows")[0], "it is a test")
    forget(tables, {"rows": 3600.0}, now=3600.0)
    assert len(tables.missing("rows")) == 1
    forget(tables, {"coarse": 1.0}, now=90_000.0)
    assert len(tables.missing("rows")) == 1
    forget(tables, {"rows": 3600.0}, now=7200.0)
    assert tables.missing("rows") == ()
    tables.close()


def test_by_size_the_finest_and_oldest_first(tmp_path: Path) -> None:
    tables = filled(tmp_path)
    ranks = [["rows"], ["coarse"]]
    total = tables.catalogue.size_bytes()
    assert shrink(tables, ranks, total) == ()
    assert [s.table for s in shrink(tables, ranks, total - 1)] == ["rows"]
    assert starts(tables, "rows") == [3600.0, 7200.0, 10800.0]
    least = tables.catalogue.size_bytes(["coarse"])
    shrink(tables, ranks, least - 1)
    assert starts(tables, "rows") == []
    assert starts(tables, "coarse") == [3600.0, 7200.0, 10800.0]
    tables.close()


def test_what_is_still_needed_is_spared(tmp_path: Path) -> None:
    tables = filled(tmp_path)
    shrink(tables, [["rows"], ["coarse"]], 0, may_go=lambda segment: segment.start < 7200.0)
    assert starts(tables, "rows") == starts(tables, "coarse") == [7200.0, 10800.0]
    assert len(kept(tables)) == 4
    tables.close()
