"""Rows in, rows out: what is written and what is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpuherd.history.deadline import due_at
from gpuherd.history.tables.catalogue import Outdated
from gpuherd.history.tables.engine import TooLong, TooMuch
from gpuherd.history.tables.segments import Shape
from gpuherd.history.tables.tables import Part, Tables
from gpuherd.history.tables.writing import Coded, Sortable
from gpuherd.model.errors import Failed
from support.rows import ROWS, kept, open_rows, put, rows_in

EVERYTHING = {"rows": Part("rows")}


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    opened = open_rows(tmp_path)
    yield opened
    opened.close()


def test_rows_come_back_sorted_with_what_is_unknown(tables: Tables) -> None:
    rows = [(2.0, "b", 1.0), (1.0, "b", None), (3.0, "ä", 2.5), (1.0, None, 4.0), (9.0, "B", 0.0)]
    segment = put(tables, rows)
    assert (segment.rows, segment.start, segment.end) == (5, 1.0, 9.0)
    # As DuckDB sorts: by code points, unknown names last.
    assert kept(tables) == [
        (9.0, "B", 0.0),
        (1.0, "b", None),
        (2.0, "b", 1.0),
        (3.0, "ä", 2.5),
        (1.0, None, 4.0),
    ]
    asked = tables.query("SELECT * FROM {rows} ORDER BY name, time", EVERYTHING).columns
    assert rows_in(asked) == kept(tables)


def test_of_rows_that_agree_the_last_counts(tables: Tables) -> None:
    put(tables, [(1.0, "b", 1.0), (1.0, "a", 2.0), (1.0, "b", 3.0), (0.0, "b", 4.0), (1.0, "b", None)])
    assert kept(tables) == [(1.0, "a", 2.0), (0.0, "b", 4.0), (1.0, "b", None)]


@pytest.mark.parametrize("count", [1, 3, 30_000])
def test_strings_of_any_kind_and_number(tmp_path: Path, count: int) -> None:
    tables = open_rows(tmp_path, Shape("rows", ROWS.columns))
    strange = ["", "a'b\"c\\", "x\x00y", "\u202e🐄", "same", "same", "NULL", None, "\ud800"]
    values = [*strange, *(f"name-{n}" for n in range(count))]
    codes = np.arange(-1, len(values))
    segment = tables.write("rows", {"time": codes * 1.0, "name": Coded(codes, values)}, partition=0)
    tables.commit(add=[segment])
    assert [name for _, name, _ in kept(tables)] == [None, *strange[:-1], "?", *values[len(strange) :]]
    # Nor is anything left over for the next.
    nobody = tables.write(
        "rows", {"time": np.zeros(2), "name": Coded(np.array([0, -1]), [None])}, partition=0
    )
    assert nobody is not None
    tables.commit(add=[nobody])
    assert kept(tables, [nobody]) == [(0.0, None, None)] * 2
    tables.close()


def test_rows_are_told_apart_by_other_columns_than_they_are_sorted_by(tmp_path: Path) -> None:
    shape = Shape("rows", ROWS.columns, order_by=("time",), unique_by=("name",))
    tables = open_rows(tmp_path, shape)
    put(tables, [(3.0, "b", 1.0), (1.0, "a", 2.0), (2.0, "b", 3.0)])
    assert kept(tables) == [(1.0, "a", 2.0), (2.0, "b", 3.0)]
    tables.close()


def test_nothing_is_no_segment(tables: Tables) -> None:
    empty: dict[str, Sortable] = {
        "time": np.empty(0),
        "name": Coded(np.empty(0, np.int64), []),
        "value": np.empty(0),
    }
    assert tables.write("rows", empty, partition=0) is None
    assert tables.write_query("rows", "SELECT * FROM {rows}", EVERYTHING, partition=0) is None
    tables.commit(add=[None], settled={"usage": 1})
    answer = tables.query("SELECT time, name, value FROM {rows}", EVERYTHING)
    assert rows_in(answer.columns) == []
    assert not list((tables.folder / "writing").iterdir())


def test_columns_that_are_not_given_are_unknown(tables: Tables) -> None:
    segment = tables.write("rows", {"time": np.array([1.0, 2.0])}, partition=0)
    tables.commit(add=[segment])
    assert kept(tables) == [(1.0, None, None), (2.0, None, None)]


def test_columns_must_be_of_one_length(tables: Tables) -> None:
    with pytest.raises(ValueError, match="different lengths"):
        tables.write("rows", {"time": np.zeros(2), "value": np.zeros(3)}, partition=0)


def test_what_is_not_committed_does_not_count(tables: Tables) -> None:
    segment = tables.write("rows", {"time": np.array([1.0])}, partition=0)
    assert segment is not None
    assert kept(tables) == []
    tables.discard(segment, None)
    assert not (tables.folder / segment.file).exists()


def test_only_files_in_the_range_are_read(tables: Tables) -> None:
    put(tables, [(1.0, "a", 1.0)])
    put(tables, [(100.0, "a", 2.0)], partition=60)
    answer = tables.query("SELECT value FROM {rows}", {"rows": Part("rows", 50.0, 200.0)})
    assert answer.columns["value"].tolist() == [2.0]


def test_several_parts_and_columns_of_the_moment_in_one_question(tables: Tables) -> None:
    first = put(tables, [(1.0, "a", 1.0)])
    put(tables, [(2.0, "a", 2.0)])
    answer = tables.query(
        "SELECT value, 'old' AS age FROM {old} UNION ALL SELECT value, 'all' FROM {all} "
        "UNION ALL SELECT value, name FROM fresh ORDER BY ALL",
        {"old": Part("rows", segments=(first,)), "all": Part("rows")},
        arrays={"fresh": {"value": np.array([7.0]), "name": np.array(["now"], object)}},
    )
    assert list(zip(answer.columns["value"], answer.columns["age"], strict=True)) == [
        (1.0, "all"),
        (1.0, "old"),
        (2.0, "all"),
        (7.0, "now"),
    ]


def test_a_row_tells_which_file_it_is_in(tables: Tables) -> None:
    first, second = put(tables, [(1.0, "a", 1.0)]), put(tables, [(1.0, "a", 2.0)])
    answer = tables.query(
        "SELECT value, serial FROM {rows} ORDER BY value", {"rows": Part("rows", with_serial=True)}
    )
    assert answer.columns["serial"].tolist() == [first.serial, second.serial]
    nothing = tables.query("SELECT serial FROM {rows}", {"rows": Part("rows", 50.0, with_serial=True)})
    assert nothing.columns["serial"].tolist() == []


def test_an_answer_becomes_a_segment(tables: Tables) -> None:
    put(tables, [(float(n), "ab"[n % 2], float(n)) for n in range(10)])
    segment = tables.write_query(
        "rows",
        "SELECT name, max(time) AS time, sum(value) * ? AS value FROM {rows} GROUP BY name",
        EVERYTHING,
        [10],
        partition=60,
        level=3,
    )
    assert segment is not None
    assert (segment.partition, segment.level, segment.rows, segment.start, segment.end) == (
        60,
        3,
        2,
        8.0,
        9.0,
    )
    tables.commit(add=[segment])
    assert kept(tables, [segment]) == [(8.0, "a", 200.0), (9.0, "b", 250.0)]


def test_an_answer_is_not_made_of_what_is_gone(tables: Tables) -> None:
    segment = put(tables, [(1.0, "a", 1.0)])
    tables.commit(remove=[segment])
    with pytest.raises(Outdated):
        tables.write_query("rows", "FROM {rows}", {"rows": Part("rows", segments=(segment,))}, partition=0)


def test_times_may_be_timestamps(tmp_path: Path) -> None:
    shape = Shape("moments", {"time": "TIMESTAMP", "n": "BIGINT"}, order_by=("time",))
    tables = open_rows(tmp_path, shape)
    moments = np.array(["2026-03-01T12:00:00.5", "2026-03-01T11:00:00"], "datetime64[us]")
    segment = tables.write("moments", {"time": moments, "n": np.array([2, 1])}, partition=1772362800)
    assert segment is not None
    assert (segment.start, segment.end) == (1772362800.0, 1772366400.5)
    assert segment.file.startswith("moments/2026-03-01T1100-")
    tables.commit(add=[segment])
    found = tables.query("SELECT time FROM {m}", {"m": Part("moments")}).columns["time"]
    assert found.tolist() == moments[::-1].tolist()
    tables.close()


def test_files_from_before_a_column_was_thought_of(tmp_path: Path) -> None:
    tables = open_rows(tmp_path)
    put(tables, [(1.0, "a", 1.0)])
    tables.close()
    newer = Shape("rows", {**ROWS.columns, "watts": "DOUBLE"}, order_by=("time",))
    tables = open_rows(tmp_path, newer)
    both = "SELECT time, watts FROM {rows} ORDER BY time"
    assert np.isnan(tables.query(both, EVERYTHING).columns["watts"]).tolist() == [True]
    segment = tables.write("rows", {"time": np.array([2.0]), "watts": np.array([5.0])}, partition=0)
    tables.commit(add=[segment])
    assert tables.query(both, EVERYTHING).columns["watts"].tolist()[1:] == [5.0]
    tables.close()
    # And back: what an older version does not know, it leaves alone.
    tables = open_rows(tmp_path)
    assert [row[0] for row in kept(tables)] == [1.0, 2.0]
    tables.close()


def test_others_can_read_the_files(tables: Tables) -> None:
    import duckdb

    put(tables, [(1.0, "a", 1.5), (2.0, "b", None)])
    with duckdb.connect() as theirs:
        found = theirs.execute(f"FROM '{tables.folder}/rows/*.parquet'").fetchall()
    assert found == [(1.0, "a", 1.5), (2.0, "b", None)]


def test_a_question_that_takes_too_long_is_given_up(tables: Tables) -> None:
    endless = (
        "SELECT count(*) AS n FROM range(1000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5"
    )
    with pytest.raises(TooLong, match=r"0\.1 s"):
        tables.query(endless, {}, deadline_seconds=0.1)
    assert tables.query("SELECT 1 AS n", {}, deadline_seconds=60.0).columns["n"].tolist() == [1]


def test_a_question_that_nobody_waits_for_any_longer_is_given_up(tables: Tables) -> None:
    begun = time.monotonic()
    endless = (
        "SELECT count(*) AS n FROM range(1000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5"
    )
    with due_at(begun + 0.1):
        with pytest.raises(TooLong):
            tables.query(endless, {}, deadline_seconds=60.0)
        with pytest.raises(TooLong, match="no time left"):
            tables.query("SELECT 1 AS n", {})
    assert tables.query("SELECT 1 AS n", {}).columns["n"].tolist() == [1]


def test_a_question_that_needs_too_much_is_refused(tmp_path: Path) -> None:
    tables = open_rows(tmp_path, query_memory_bytes=64 * 2**20)
    put(tables, [(1.0, "a", 1.0)])
    with pytest.raises(TooMuch, match="query_memory_bytes"):
        tables.query("SELECT list(range ORDER BY hash(range)) AS n FROM range(20000000), {rows}", EVERYTHING)
    assert kept(tables) == [(1.0, "a", 1.0)]
    tables.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '/tmp/gpuherd-test-outside.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "SET enable_external_access = true",
        "SELECT * FROM 'https://127.0.0.1:1/x.parquet'",
        "SELECT * FROM tables",
        "SELECT nonsense(1)",
        "SELEC",
    ],
)
def test_nothing_but_the_folder_can_be_reached(tables: Tables, statement: str) -> None:
    with pytest.raises(Failed):
        tables.query(statement, {})
    assert not Path("/tmp/gpuherd-test-outside.parquet").exists()
    assert tables.query("SELECT 1 AS n", {}).columns["n"].tolist() == [1]


def test_duckdb_is_opened_anew_while_it_is_asked(tables: Tables) -> None:
    put(tables, [(1.0, "a", 1.0)])
    answers: list[float] = []
    question = "SELECT sum(a.range % 7) AS n FROM range(30000000) a, {rows}"

    def ask() -> None:
        answers.append(tables.query(question, EVERYTHING).columns["n"][0])

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for each in asking:
        each.start()
        tables._readers.renew()
    for each in asking:
        each.join()
    assert answers == [89999995.0] * 3
    assert kept(tables) == [(1.0, "a", 1.0)]


def test_many_ask_while_files_are_replaced(tables: Tables) -> None:
    """Readers see all rows at any moment, whatever is merged and deleted meanwhile."""
    segments = [put(tables, [(float(n), "a", 1.0)]) for n in range(6)]
    is_over = threading.Event()
    seen: list[float] = []
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            while not is_over.is_set():
                answer = tables.query("SELECT sum(value) AS n FROM {rows}", EVERYTHING, deadline_seconds=30.0)
                seen.append(float(answer.columns["n"][0]))
                assert answer.missing == ()
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)

    readers = [threading.Thread(target=ask) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        whole = tables.write_query("rows", "FROM {rows}", EVERYTHING, partition=0)
        assert whole is not None
        tables.commit(add=[whole], remove=segments)
        segments = [whole]
    is_over.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(seen) >= 4
    assert set(seen) == {6.0}
    assert len(list((tables.folder / "rows").iterdir())) == 1
