"""Tables for spreadsheets, in which nothing is a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.api.past.tables import iso, safe_text, write_csv


def read(body: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(body.decode(), newline="")))


def test_numbers_are_numbers_and_unknown_is_empty() -> None:
    body = write_csv(["a", "b", "c", "d"], [[-1.5, 3, None, float("nan")], [0.1 + 0.2, 12345678, 1e-9, 2.0]])
    assert body == b"a,b,c,d\r\n-1.5,3,,\r\n0.3,12345678,1e-09,2\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        '=HYPERLINK("http://evil","x")',
        "|calc",
        "%0A",
        "\uff1d1",
        "\x00=1",
        "\x7f=1",
        "\xa0=1",
    ],
)
@pytest.mark.promise("text-is-inert")
def test_nothing_that_a_node_or_a_person_says_is_a_formula(text: str) -> None:
    for cell in (read(write_csv(["x"], [[text]]))[1][0], read(write_csv([text], []))[0][0]):
        assert cell.startswith("'")
        assert not set(cell) & set("\r\n\t\x00")


def test_what_is_no_formula_is_left_alone() -> None:
    for text in ("ada", "A100 80GB", "GPU-1f", "gpu07/3", "ünïcode", "a=b", "O'Hara", 'say "hi", you', ""):
        assert safe_text(text) == text
        assert read(write_csv(["x", "y"], [[text, 1]]))[1] == [text, "1"]


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2)))
def test_every_cell_stays_in_its_place(rows: list[list[str]]) -> None:
    told = read(write_csv(["a", "b"], rows))
    assert len(told) == len(rows) + 1
    for row in told:
        assert len(row) == 2
        assert all(cell.lstrip()[:1] not in {*"=+-@", "\uff1d"} for cell in row)


def test_moments() -> None:
    assert iso(1_790_000_000.0) == "2026-09-21T14:13:20Z"
    assert iso(1_790_000_000.25) == "2026-09-21T14:13:20.250Z"
