"""Install from the lock files, and write them: one file per Python in locks/, with versions and checksums.

A lock file is a requirements file for pip. A comment above each package names the sets that need it:

- ``agent``: gpuherd without extras; ``all``, ``ldap``, ``dev``: gpuherd with this extra;
- ``build``: what builds gpuherd itself (``[build-system]`` in pyproject.toml);
- a name in ``[dependency-groups]`` of pyproject.toml: tools that are needed around the package.

Usage::

    python scripts/locks.py install SET... [--project PROJECT] [--editable] [--target FOLDER]
    python scripts/locks.py write {added,newest,lowest} [--python VERSION]... [--report FILE]

``install`` needs nothing but Python and pip. ``write`` needs uv, npm for the page's lock, and the network.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Pin", "lock_file", "locked_pythons", "page_versions", "read_lock", "requirements", "set_names"]

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
SETS_COMMENT = "# sets: "
HEADER = """\
# Versions and checksums of what `make` installs for Python {python} on Linux. Do not edit it: `make update` renews
# it, and `make lock` adds what pyproject.toml newly asks for. See docs/dependencies.md.
"""
SDIST_TOOLS = "sdists"
"""The set that builds packages which their authors publish as source only."""

Mode = Literal["added", "newest", "lowest"]


class LockError(Exception):
    """The message says what is wrong and what to do."""


@dataclass(frozen=True)
class Pin:
    """One package of a lock file."""

    name: str
    version: str
    hashes: tuple[str, ...]
    sets: frozenset[str]

    def lines(self) -> str:
        """Give the requirement as pip reads it."""
        return (
            " \\\n".join((f"{self.name}=={self.version}", *(f"    --hash={one}" for one in self.hashes)))
            + "\n"
        )


# --- what pyproject.toml asks for ------------------------------------------------------------------------


def _pyproject(root: Path) -> dict[str, Any]:
    with (root / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def set_names(root: Path = ROOT) -> list[str]:
    """Name the sets in a lock file: what someone installs as a whole."""
    return ["agent", "all", "ldap", "dev", "build", *_pyproject(root)["dependency-groups"]]


def requirements(name: str, root: Path = ROOT) -> list[str]:
    """List what a set asks for directly, with the ranges of pyproject.toml."""
    content = _pyproject(root)
    project, groups = content["project"], content["dependency-groups"]
    if name == "build":
        return list(content["build-system"]["requires"])
    if name in groups:
        return list(groups[name])
    wanted = dict.fromkeys(project["dependencies"])
    if name != "agent":
        wanted |= dict.fromkeys(_of_extra(name, project))
    return list(wanted)


def _of_extra(name: str, project: dict[str, Any]) -> Iterable[str]:
    extras = project["optional-dependencies"]
    if name not in extras:
        raise LockError(f"pyproject.toml has no extra or dependency group {name!r}")
    for line in extras[name]:
        own = re.fullmatch(rf"{project['name']}\[(.+)\]", line)
        if own is None:
            yield line
        else:
            for extra in own[1].split(","):
                yield from _of_extra(extra.strip(), project)


# --- reading lock files ----------------------------------------------------------------------------------


def lock_file(python: str, root: Path = ROOT) -> Path:
    """Say where the lock for a Python ("3.12") is, whether it exists or not."""
    return root / "locks" / f"python{python}.txt"


def locked_pythons(root: Path = ROOT) -> list[str]:
    """List the Pythons that have a lock."""
    return [python for python in PYTHONS if lock_file(python, root).is_file()]


def read_lock(text: str) -> list[Pin]:
    """Parse a lock file; anything that it cannot contain is an error."""
    pins = []
    sets: frozenset[str] = frozenset()
    for entry in text.replace("\\\n", " ").splitlines():
        if entry.startswith(SETS_COMMENT):
            sets = frozenset(entry.removeprefix(SETS_COMMENT).split())
        elif entry.strip() and not entry.startswith("#"):
            pin, *hashes = entry.split()
            name, equals, version = pin.partition("==")
            if not equals or not hashes or not all(one.startswith("--hash=sha256:") for one in hashes):
                raise LockError(f"not a pinned package with checksums: {entry[:80]}")
            pins.append(Pin(name, version, tuple(one.removeprefix("--hash=") for one in hashes), sets))
    return pins


def page_versions(root: Path = ROOT) -> dict[str, str]:
    """Give the version of each npm package by its place in the page's lock."""
    packages = json.loads((root / "web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {
        place.removeprefix("node_modules/"): entry["version"]
        for place, entry in packages.items()
        if place and "version" in entry
    }


# --- installing ------------------------------------------------------------------------------------------


def install(sets: Sequence[str], project: str | None, *, editable: bool, target: str | None) -> None:
    """Install sets of packages, then the project, into the Python that runs this."""
    python = sysconfig.get_python_version()
    file = lock_file(python)
    options = ["--target", target] if target else []
    what = [] if project is None else [*(["--editable"] if editable else []), project]
    if not file.is_file():
        sys.stderr.write(
            f"There is no lock for Python {python} (only for {', '.join(locked_pythons())}): "
            "installing the newest packages that pyproject.toml allows.\n"
        )
        _pip("install", *options, *(line for name in sets for line in requirements(name)), *what)
        return
    pins = read_lock(file.read_text(encoding="utf-8"))
    # What builds other packages comes first. Without isolation these are built with the locked tools.
    tools = [name for name in sets if name in ("build", SDIST_TOOLS)]
    packages = [name for name in sets if name not in tools]
    _install_pins(pins, tools, options)
    _install_pins(pins, packages, [*options, *(["--no-build-isolation"] if SDIST_TOOLS in tools else [])])
    if project is None:
        return
    if editable and _lacks_node():
        _install_pins(pins, ["node"], options)
    try:
        _pip("install", "--no-index", "--no-build-isolation", *options, *what)
    except LockError as error:
        raise LockError(
            f"{error}. If pip misses a package, {file.relative_to(ROOT)} lacks what pyproject.toml asks for: "
            "run `make lock`"
        ) from None


def _install_pins(pins: Iterable[Pin], sets: Sequence[str], options: Sequence[str]) -> None:
    wanted = [pin for pin in pins if not pin.sets.isdisjoint(sets)]
    if not wanted:
        return
    with tempfile.NamedTemporaryFile("w", prefix="gpuherd-lock-", suffix=".txt", encoding="utf-8") as file:
        file.writelines(pin.lines() for pin in wanted)
        file.flush()
        _pip("install", "--no-deps", "--require-hashes", *options, "--requirement", file.name)


def _lacks_node() -> bool:
    """Ask the build hook whether it has to build the page and finds no Node.js for it."""
    code = (
        "import sys, hatch_build; sys.exit(hatch_build.lacks_node(hatch_build.Page(hatch_build.Path.cwd())))"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 1


def _pip(command: str, *arguments: str) -> None:
    line = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(line, cwd=ROOT, check=False).returncode != 0:
        raise LockError("pip failed, see above")


# --- writing ---------------------------------------------------------------------------------------------


def write(mode: Mode, pythons: Sequence[str], report: str | None) -> None:
    """Write the locks, print what changed, and write the same into the report file."""
    before = _versions()
    for python in pythons:
        sys.stderr.write(f"locks: Python {python}\n")
        _write_lock(python, mode)
    if mode == "newest":
        sys.stderr.write("locks: the page\n")
        _renew_page()
    changes = _changes(before, _versions())
    sys.stdout.write(changes)
    if report:
        Path(report).parent.mkdir(parents=True, exist_ok=True)
        Path(report).write_text(changes, encoding="utf-8")


def _write_lock(python: str, mode: Mode) -> None:
    names = set_names()
    file = lock_file(python)
    with tempfile.TemporaryDirectory(prefix="gpuherd-lock-") as folder:
        everything = dict.fromkeys(line for name in names for line in requirements(name))
        outputs = []
        for platform in PLATFORMS:
            output = Path(folder) / f"{platform}.txt"
            if mode == "added" and file.is_file():
                shutil.copyfile(file, output)
            options = ["--generate-hashes", *(["--resolution", "lowest-direct"] if mode == "lowest" else [])]
            _compile(everything, python, platform, output, options)
            outputs.append(output)
        if outputs[0].read_text() != outputs[1].read_text():
            raise LockError(
                f"Python {python} needs other packages on {PLATFORMS[0]} than on {PLATFORMS[1]}: "
                "one lock cannot serve both; hold the package back in pyproject.toml"
            )
        members: dict[str, set[str]] = {}
        for name in names:
            output = Path(folder) / f"set-{name}.txt"
            _compile(requirements(name), python, PLATFORMS[0], output, ["--constraints", str(outputs[0])])
            for line in output.read_text().split():
                members.setdefault(line.partition("==")[0], set()).add(name)
        pins = read_lock(outputs[0].read_text())
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        HEADER.format(python=python)
        + "".join(
            f"{SETS_COMMENT}{' '.join(name for name in names if name in members[pin.name])}\n{pin.lines()}"
            for pin in pins
        ),
        encoding="utf-8",
    )


def _compile(wanted: Iterable[str], python: str, platform: str, output: Path, options: Sequence[str]) -> None:
    source = output.with_suffix(".in")
    source.write_text("".join(f"{line}\n" for line in wanted))
    beside = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [
            str(beside) if beside.is_file() else "uv",
            *(
                "pip",
                "compile",
                "--quiet",
                "--no-header",
                "--no-annotate",
                "--no-emit-index-url",
                "--no-config",
            ),
            *("--python", sys.executable, "--python-version", python, "--python-platform", platform),
            *options,
            *("--output-file", str(output), str(source)),
        ],
        cwd=output.parent,
        check=False,
    )
    if done.returncode != 0:
        raise LockError(f"uv found no set of packages for Python {python}, see above")


def _renew_page() -> None:
    """Take the newest npm packages: of the major versions that package.json names, or of all (GPUHERD_NPM_MAJORS=1).

    Packages that only work with an older major version of another make npm refuse all; then no major version changes.
    """
    file = ROOT / "web/package.json"
    direct = json.loads(file.read_text(encoding="utf-8"))["devDependencies"]
    same_majors = [f"{name}@^{version}" for name, version in direct.items()]
    # Node's types stay with the oldest Node.js that builds the page.
    majors = [f"{name}@latest" for name in direct if name != "@types/node"]
    if os.environ.get("GPUHERD_NPM_MAJORS", "") in ("", "0") or not _npm("install", *_SAVE, *majors):
        _must_npm("install", *_SAVE, *same_majors)
    _must_npm("update")


_SAVE = ("--save-dev", "--save-exact")


def _npm(*command: str) -> bool:
    npm = [str(ROOT / "scripts/npm"), str(Path(sys.executable).parent.parent)]
    only_lock = ["--package-lock-only", "--loglevel=error", "--no-audit", "--no-fund"]
    return subprocess.run([*npm, command[0], *only_lock, *command[1:]], check=False).returncode == 0


def _must_npm(*command: str) -> None:
    if not _npm(*command):
        raise LockError(f"npm {command[0]} failed, see above")


def _versions() -> dict[str, dict[str, str]]:
    found = {
        f"Python {python}": {
            pin.name: pin.version for pin in read_lock(lock_file(python).read_text(encoding="utf-8"))
        }
        for python in locked_pythons()
    }
    return {**found, "page": page_versions()}


def _changes(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> str:
    """List what changed, old → new, with the locks in which it did; equal changes are one line."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for lock, new in after.items():
        old = before.get(lock, {})
        for name in sorted(old.keys() | new.keys()):
            step = (name, old.get(name, "not there"), new.get(name, "removed"))
            if step[1] != step[2]:
                found.setdefault(step, []).append(lock)
    if not found:
        return "locks: nothing changed\n"
    lines = [
        f"  {name}: {old} → {new} ({', '.join(locks)})" for (name, old, new), locks in sorted(found.items())
    ]
    return "\n".join((f"locks: {len(lines)} changes", *lines, ""))


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(
        prog="locks.py", description="Install from the lock files, and write them."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser(
        "install", help="install sets of packages into the Python that runs this"
    )
    installing.add_argument("sets", nargs="+", metavar="SET")
    installing.add_argument("--project", help="then install this: a wheel or source tree, with extras")
    installing.add_argument(
        "--editable", action="store_true", help="the project is this source tree, to be worked on"
    )
    installing.add_argument("--target", help="into this folder instead")
    writing = commands.add_parser("write", help="write the locks and print what changed")
    writing.add_argument("mode", choices=("added", "newest", "lowest"))
    writing.add_argument(
        "--python", action="append", metavar="VERSION", help=f"default: {', '.join(PYTHONS)}"
    )
    writing.add_argument("--report", metavar="FILE", help="write what changed into this file too")
    asked = parser.parse_args()
    try:
        if asked.command == "install":
            install(asked.sets, asked.project, editable=asked.editable, target=asked.target)
        else:
            write(asked.mode, asked.python or PYTHONS, asked.report)
    except LockError as error:
        parser.exit(1, f"locks.py: {error}\n")


if __name__ == "__main__":
    main()
