"""Sorted files become few sorted files: every row once, the last one of each, cut where owners change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history.tables.catalogue import Outdated
from gpuherd.history.tables.engine import Unreadable
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.splicing import splice
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.tables.writing import Coded
from support.rows import kept, open_rows, put
from support.soak import SOAK

FILES = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 5).map(float),
            st.sampled_from(["a", "b", "ß", None]),
            st.integers(0, 99).map(float),
        ),
        min_size=1,
        max_size=12,
    ),
    min_size=2,
    max_size=5,
)


@pytest.mark.soak
@settings(max_examples=8 * SOAK)
@given(FILES, st.integers(1, 20))
def test_the_last_of_each_row_in_order(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[float, str | None, float]]],
    rows_at_once: int,
) -> None:
    tables = open_rows(tmp_path_factory.mktemp("rows"))
    segments = [put(tables, rows) for rows in files]
    expected = {(name, time): value for rows in files for time, name, value in rows}
    splice(tables, segments, level=1, rows_at_once=rows_at_once)
    made = tables.segments("rows")
    assert {segment.level for segment in made} == {1}
    assert sum(segment.rows for segment in made) == len(expected)
    ordered = sorted(expected, key=lambda key: (key[0] is None, key[0] or "", key[1]))
    found = sorted(kept(tables), key=lambda row: (row[1] is None, row[1] or "", row[0]))
    assert found == [(time, name, expected[name, time]) for name, time in ordered]
    assert len(list((tables.folder / "rows").iterdir())) == len(made)
    tables.close()


def test_one_owner_is_in_one_file_and_only_that_is_opened(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    for hour in range(4):
        put(tables, [(hour * 100.0 + n % 100, f"gpu-{n // 100:03}", float(n)) for n in range(1000)])
    splice(tables, tables.segments("rows"), level=1, rows_at_once=1000)
    made = tables.segments("rows")
    assert len(made) == 4
    assert all(segment.rows <= 1400 for segment in made)
    part = Part("rows", among=("gpu-003",))
    assert len(tables.chosen(part)) == 1
    found = tables.query("SELECT count(*) AS n FROM {part} WHERE name = 'gpu-003'", {"part": part})
    assert found.columns["n"].tolist() == [400]
    assert tables.chosen(Part("rows", among=("nobody", "a"))) == ()
    tables.close()


DEVICES = Shape(
    "devices",
    {"time": "TIMESTAMP_MS", "node": "VARCHAR", "type": "VARCHAR", "count": "BIGINT", "never": "FLOAT"},
    order_by=("node", "time"),
    unique_by=("node", "time"),
)


def put_device(tables: Tables, moments: list[int], types: list[str], counts: list[float]) -> None:
    segment = tables.write(
        "devices",
        {
            "time": np.array(moments).astype("datetime64[ms]"),
            "node": Coded(np.zeros(len(moments), np.int32), ["n1"]),
            "type": Coded(np.arange(len(moments)), types),
            "count": np.array(counts),
        },
        partition=0,
    )
    tables.commit(add=[segment])


def test_what_is_no_part_of_the_order_may_change_from_row_to_row(tmp_path: Path) -> None:
    tables = Tables(tmp_path, [DEVICES])
    put_device(tables, [1, 2, 3], ["A", "B", "A"], [1.0, np.nan, float(2**52 + 1)])
    put_device(tables, [4, 5], ["B", "A"], [4.0, 5.0])
    put_device(tables, [3], ["C"], [33.0])  # once more, under another name
    splice(tables, tables.segments("devices"), level=1)
    found = tables.query(
        "SELECT epoch_ms(time) AS time, type, count, never FROM {part}", {"part": Part("devices")}
    ).columns
    assert found["time"].tolist() == [1, 2, 3, 4, 5]
    assert found["type"].tolist() == ["A", "B", "C", "B", "A"]
    np.testing.assert_array_equal(found["count"], [1.0, np.nan, 33.0, 4.0, 5.0])
    assert np.isnan(found["never"].astype(np.float64)).all()
    tables.close()


def test_large_whole_numbers_stay_what_they_are(tmp_path: Path) -> None:
    tables = Tables(tmp_path, [DEVICES])
    put_device(tables, [1, 2], ["A", "A"], [float(2**53 - 1), np.nan])
    put_device(tables, [3], ["A"], [float(2**52 + 1)])
    splice(tables, tables.segments("devices"), level=1)
    found = tables.query("SELECT count::VARCHAR AS count FROM {part}", {"part": Part("devices")}).columns
    assert found["count"].tolist() == [str(2**53 - 1), None, str(2**52 + 1)]
    tables.close()


def test_who_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    segments = [put(tables, [(1.0, "a", 1.0)]), put(tables, [(2.0, "a", 1.0)])]
    tables.commit(remove=segments[:1])
    with pytest.raises(Outdated):
        splice(tables, segments, level=1)
    assert tables.segments("rows") == (segments[1],)
    assert [path.name for path in (tmp_path / "rows").iterdir()] == [Path(segments[1].file).name]
    tables.close()


def test_damage_is_not_copied(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    segments = [put(tables, [(float(n), "a", 1.0) for n in range(50)]), put(tables, [(60.0, "a", 1.0)])]
    path = tmp_path / segments[0].file
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x55
    tables.close()
    path.write_bytes(content)
    tables = open_rows(tmp_path)
    with pytest.raises(Unreadable):
        splice(tables, segments, level=1)
    assert tables.segments("rows") == (segments[1],)
    assert tables.missing("rows")
    tables.close()
