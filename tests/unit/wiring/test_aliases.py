"""aliases.csv says which names are one person."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.aliases import parse_aliases, read_aliases


def test_several_aliases_stand_before_the_user() -> None:
    text = "jd, john ,jdoe # the boss\r\n\n# nobody\nroot,admin\njd,jdoe\nalone\nhidden,\nsame,same\n"
    found = parse_aliases(text, "a.csv")
    assert found.users == {"jd": "jdoe", "john": "jdoe", "root": "admin"}
    assert found.complaints == (), "one name, or nobody behind the comma, is how the older page has it, too"


def test_every_bad_line_is_named_with_its_remedy_and_the_others_are_kept() -> None:
    found = parse_aliases("a,b\na,c\n,x\n" + "y" * 200 + ",z\nb,d\nd,a\nlast,one\n", "a.csv")
    assert found.complaints == (
        'a.csv:2: "a" is already an alias of b in line 1; keep one',
        "a.csv:3: write alias,user (several aliases can precede the user)",
        "a.csv:4: a name has more than 128 characters; shorten it",
        'a.csv:6: "a" is already an alias of "d"; keep one of these lines',
    )
    assert found.users == {"a": "b", "b": "d", "last": "one"}, "no one stands for themselves"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Misconfigured, match=r"display\.aliases_file: .*missing.csv cannot be read"):
        read_aliases(tmp_path / "missing.csv")
    (tmp_path / "large.csv").write_bytes(b"a,b\n" * 2_500_000)
    with pytest.raises(
        Misconfigured,
        match=r"large\.csv: is larger than 4 MiB, .* line 1048577; this is not a list",
    ):
        read_aliases(tmp_path / "large.csv")
    (tmp_path / "latin.csv").write_bytes(b"\xe9ric,eric\nx,y\ny,x\n")
    assert read_aliases(tmp_path / "latin.csv") == {"éric": "eric", "x": "y"}
    assert "latin.csv:3: " in caplog.text
    (tmp_path / "wide.csv").write_bytes("a,b\n".encode("utf-16"))
    assert read_aliases(tmp_path / "wide.csv") == {"a": "b"}
