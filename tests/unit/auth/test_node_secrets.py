"""One master secret, one secret per node."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpuherd.auth.node_secrets import load_or_create_master, node_secret
from gpuherd.model.errors import Misconfigured


def test_every_node_has_its_own_and_always_the_same() -> None:
    master = b"ghm_" + b"m" * 43
    assert node_secret(master, "gpu01") == node_secret(master, "gpu01")
    others = {node_secret(master, "gpu01"), node_secret(master, "gpu02"), node_secret(b"other", "gpu01")}
    assert len(others) == 3
    assert all(secret.startswith("ghl_") and len(secret) == 47 for secret in others)


def test_the_master_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "pull.secret"
    master = load_or_create_master(file)
    assert load_or_create_master(file) == master
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["pull.secret"]
    assert load_or_create_master(tmp_path / "other") != master


def test_whoever_asks_at_the_same_time_gets_the_same(tmp_path: Path) -> None:
    for number in range(20):
        file = tmp_path / str(number)
        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(load_or_create_master, [file, file])
        assert first == second


@pytest.mark.parametrize("content", ["", "changeme\n", "ghm_short\n", "ghm_" + "m" * 43 + "\nmore\n"])
def test_something_else_in_the_file_is_no_secret(tmp_path: Path, content: str) -> None:
    file = tmp_path / "pull.secret"
    file.touch(mode=0o600)
    file.write_text(content)
    with pytest.raises(Misconfigured, match=r"pull\.secret: does not contain a secret"):
        load_or_create_master(file)
    assert file.read_text() == content


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pull.secret"
    load_or_create_master(file)
    file.chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        load_or_create_master(file)


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    master = load_or_create_master(tmp_path / "new" / "pull.secret")
    assert load_or_create_master(tmp_path / "new" / "pull.secret") == master
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="cannot save the secret"):
        load_or_create_master(tmp_path / "file" / "pull.secret")
