"""A release as it would be made of what is committed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hatch_build import Page

__all__ = ["PAGE", "ROOT", "Release", "build", "make_release"]

ROOT = Path(__file__).parents[2]
PAGE = Path("src/gpuherd/api/page")


@dataclass(frozen=True)
class Release:
    """What `make dist` makes."""

    sources: Path
    wheel: Path
    sdist: Path


def build(tree: Path, *targets: str, **environment: str) -> None:
    """Run the build of a source tree, as `make dist` does."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            *(word for target in targets for word in ("-t", target)),
        ],
        cwd=tree,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def make_release(tree: Path) -> Release:
    """Build from an export of the last commit: nothing gets in that is not committed, except the built page."""
    tree.mkdir()
    exported = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=False)
    if exported.returncode != 0:
        pytest.skip("not a git clone: there is no commit to release")
    subprocess.run(["tar", "-x", "-C", str(tree)], input=exported.stdout, check=True)
    if (ROOT / PAGE / "index.html").is_file():
        shutil.copytree(ROOT / PAGE, tree / PAGE)
    packages = ROOT / "web/node_modules"
    if (
        packages.is_dir() and not Page(tree).is_fresh()
    ):  # the page is not of this commit's sources and is built anew
        shutil.copytree(packages, tree / "web/node_modules", copy_function=os.link, symlinks=True)
    build(tree, "sdist", "wheel")
    (wheel,) = (tree / "dist").glob("*.whl")
    (sdist,) = (tree / "dist").glob("*.tar.gz")
    return Release(sources=tree, wheel=wheel, sdist=sdist)
