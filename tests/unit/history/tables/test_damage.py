"""Files that have gone bad: only they are given up, and it is said."""

from __future__ import annotations

import dataclasses
import os
import random
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.tables.compaction import merge
from gpuherd.history.tables.engine import Unreadable
from gpuherd.history.tables.segments import Segment
from gpuherd.history.tables.tables import Part, Tables
from support.rows import ROWS, kept, open_rows, put
from support.soak import SOAK


def fill(tables: Tables) -> tuple[Segment, Segment]:
    bad = put(tables, [(n / 10, f"gpu-{n % 7}", float(n * n % 101)) for n in range(3000)])
    return bad, put(tables, [(1000.0, "a", 1.0)], partition=960)


def harm(path: Path, offset: int, bit: int) -> None:
    """Change one bit and nothing else, not even the time of the last change."""
    before = path.stat()
    with path.open("r+b") as opened:
        opened.seek(offset)
        (old,) = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([old ^ (1 << bit)]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.soak
def test_a_changed_bit_is_never_believed(tmp_path: Path) -> None:
    """Wherever it is; DuckDB alone reads other numbers in half of all cases, and stops altogether in some."""
    chance = random.Random(7)  # noqa: S311 - places, not secrets
    tables = open_rows(tmp_path)
    bad, good = fill(tables)
    path = tmp_path / bad.file
    sound = path.read_bytes()
    manifests = {name: (tmp_path / name).read_bytes() for name in ("manifest.json", "manifest-copy.json")}
    places = [0, 3, len(sound) - 1, len(sound) - 5, len(sound) - 8]
    for place in [*places, *(chance.randrange(len(sound)) for _ in range(10 * SOAK))]:
        tables.close()
        path.write_bytes(sound)
        for name, content in manifests.items():
            (tmp_path / name).write_bytes(content)
        harm(path, place, chance.randrange(8))
        tables = open_rows(tmp_path)
        answer = tables.query("SELECT value FROM {rows}", {"rows": Part("rows")})
        assert answer.columns["value"].tolist() == [1.0]
        (missing,) = answer.missing
        assert (missing.start, missing.end) == (bad.start, bad.end)
        assert tables.segments("rows") == (good,)
        assert (tmp_path / "quarantine" / bad.file.replace("/", "-")).exists()
    tables.close()


@pytest.mark.parametrize("what", ["gone", "empty", "short", "noise", "a folder"])
def test_a_file_that_goes_bad_while_it_is_in_use(tmp_path: Path, what: str) -> None:
    tables = open_rows(tmp_path)
    bad, _ = fill(tables)
    assert len(kept(tables)) == 3001
    path = tmp_path / bad.file
    content = path.read_bytes()
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what != "gone":
        path.write_bytes(
            {"empty": b"", "short": content[: len(content) // 2], "noise": os.urandom(9000)}[what]
        )
    answer = tables.query("SELECT value FROM {rows}", {"rows": Part("rows")})
    assert answer.columns["value"].tolist() == [1.0]
    assert [(part.start, part.end) for part in answer.missing] == [(bad.start, bad.end)]
    assert tables.missing("rows", 1000.0) == ()
    # It stays so, and more can be kept.
    put(tables, [(2000.0, "a", 2.0)], partition=1980)
    tables.close()
    tables = open_rows(tmp_path)
    assert [row[2] for row in kept(tables)] == [1.0, 2.0]
    assert len(tables.missing("rows")) == 1
    tables.close()


def test_damage_is_not_copied(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    bad, good = fill(tables)
    tables.close()
    harm(tmp_path / bad.file, bad.size_bytes // 3, 2)
    tables = open_rows(tmp_path)
    with pytest.raises(Unreadable):
        merge(tables, [bad, good])
    assert tables.segments("rows") == (good,)
    assert len(tables.missing("rows")) == 1
    tables.close()


def test_damage_is_found_before_anyone_asks(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    bad, good = fill(tables)
    tables.close()
    harm(tmp_path / bad.file, bad.size_bytes // 2, 0)
    tables = open_rows(tmp_path)
    assert tables.segments("rows") == (bad, good)
    tables.tend(0.0)
    assert tables.segments("rows") == (good,)
    tables.close()


def test_duckdb_is_started_anew_when_it_gives_up(tmp_path: Path) -> None:
    """After an error of its own, DuckDB answers nothing any more; the next question is answered all the same."""
    tables = open_rows(tmp_path)
    put(tables, [(1.0, "a", 1.0)])
    readers = tables._readers
    with pytest.raises(Unreadable), readers._failures(), readers._connection():
        raise readers._duckdb.InternalException("INTERNAL Error: for a test")
    assert readers.restarts == 1
    assert kept(tables) == [(1.0, "a", 1.0)]
    tables.close()


def test_files_are_listed_anew_when_all_lists_are_lost(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    fill(tables)
    put(tables, [(5000.0, "b", None)], partition=4980)
    before = [(s.file, s.start, s.end, s.rows, s.shape, s.partition) for s in tables.segments("rows")]
    tables.close()
    (tmp_path / "manifest.json").write_bytes(b"")
    (tmp_path / "manifest-copy.json").unlink()
    (tmp_path / "rows" / "mine.parquet").write_bytes(b"mine")
    (tmp_path / "rows" / "2026-01-01T0000-0000ffff.parquet").write_bytes(os.urandom(100))
    tables = open_rows(tmp_path)
    assert [(s.file, s.start, s.end, s.rows, s.shape, s.partition) for s in tables.segments("rows")] == before
    assert len(kept(tables)) == 3002
    assert tables.catalogue.settled("usage") == 0
    assert tables.catalogue.next_serial() > 0xFFFF
    assert (tmp_path / "rows" / "mine.parquet").read_bytes() == b"mine"
    tables.close()
    tables = open_rows(tmp_path)
    assert len(kept(tables)) == 3002
    tables.close()


def test_files_say_of_themselves_what_they_are(tmp_path: Path) -> None:
    derived = dataclasses.replace(ROWS, name="derived", is_derived=True)
    tables = open_rows(tmp_path, ROWS, derived)
    put(tables, [(5.0, "a", 1.0)], level=7)
    tables.commit(settled={"it's": 4, "usage": 2})
    column = {"time": np.array([6.0])}
    tables.commit(add=[tables.write("rows", column, partition=60, settled={"usage": 3})])
    tables.commit(add=[tables.write("derived", column, partition=60)])
    tables.close()
    for name in ("manifest.json", "manifest-copy.json"):
        (tmp_path / name).unlink()
    tables = open_rows(tmp_path, ROWS, derived)
    assert [segment.level for segment in tables.segments("rows")] == [7, 0]
    assert not tables.segments("derived")
    assert {name: tables.catalogue.settled(name) for name in ("it's", "usage")} == {"it's": 4, "usage": 3}
    tables.close()
