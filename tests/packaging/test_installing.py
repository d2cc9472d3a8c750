"""A released wheel, installed by pip, pipx and uv into new environments with no Node.js and no sources around."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from gpuherd import __version__
from support.release import Release
from support.running import eventually, free_port
from support.wheelhouse import pack_wheels

START_WORDS = b"<title>gpuherd"
Installer = Callable[[Path, str, Path], Path]
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**_bare(folder), **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _bare(folder: Path) -> dict[str, str]:
    """An environment of someone who has Python and nothing else: no Node, no settings of this machine."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    return {
        "PATH": str(programs),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _by_pip(folder: Path, what: str, house: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env"), "install", "--quiet", "--no-compile"]
    _run([*pip, "--no-index", "--find-links", str(house), what], folder)
    return folder / "env/bin"


def _by_pipx(folder: Path, what: str, house: Path) -> Path:
    arguments = f"--no-index --no-compile --find-links {house}"
    _run(
        [sys.executable, "-m", "pipx", "install", "--python", sys.executable, "--pip-args", arguments, what],
        folder,
        PIPX_HOME=str(folder / "pipx"),
        PIPX_BIN_DIR=str(folder / "bin"),
        PIPX_MAN_DIR=str(folder / "man"),
    )
    assert (folder / "man/man1/gpuherd.1").is_file(), "pipx shows the manual pages"
    return folder / "bin"


def _by_uv(folder: Path, what: str, house: Path) -> Path:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv is not None
    _run(
        [
            uv,
            "tool",
            "install",
            "--offline",
            "--no-index",
            "--find-links",
            str(house),
            "--python",
            sys.executable,
            what,
        ],
        folder,
        UV_TOOL_DIR=str(folder / "tools"),
        UV_TOOL_BIN_DIR=str(folder / "bin"),
        UV_CACHE_DIR=str(folder / "cache"),
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def house(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the hub needs, and gpuherd itself, in a folder of wheels."""
    folder = tmp_path_factory.mktemp("house")
    packed = pack_wheels(["gpuherd[hub]"], folder)
    assert {"click", "litestar", "duckdb"} <= set(packed)
    for wheel in folder.glob("gpuherd-*.whl"):
        wheel.unlink()  # that of the development environment has no code in it
    shutil.copy(release.wheel, folder)
    return folder


def _page(port: int) -> bytes | None:
    try:
        with _opener.open(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, ConnectionError):
        return None


def _serves_the_page(gpuherd: str, folder: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [gpuherd, "up", "--listen", f"127.0.0.1:{port}", "--state-dir", str(folder / "state")],
        cwd=folder,
        env=_bare(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        page = eventually(lambda: _page(port), lambda content: content is not None)
        assert START_WORDS in page
        script = page.split(b'src="./')[1].split(b'"')[0].decode()
        with _opener.open(f"http://127.0.0.1:{port}/{script}", timeout=10) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("install", [_by_pipx, _by_uv], ids=["pipx", "uv"])
def test_a_tool_installed_with_the_hub_serves_the_page(
    install: Installer, release: Release, house: Path, tmp_path: Path
) -> None:
    what = f"{house / release.wheel.name}[hub]"
    if install is _by_uv:
        what = f"gpuherd[hub] @ {(house / release.wheel.name).as_uri()}"
    gpuherd = str(install(tmp_path, what, house) / "gpuherd")
    assert _run([gpuherd, "--version"], tmp_path).split() == ["gpuherd,", "version", __version__]
    _serves_the_page(gpuherd, tmp_path)


def test_pip_installs_an_agent_and_a_client_and_with_what_the_hub_needs_it_serves_the_page(
    release: Release, house: Path, tmp_path: Path
) -> None:
    gpuherd = str(_by_pip(tmp_path, str(house / release.wheel.name), house) / "gpuherd")
    (packages,) = (tmp_path / "env/lib").glob("*/site-packages")
    installed = {path.name.split("-")[0] for path in packages.glob("*.dist-info")}
    assert installed == {"gpuherd", "click", "msgspec", "nvidia_ml_py", "psutil", "websockets"}
    assert (tmp_path / "env/share/man/man1/gpuherd-agent.1").is_file()
    assert _run([gpuherd, "--version"], tmp_path).split() == ["gpuherd,", "version", __version__]
    assert '"host"' in _run([gpuherd, "agent", "--once", "--json"], tmp_path)

    up = [gpuherd, "up"]
    done = subprocess.run(up, cwd=tmp_path, env=_bare(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'gpuherd[hub]'" in done.stderr
    # The hub's packages of the development environment; a folder so named brings no editable install with it.
    (packages / "hub.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    assert _run(
        [str(tmp_path / "env/bin/python"), "-c", "import gpuherd; print(gpuherd.__file__)"], tmp_path
    ).startswith(str(packages))
    _serves_the_page(gpuherd, tmp_path)
