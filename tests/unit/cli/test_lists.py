"""Lists have heads where people read them, and tabs where scripts do."""

from __future__ import annotations

import sys

import pytest

from gpuherd.cli.lists import print_list

ROWS = [("gpu01", "enrolled"), ("a100-long-name", "listed in hosts.txt")]


@pytest.mark.parametrize(
    ("is_terminal", "lines"),
    [
        (True, ["NAME            ORIGIN", "gpu01           enrolled", "a100-long-name  listed in hosts.txt"]),
        (False, ["gpu01\tenrolled", "a100-long-name\tlisted in hosts.txt"]),
    ],
)
def test_who_reads_decides(
    is_terminal: bool, lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    print_list(("name", "origin"), ROWS)
    assert capsys.readouterr().out.splitlines() == lines


def test_rows_may_be_shorter_than_the_heads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_list(("name", "groups"), [("ada",), ("bob", "vision")])
    assert capsys.readouterr().out.splitlines() == ["NAME  GROUPS", "ada", "bob   vision"]
