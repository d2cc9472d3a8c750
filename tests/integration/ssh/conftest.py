"""A server and a key that the tests of a module share."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.sshd import Sshd, make_key, need_sshd, running_sshd


@pytest.fixture(scope="session", autouse=True)
def _possible() -> None:
    need_sshd()


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_sshd()
    return make_key(tmp_path_factory.mktemp("key") / "id", comment="monitor")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Iterator[Sshd]:
    """A server that lets the key in, to run anything."""
    need_sshd()
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        server.authorize(key)
        yield server


@pytest.fixture
def account() -> Iterator[Callable[[str], str]]:
    """Make accounts with a login shell of the test's choice; they are removed again."""
    names: list[str] = []

    def make(shell: str) -> str:
        if shutil.which("useradd") is None:
            pytest.skip("no useradd: accounts with other shells cannot be made")
        name = f"herd{secrets.token_hex(3)}"
        names.append(name)
        subprocess.run(["useradd", "-m", "-s", shell, name], check=True, capture_output=True)
        subprocess.run(["usermod", "-p", "*", name], check=True)
        return name

    yield make
    for name in names:
        subprocess.run(["userdel", "-r", "-f", name], check=False, capture_output=True)
