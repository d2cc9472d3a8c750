"""One file of several: sorted throughout, each row once, whichever way it is cut into pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history.tables import compaction
from gpuherd.history.tables.catalogue import Outdated
from gpuherd.history.tables.compaction import crowded, merge, merged
from gpuherd.history.tables.segments import Shape
from support.rows import ROWS, kept, open_rows, put
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
@given(FILES)
def test_the_last_of_each_row_in_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[float, str | None, float]]]
) -> None:
    tables = open_rows(tmp_path_factory.mktemp("rows"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "SORTED_BYTES", 500)  # a few rows at a time
        segments = [put(tables, rows) for rows in files]
        expected = {(name, time): value for rows in files for time, name, value in rows}
        segment = merge(tables, segments)
    assert segment is not None
    assert tables.segments("rows") == (segment,)
    assert (segment.level, segment.rows) == (1, len(expected))
    ordered = sorted(expected, key=lambda key: (key[0] is None, key[0] or "", key[1]))
    assert kept(tables) == [(time, name, expected[name, time]) for name, time in ordered]
    assert len(list((tables.folder / "rows").iterdir())) == 1
    assert not list((tables.folder / "writing").iterdir())
    tables.close()


def test_many_pieces_come_out_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "SORTED_BYTES", 200_000)
    shape = Shape(
        "rows", ROWS.columns, order_by=("name", "time"), unique_by=("name", "time"), row_group_rows=2048
    )
    tables = open_rows(tmp_path, shape)
    for hour in range(4):
        put(tables, [(hour * 100.0 + n % 100, f"gpu-{n // 100:03}", float(n)) for n in range(5000)])
    merge(tables, tables.segments("rows"))
    found = kept(tables)
    assert len(found) == 20_000
    assert found == sorted(found, key=lambda row: (row[1], row[0]))
    tables.close()


def test_without_anything_unique_all_rows_stay(tmp_path: Path) -> None:
    tables = open_rows(tmp_path, Shape("rows", ROWS.columns))
    segments = [put(tables, [(1.0, "a", 1.0)]) for _ in range(3)]
    merge(tables, segments, partition=3600)
    assert kept(tables) == [(1.0, "a", 1.0)] * 3
    assert tables.segments("rows")[0].partition == 3600
    tables.close()


def test_who_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    segments = [put(tables, [(1.0, "a", 1.0)]), put(tables, [(2.0, "a", 1.0)])]
    segment = merged(tables, segments)
    assert segment is not None
    tables.commit(remove=segments[:1])
    with pytest.raises(Outdated):
        tables.commit(add=[segment], remove=segments)
    with pytest.raises(Outdated):
        merge(tables, segments)
    assert tables.segments("rows") == (segments[1],)
    assert [path.name for path in (tmp_path / "rows").iterdir()] == [Path(segments[1].file).name]
    tables.close()


def test_partitions_with_many_files_oldest_first(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    for partition, count in ((0, 2), (60, 3), (120, 1), (180, 3)):
        for n in range(count):
            put(tables, [(partition + n, "a", 1.0)], partition=partition)
    assert [len(group) for group in crowded(tables, "rows")] == [2, 3, 3]
    assert [group[0].partition for group in crowded(tables, "rows", least=3)] == [60, 180]
    assert [group[0].partition for group in crowded(tables, "rows", least=3, before=180)] == [60]
    tables.close()
