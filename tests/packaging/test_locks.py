"""The lock files: everything pinned with checksums, no registry named, in step with pyproject.toml; and installing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatch_build import NODE_PACKAGE
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts.locks import PYTHONS, Pin, lock_file, page_versions, read_lock, requirements, set_names

ROOT = Path(__file__).parents[2]
PAGE_LOCK = ROOT / "web" / "package-lock.json"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNNING = sysconfig.get_python_version()


def _pins(python: str) -> dict[str, Pin]:
    return {pin.name: pin for pin in read_lock(lock_file(python).read_text(encoding="utf-8"))}


def test_every_python_that_the_package_names_has_a_lock() -> None:
    named = {line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line}
    assert named == set(PYTHONS)
    assert {file.name for file in (ROOT / "locks").iterdir()} == {f"python{python}.txt" for python in PYTHONS}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_package_is_pinned_with_checksums_and_no_address_is_named(python: str) -> None:
    text = lock_file(python).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--?(index|extra|find|trusted)", text, flags=re.MULTILINE)
    pins = read_lock(text)  # raises on a package without version or checksum
    assert len({pin.name for pin in pins}) == len(pins) > 100
    for pin in pins:
        assert pin.sets, f"{pin.name} is in no set: nothing installs it"
        assert pin.sets <= set(set_names())
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in pin.hashes), pin.name


def test_a_package_without_checksum_or_version_is_refused() -> None:
    for line in ("click==8.1", f"click>=8.1 --hash=sha256:{'0' * 64}", "click==8.1 --hash=md5:00"):
        with pytest.raises(Exception, match="not a pinned package with checksums"):
            read_lock(line)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_what_pyproject_asks_for(python: str) -> None:
    """Fails when someone changes pyproject.toml and not the locks: `make lock` brings them into step."""
    pins = _pins(python)
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    wrong = []
    for name in set_names():
        for line in requirements(name):
            asked = Requirement(line)
            if asked.marker is not None and not asked.marker.evaluate(environment):
                continue
            pin = pins.get(canonicalize_name(asked.name))
            if (
                pin is None
                or name not in pin.sets
                or not asked.specifier.contains(pin.version, prereleases=True)
            ):
                wrong.append(f"{name}: {line}, locked: {pin and (pin.version, sorted(pin.sets))}")
    assert wrong == [], "run `make lock`"


def test_what_the_build_fetches_is_what_the_lock_has() -> None:
    assert requirements("node") == [NODE_PACKAGE]
    assert set(requirements("build")) <= set(requirements("dev"))


def test_the_pages_lock_has_checksums_and_names_no_address() -> None:
    lock = json.loads(PAGE_LOCK.read_text())
    packages = {place: entry for place, entry in lock["packages"].items() if place}
    assert len(packages) > 50
    assert [
        place for place, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")
    ] == []
    assert [place for place, entry in packages.items() if "resolved" in entry] == []
    registry = re.compile(r"registry|https?://[^\"]*\.tgz")
    named = [line for line in PAGE_LOCK.read_text().splitlines() if registry.search(line)]
    assert named == []


def test_the_pages_lock_is_in_step_with_its_package_file() -> None:
    wanted = json.loads((ROOT / "web/package.json").read_text())["devDependencies"]
    installed = page_versions(ROOT)
    assert {name: installed.get(name) for name in wanted} == wanted


def test_npm_installs_from_the_lock_everywhere() -> None:
    """Nothing but `npm ci` (and the renewal of the lock itself) installs packages of the page."""
    for name in ("Makefile", "hatch_build.py", "scripts/npm", ".ci/run", "deploy/docker/Dockerfile"):
        text = (ROOT / name).read_text()
        assert not re.search(r'(npm|scripts/npm \S+|\.npm,) "?(install|update|add|i)\b', text), name
    assert 'tools.npm, "ci"' in (ROOT / "hatch_build.py").read_text()
    assert "$(VENV) ci " in (ROOT / "Makefile").read_text()


# --- installing: a small project of its own, with packages in a folder ---------------------------------


def _wheel(folder: Path, name: str, version: str, requires: str = "") -> str:
    """Write a wheel with one module; gives its checksum."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class SmallProject:
    """A project with one requirement and one of an extra, each to be had in two versions; the older is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        for path in (folder / "scripts", folder / "locks", self.wheels):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "locks.py", folder / "scripts")
        (folder / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\n[project]\nname = "small"\ndependencies = ["meadow>=1"]\n'
            '[project.optional-dependencies]\nall = ["brook>=1"]\nldap = []\ndev = ["small[all]"]\n'
            "[dependency-groups]\n"
        )
        hashes = {
            (name, version): _wheel(self.wheels, name, version)
            for name in ("meadow", "brook")
            for version in "12"
        }
        self.project = folder / "small-1-py3-none-any.whl"
        _wheel(
            folder,
            "small",
            "1",
            'Requires-Dist: meadow>=1\nProvides-Extra: all\nRequires-Dist: brook>=1; extra == "all"\n',
        )
        self.lock = lock_file(RUNNING, folder)
        self.lock.write_text(
            f"# sets: agent all\n{Pin('meadow', '1', (hashes['meadow', '1'],), frozenset()).lines()}"
            f"# sets: all\n{Pin('brook', '1', (hashes['brook', '1'],), frozenset()).lines()}"
        )

    def install(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.folder / "scripts/locks.py"), "install", *arguments],
            env={
                **os.environ,
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.wheels),
                "PIP_CONFIG_FILE": os.devnull,
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def installed(self) -> dict[str, str]:
        """Give version by name of what is in the target folder."""
        names = (path.name.removesuffix(".dist-info") for path in self.target.glob("*.dist-info"))
        return {name.partition("-")[0]: name.partition("-")[2] for name in names}

    @property
    def target(self) -> Path:
        return self.folder / "target"


@pytest.fixture
def small(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path / "small")


def test_a_set_is_installed_in_the_locked_versions(small: SmallProject) -> None:
    done = small.install("agent", "--target", str(small.target))
    assert done.returncode == 0, done.stderr
    assert small.installed() == {"meadow": "1"}
    assert small.install("all", "--target", str(small.target)).returncode == 0
    assert small.installed() == {"meadow": "1", "brook": "1"}


def test_a_package_with_another_checksum_is_refused(small: SmallProject) -> None:
    with zipfile.ZipFile(small.wheels / "brook-1-py3-none-any.whl", "a") as archive:
        archive.comment = b"not what was locked"
    done = small.install("all", "--target", str(small.target))
    assert done.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert small.installed() == {}


def test_a_python_without_a_lock_gets_the_open_ranges_and_is_told(small: SmallProject) -> None:
    small.lock.unlink()
    done = small.install("all", "--target", str(small.target))
    assert done.returncode == 0, done.stderr
    assert f"There is no lock for Python {RUNNING}" in done.stderr
    assert small.installed() == {"meadow": "2", "brook": "2"}


def test_a_lock_that_lacks_a_requirement_stops_the_installation(small: SmallProject) -> None:
    small.lock.write_text(small.lock.read_text().partition("# sets: all\n")[0])
    for wheel in small.wheels.glob("brook-*"):
        wheel.unlink()  # a registry would have it, but is not asked
    done = small.install("all", "--target", str(small.target), "--project", f"{small.project}[all]")
    assert done.returncode == 1
    assert "brook" in done.stderr
    assert "run `make lock`" in done.stderr
