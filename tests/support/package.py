"""The Debian package of these sources, built once for all tests, and a machine's layer with gpuherd in /opt."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

__all__ = ["built_package", "layer_with_gpuherd"]

_PROJECT = Path(__file__).parents[2]
_FOLDER = _PROJECT / "build" / "deb"
_SOURCES = ("src", "deploy/debian", "docs/man", "locks")
_SOURCE_FILES = ("scripts/build-deb", "scripts/copy_packages.py", "pyproject.toml")


def built_package() -> Path:
    """Give the package; it is built if these sources have none yet. Several processes may ask at once."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb: packages are built on Debian")
    return _home() / next(file.name for file in _home().iterdir() if file.suffix == ".deb")


def layer_with_gpuherd() -> Path:
    """Give a folder to boot a machine over: gpuherd in /opt/gpuherd, as a virtual environment made by hand would be."""
    built_package()
    return _home() / "opt-layer"


@cache
def _home() -> Path:
    home = _FOLDER / _sources_hash()
    if home.is_dir():
        return home
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            # Of older sources nobody asks again; unless just now, in a run beside this one.
            for old in _FOLDER.iterdir():
                if old.is_dir() and time.time() - old.stat().st_mtime > 900:
                    shutil.rmtree(old)
            _build(home)
    return home


def _build(home: Path) -> None:
    fresh = home.with_name(f"{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    script = str(_PROJECT / "scripts" / "build-deb")
    # Thousands of small files, soon deleted: in memory where there is some.
    scratch = "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()
    built = subprocess.run(
        [script, sys.executable, str(fresh)],
        cwd=_PROJECT,
        env={**os.environ, "TMPDIR": scratch},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    package = next(fresh.glob("*.deb"))
    subprocess.run(["dpkg-deb", "--extract", str(package), str(fresh / "all")], check=True)
    opt = fresh / "opt-layer" / "opt"
    opt.mkdir(parents=True)
    (fresh / "all/usr/lib/gpuherd").rename(opt / "gpuherd")
    shutil.rmtree(fresh / "all")
    command = opt / "gpuherd/bin/gpuherd"
    command.write_text(command.read_text().replace("/usr/lib/gpuherd", "/opt/gpuherd"))
    fresh.rename(home)


def _sources_hash() -> str:
    files = [file for folder in _SOURCES for file in (_PROJECT / folder).rglob("*")]
    files += [_PROJECT / name for name in _SOURCE_FILES]
    total = hashlib.sha256()
    for file in sorted(files):
        if file.is_file() and "__pycache__" not in file.parts:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            total.update(f"{file.relative_to(_PROJECT)}\0{content}\n".encode())
    return total.hexdigest()[:16]
