"""aliases.csv says which names are one person."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.aliases import parse_aliases, read_aliases


def test_several_aliases_stand_before_the_user() -> None:
    text = "jd, john ,jdoe # the boss\r\n\n# nobody\nroot,admin\njd,jdoe\n"
    assert parse_aliases(text, "a.csv") == {"jd": "jdoe", "john": "jdoe", "root": "admin"}


def test_every_bad_line_is_named_with_its_remedy() -> None:
    with pytest.raises(Misconfigured) as error:
        parse_aliases("alone\na,b\na,c\n,x\n" + "y" * 200 + ",z", "a.csv")
    assert str(error.value).split(". ") == [
        "a.csv:1: write alias,user (several aliases may stand before the user)",
        'a.csv:3: "a" stands for b in line 2 already; keep one',
        "a.csv:4: write alias,user (several aliases may stand before the user)",
        "a.csv:5: a name of more than 128 letters; shorten it",
    ]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"display\.aliases_file: .*missing.csv cannot be read"):
        read_aliases(tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes(b"\xe9,x\n")
    with pytest.raises(Misconfigured, match=r"latin\.csv: is not UTF-8 text \(byte 0\)"):
        read_aliases(tmp_path / "latin.csv")
