"""Wheel and sdist of the last commit: what is in them, and that both are the same."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

from hatch_build import SKIP_VARIABLE

from support.release import PAGE, Release, build


def _content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_holds_what_is_committed_and_the_page_and_nothing_else(release: Release) -> None:
    names = set(_content(release.wheel))
    committed = {
        str(path.relative_to(release.sources / "src"))
        for path in (release.sources / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    page = {name for name in committed if name.startswith(str(PAGE.relative_to("src")))}
    assert any(name.endswith("index.html") for name in page)
    assert any(name.endswith(".js") for name in page)
    package = {name for name in names if name.startswith("gpuherd/")}
    assert package == committed
    others = {name.split("/")[0].split("-")[0] for name in names - package}
    assert others == {"gpuherd"}, "metadata and shared files only"


def test_the_wheel_brings_the_manual_pages(release: Release) -> None:
    pages = {Path(name).name for name in _content(release.wheel) if "/share/man/man1/" in name}
    assert pages == {page.name for page in (release.sources / "docs/man").iterdir()}
    assert "gpuherd-book.1" in pages


def test_the_sdist_builds_the_same_wheel_without_node(release: Release, tmp_path: Path) -> None:
    with tarfile.open(release.sdist) as opened:
        opened.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert (unpacked / "web/src/main.ts").is_file(), "with the page's sources"
    assert not (unpacked / "web/node_modules").exists()
    (tmp_path / "no-programs").mkdir()
    build(unpacked, "wheel", PATH=str(tmp_path / "no-programs"), **{SKIP_VARIABLE: ""})
    (wheel,) = (unpacked / "dist").glob("*.whl")
    assert wheel.name == release.wheel.name
    assert _content(wheel) == _content(release.wheel)


def test_the_version_stands_in_one_place(release: Release) -> None:
    text = (release.sources / "src/gpuherd/__init__.py").read_text()
    version = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.MULTILINE)
    assert version is not None
    metadata = next(text for name, text in _content(release.wheel).items() if name.endswith("/METADATA"))
    assert message_from_bytes(metadata)["Version"] == version[1]
    assert release.wheel.name.startswith(f"gpuherd-{version[1]}-py3-none-any")
    assert release.sdist.name == f"gpuherd-{version[1]}.tar.gz"
    project = tomllib.loads((release.sources / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]


def test_every_file_is_readable_by_all_and_of_no_time_of_day(release: Release) -> None:
    with zipfile.ZipFile(release.wheel) as opened:
        assert {entry.date_time for entry in opened.infolist()} == {(2020, 2, 2, 0, 0, 0)}, "reproducible"
        assert [entry.filename for entry in opened.infolist() if not entry.external_attr >> 16 & 0o004] == []
