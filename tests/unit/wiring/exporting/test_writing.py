"""Files are whole, readable by a web server, or as they were."""

from __future__ import annotations

import os
import re
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuherd.model.errors import Failed
from gpuherd.wiring.exporting.writing import replace_files

NOBODY = 65_534


@contextmanager
def _files_no_larger_than(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_web_server_can_read_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    with _umask(0o077):
        replace_files({file: b"new"})
    assert (file.read_bytes(), _mode(file)) == (b"new", 0o644)
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_there_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "real", tmp_path / "served" / "index.html"
    file.write_text("old")
    file.chmod(0o640)
    link.parent.mkdir()
    link.symlink_to(file)
    replace_files({link: b"new"})
    assert link.is_symlink()
    assert (file.read_bytes(), _mode(file)) == (b"new", 0o640)


def test_one_that_does_not_fit_leaves_all_as_they_were(tmp_path: Path) -> None:
    page, table = tmp_path / "index.html", tmp_path / "load_data.csv"
    page.write_text("old page")
    with _files_no_larger_than(4096), pytest.raises(Failed, match=r"File too large.*stays as it was"):
        replace_files({page: b"new page", table: b"x" * 100_000})
    assert page.read_text() == "old page"
    assert list(tmp_path.iterdir()) == [page]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "not" / "there" / "index.html"
    with pytest.raises(Failed, match=re.escape(f"there is no folder {file.parent}; create it")):
        replace_files({file: b"new"})


def test_a_file_in_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failed, match="Not a directory"):
        replace_files({tmp_path / "file" / "index.html": b"new"})


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="is a folder"):
        replace_files({tmp_path: b"new"})


def test_neither_is_a_pipe_or_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(Failed, match="not a regular file"):
        replace_files({pipe: b"new"})
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)  # root may write everywhere
    try:
        with pytest.raises(Failed, match="let this user write to that folder"):
            replace_files({tmp_path / "index.html": b"new"})
    finally:
        os.seteuid(before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_what_others_have_put_there_is_neither_followed_nor_a_model(tmp_path: Path) -> None:
    precious, link, prepared = tmp_path / "records", tmp_path / "data.csv", tmp_path / "index.html"
    precious.write_bytes(b"precious")
    link.symlink_to(precious)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    prepared.write_bytes(b"prepared")
    os.chown(prepared, NOBODY, NOBODY)
    prepared.chmod(0o6777)

    with pytest.raises(Failed, match="link that someone else"):
        replace_files({link: b"new"})
    replace_files({prepared: b"new"})

    assert precious.read_bytes() == b"precious"
    assert (prepared.read_bytes(), _mode(prepared), prepared.stat().st_uid) == (b"new", 0o644, 0)


def test_no_program_comes_of_it(tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    file.write_text("old")
    file.chmod(0o6775)
    replace_files({file: b"new"})
    assert _mode(file) == 0o664


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(Failed, match="not a regular file"):
        replace_files({one: b"new"})


def test_it_is_told_what_is_new_when_a_later_one_cannot_be_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    replace = Path.replace

    def refusing(self: Path, target: Path) -> Path:
        if target.name == "second":
            raise PermissionError(1, "Operation not permitted")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refusing)
    with pytest.raises(Failed, match="first: already written"):
        replace_files({first: b"new", second: b"new"})
    assert (first.read_bytes(), list(tmp_path.iterdir())) == (b"new", [first])
