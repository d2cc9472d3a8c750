"""Login shells of all kinds, noisy ones, and none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuherd.model.targets import Target
from support.ssh_nodes import Hub, play
from support.sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Iterator[Sshd]:
    """A server that leaves accounts their own home, with what their shells read there."""
    with running_sshd(tmp_path_factory.mktemp("sshd"), SetEnv="NOTHING=special") as server:
        server.authorize(key)
        yield server


def at(server: Sshd, user: str) -> Target:
    return Target(name="gpu01", address=server.address, port=server.port, user=user)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "tcsh", "fish", "zsh"])
def test_the_login_shell_does_not_matter(
    tmp_path: Path, server: Sshd, key: Path, account: Callable[[str], str], shell: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    user = account(program)

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        async with hub.following(at(server, user)) as node:
            await node.rounds(2)
            assert node.intake.texts[0] == f"round 1 of {user}"
        await hub.way.close()

    play(story())


def make_noise(user: str, commands: str) -> None:
    Path(f"/home/{user}/.bashrc").write_text(commands + "\n")


def test_a_shell_that_prints_a_banner(
    tmp_path: Path, server: Sshd, key: Path, account: Callable[[str], str]
) -> None:
    user = account("/bin/bash")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        make_noise(user, "echo 'Welcome!'; printf '@0000 start no'; echo oops >&2; printf '\\033[31mred'")
        assert await hub.first_text(at(server, user)) == f"round 1 of {user}"
        make_noise(user, "yes 'too much noise'")
        failure = await hub.failure(at(server, user))
        assert failure.code == "garbled"
        assert "login scripts" in str(failure)
        make_noise(user, "echo just a banner; exit 0")
        failure = await hub.failure(at(server, user))
        assert failure.code == "command_refused"
        assert 'ended with status 0 and printed "just a banner"' in str(failure)
        await hub.way.close()

    play(story())


def test_nologin(tmp_path: Path, server: Sshd, key: Path, account: Callable[[str], str]) -> None:
    user = account("/usr/sbin/nologin")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server, user))
        assert failure.code == "command_refused"
        assert failure.needs_person
        assert "This account is currently not available." in str(failure)
        assert "nologin" in str(failure)
        await hub.way.close()

    play(story())


def test_a_shell_that_does_not_exist(
    tmp_path: Path, server: Sshd, key: Path, account: Callable[[str], str]
) -> None:
    user = account("/no/such/shell")

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server, user))
        assert failure.code == "login_refused"
        assert "have a login shell that exists" in str(failure)
        await hub.way.close()

    play(story())


def test_a_node_without_sh(tmp_path: Path, key: Path, account: Callable[[str], str]) -> None:
    user = account("/bin/bash")
    empty = tmp_path / "empty"
    empty.mkdir()
    with running_sshd(tmp_path / "sshd", SetEnv=f"PATH={empty}") as server:
        server.authorize(key)
        Path(f"/home/{user}/.bashrc").unlink()

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            failure = await hub.failure(at(server, user))
            assert failure.code == "command_refused"
            assert "has no sh" in str(failure)
            assert "not found" in str(failure)
            await hub.way.close()

        play(story())


def test_a_script_that_refuses(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, b"echo 'gpuherd-ssh refused interval is no number'; exit 64\n", key_files=(key,))
        hub.know(server.known_hosts_line)
        failure = await hub.failure(at(server, "root"))
        assert failure.code == "command_refused"
        assert "refuses to run: interval is no number" in str(failure)
        await hub.way.close()

    play(story())
