"""The key of the hub's own machine."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpuherd.auth.local_key import make_local_key, read_local_key
from gpuherd.model.errors import Misconfigured


def test_a_key_is_new_each_time_and_only_for_this_user(tmp_path: Path) -> None:
    assert read_local_key(tmp_path) is None
    first, second = make_local_key(tmp_path), make_local_key(tmp_path)
    assert first != second
    assert read_local_key(tmp_path) == second
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"ghk_short\n", b"\xff", b"ghu_" + b"A" * 43])
def test_what_is_no_key_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "local.key").write_bytes(content)
    assert read_local_key(tmp_path) is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"hub\.state_dir: cannot write"):
        make_local_key(tmp_path / "missing")
