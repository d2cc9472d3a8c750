"""Root's commands in the hub's folder: done as its owner, so that no link there leads root anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuherd.cli import backup
from gpuherd.cli.as_owner import acting_as_owner, acting_as_root, become_owner
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.records.backup_file import partial_name

OWNER = 64_999

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")


@pytest.fixture
def folder() -> Iterator[Path]:
    # Below /tmp itself: folders of tests are closed to everyone but root, who runs them.
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, OWNER, OWNER)
        yield Path(name)


def test_what_is_made_belongs_to_the_owner_and_root_is_root_again_afterwards(folder: Path) -> None:
    with acting_as_owner(folder) as is_other:
        assert is_other
        (folder / "made").touch()
    assert (folder / "made").stat().st_uid == OWNER
    assert (os.geteuid(), os.getegid()) == (0, 0)


def test_a_link_to_root_s_file_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    (folder / "link").symlink_to(secret)
    with acting_as_owner(folder):
        with pytest.raises(PermissionError):
            (folder / "link").write_text("hub's")
        with acting_as_root():
            assert secret.read_text() == "root's"
        assert os.geteuid() == OWNER


def test_root_s_own_folder_is_left_to_root(tmp_path: Path) -> None:
    with acting_as_owner(tmp_path) as is_other:
        assert not is_other
        assert os.geteuid() == 0


def test_whoever_forgot_sudo_is_told_whose_folder_it_is(folder: Path) -> None:
    os.seteuid(OWNER - 1)
    try:
        with pytest.raises(
            Misconfigured,
            match=rf"only user {OWNER} can use the hub's state folder {folder}; run this with sudo",
        ):
            become_owner(folder)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("is_link", [True, False])
def test_root_writes_no_backup_into_what_another_has_laid_there(
    folder: Path, tmp_path: Path, is_link: bool
) -> None:
    source, laid = folder / "between", partial_name(folder / "backup.gz")
    source.write_text("password hashes")
    other = tmp_path / "other"
    other.write_text("as it was")
    if is_link:
        laid.symlink_to(other)
    else:
        laid.write_text("as it was")
        os.chown(laid, OWNER, OWNER)
    with acting_as_owner(folder), pytest.raises(Failed, match="File exists"):
        backup._copy(source, folder / "backup.gz", source_is_root_s=False)
    assert (laid.read_text(), other.read_text()) == ("as it was", "as it was")
    assert not (folder / "backup.gz").exists()
