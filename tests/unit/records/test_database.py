"""Places where records cannot be opened, each with a sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.model.errors import Misconfigured
from gpuherd.records.database import open_records


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "is not a database URL"),
        ("oracle9://x/y", "there is no driver"),
        ("mysql+nothing://x/y", "there is no driver"),
        ("sqlite:////nowhere/at/all.sqlite", "unable to open"),
    ],
)
def test_a_bad_url_is_named(url: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        open_records(url)


def test_a_password_does_not_get_into_the_message() -> None:
    with pytest.raises(Misconfigured) as caught:
        open_records("postgresql://someone:geheim@127.0.0.1:1/none")
    assert "geheim" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="state_dir"):
        open_records(tmp_path / "file" / "records.sqlite")


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "records.sqlite"
    file.write_bytes(b"precious " * 1000)
    with pytest.raises(Misconfigured, match="not a database"):
        open_records(file)
    assert file.read_bytes() == b"precious " * 1000
