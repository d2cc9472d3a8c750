"""Secrets from files: real ones are read, and whatever else lies there stops the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.auth.secret_files import read_secret
from gpuherd.model.errors import Misconfigured


def secret_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    file = folder / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("content", [b"q8!fj2 0s", b"q8!fj2 0s\n", b"q8!fj2 0s\r\n"])
def test_secret_is_one_line(tmp_path: Path, content: bytes) -> None:
    assert read_secret(secret_file(tmp_path, content), "some.key") == "q8!fj2 0s"


def test_blanks_are_part_of_a_secret(tmp_path: Path) -> None:
    assert read_secret(secret_file(tmp_path, b" q8!fj2 \n", 0o640), "some.key") == " q8!fj2 "


@pytest.mark.parametrize(
    "content",
    [
        b"changeme",
        b"Change-Me!\n",
        b"CHANGE_ME",
        b"your-client-secret",
        b"<client secret>",
        b"${OIDC_SECRET}",
        b"$OIDC_SECRET",
        b"xxxxxxxx",
        b"********",
        b"password",
        b"todo",
    ],
)
def test_examples_are_no_secrets(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Misconfigured, match=r"some\.key: .* still has the text of the example"):
        read_secret(secret_file(tmp_path, content), "some.key")


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe", b"a\0b", b"x" * 5000])
def test_what_is_no_line_of_text_is_no_secret(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Misconfigured, match=r"some\.key: .* one line of text"):
        read_secret(secret_file(tmp_path, content), "some.key")


def test_secret_that_everyone_may_read_is_none(tmp_path: Path) -> None:
    file = secret_file(tmp_path, b"q8!fj2 0s", 0o644)

    with pytest.raises(Misconfigured, match="everyone on this machine can read") as told:
        read_secret(file, "some.key")
    assert "q8!" not in str(told.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"some\.key: cannot read .*nothing"):
        read_secret(tmp_path / "nothing", "some.key")
