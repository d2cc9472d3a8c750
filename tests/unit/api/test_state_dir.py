"""The hub's folder, and who can write to it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpuherd.api.state_dir import make_state_dir
from gpuherd.history.tables.ballast import Ballast


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.attack
@pytest.mark.promise("state-folder-is-private")
def test_others_cannot_write_to_the_state_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    make_state_dir(folder)
    assert mode(folder) == 0o700
    assert caplog.messages == []
    for before, after in ((0o777, 0o755), (0o775, 0o755), (0o1777, 0o1755), (0o750, 0o750)):
        folder.chmod(before)
        make_state_dir(folder)
        assert mode(folder) == after
    assert len(caplog.messages) == 3
    assert f"other users could write to {folder} (mode 0777)" in caplog.messages[0]


def test_a_folder_of_another_user_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    make_state_dir(tmp_path)
    assert mode(tmp_path) == 0o777
    assert f"chmod go-w {tmp_path}" in caplog.text


def test_the_ballast_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert Ballast(tmp_path / "ballast", 4096).restore()
    finally:
        os.umask(before)
    assert mode(tmp_path / "ballast") == 0o600
