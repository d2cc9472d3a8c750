"""Servers that refuse, stall or are none: a reason within the deadline, and nothing left behind."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuherd.model.targets import Target
from support.black_hole import black_hole
from support.running import PATIENCE_SECONDS, free_port
from support.ssh_nodes import Hub, play
from support.sshd import Sshd, running_sshd


def at(server: Sshd, name: str = "gpu01") -> Target:
    return Target(name=name, address=server.address, port=server.port, user="root")


def to_port(port: int) -> Target:
    return Target(name="gpu01", address="127.0.0.1", port=port, user="root")


def test_more_logins_than_max_startups_are_tried_again(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd", MaxStartups="1") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            nodes = [at(server, f"gpu{number}") for number in range(6)]
            texts = await asyncio.gather(*(hub.first_text(node) for node in nodes))
            assert texts == ["round 1 of root"] * 6
            await hub.way.close()

        play(story())
        assert "MaxStartups" in server.log.read_text()


def test_no_session_beside_the_login(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd", MaxSessions="0") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            failure = await hub.failure(at(server))
            assert failure.code == "session_refused"
            assert "MaxSessions" in str(failure)
            await hub.way.close()

        play(story())


def test_a_server_that_takes_no_keys(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd", PubkeyAuthentication="no", PasswordAuthentication="yes") as server:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            failure = await hub.failure(at(server))
            assert failure.code == "login_refused"
            assert "PubkeyAuthentication" in str(failure)
            await hub.way.close()

        play(story())


SAYING = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
lines = []
while True:
    line, _ = listener.accept()
    line.sendall(sys.argv[1].encode())
    if sys.argv[2] == "True":
        line.close()
    else:
        lines.append(line)
"""


@contextmanager
def saying(words: str, *, then_close: bool) -> Iterator[int]:
    """Something that is no SSH server: says its words to each who connects."""
    with subprocess.Popen(
        [sys.executable, "-c", SAYING, words, str(then_close)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def test_a_server_that_always_hangs_up_before_its_greeting(tmp_path: Path, key: Path) -> None:
    with saying("Exceeded MaxStartups\r\n", then_close=True) as port:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), connect_deadline_seconds=2)
            failure = await hub.failure(to_port(port))
            assert failure.code == "server_busy"
            assert "Exceeded MaxStartups" in str(failure)
            assert not failure.needs_person
            await hub.way.close()

        play(story())


def test_something_that_is_no_ssh_server(tmp_path: Path, key: Path) -> None:
    with saying("220 mail.example.org ESMTP\r\n", then_close=False) as port:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), connect_deadline_seconds=1)
            failure = await hub.failure(to_port(port))
            assert failure.code == "unreachable"
            assert 'not an SSH server, it says "220 mail.example.org ESMTP"' in str(failure)
            await hub.way.close()

        play(story())


@contextmanager
def _full_port(_: Path, __: Path) -> Iterator[int]:
    """A port that never answers: its queue of connections is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        try:
            yield port
        finally:
            for filler in fillers:
                filler.close()


@contextmanager
def _mute(_: Path, __: Path) -> Iterator[int]:
    with saying("", then_close=False) as port:
        yield port


@contextmanager
def _greets_only(_: Path, __: Path) -> Iterator[int]:
    with saying("SSH-2.0-OpenSSH_9.2\r\n", then_close=False) as port:
        yield port


@contextmanager
def _slow_to_check(folder: Path, _: Path) -> Iterator[int]:
    with running_sshd(
        folder / "slow", AuthorizedKeysCommand="/bin/sleep 12", AuthorizedKeysCommandUser="root"
    ) as server:
        (folder / "known_hosts").write_text(server.known_hosts_line + "\n")
        yield server.port


@contextmanager
def _runs_something_else(folder: Path, key: Path) -> Iterator[int]:
    with running_sshd(folder / "else", ForceCommand="sleep 12") as server:
        server.authorize(key)
        (folder / "known_hosts").write_text(server.known_hosts_line + "\n")
        yield server.port


PHASES: list[tuple[Any, str]] = [
    (_full_port, "connecting"),
    (_mute, "waiting for the server's greeting"),
    (_greets_only, "exchanging keys"),
    (_slow_to_check, "logging in"),
    (_runs_something_else, "waiting for the first line of the script"),
]


@pytest.mark.parametrize(("stalling", "phase"), PHASES, ids=[phase for _, phase in PHASES])
def test_the_deadline_names_the_phase_and_cancelling_leaves_nothing(
    tmp_path: Path, key: Path, stalling: Callable[[Path, Path], Any], phase: str
) -> None:
    with stalling(tmp_path, key) as port:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), connect_deadline_seconds=1.5)
            failure = await hub.failure(to_port(port))
            assert failure.code == "timeout"
            assert f"no response after 1.5 s of {phase}" in str(failure)
            async with hub.following(to_port(port)):
                await asyncio.sleep(0.5)
            await hub.way.close()

        play(story())


def test_a_name_server_that_does_not_answer(
    tmp_path: Path, server: Sshd, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = threading.Event()
    real = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        is_for_connecting = rest[0] is not None  # otherwise it is asked only whether this is an address
        if is_for_connecting and str(host).startswith("lost"):
            answer.wait(PATIENCE_SECONDS)
            raise socket.gaierror(
                socket.EAI_NONAME, "no such name"
            )  # asking on would open files after the story
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), connects_at_once=1, connect_deadline_seconds=2)
        hub.know(server.known_hosts_line)
        lost = [Target(name=f"lost{n}", address=f"lost{n}.example") for n in range(4)]
        failures = asyncio.gather(*(hub.failure(target) for target in lost))
        assert await hub.first_text(at(server)) == "round 1 of root"
        assert {failure.code for failure in await failures} == {"timeout"}
        assert "resolving the name" in str((await failures)[0])
        answer.set()
        await hub.way.close()

    play(story())


def test_a_dead_rack_does_not_hold_up_the_living(tmp_path: Path, server: Sshd, key: Path) -> None:
    with saying("", then_close=False) as mute:

        async def story() -> None:
            hub = Hub(
                tmp_path, key_files=(key,), connects_at_once=2, connect_deadline_seconds=10 * PATIENCE_SECONDS
            )
            hub.know(server.known_hosts_line)
            dead = [Target(name=f"dead{n}", address=f"127.0.0.{n + 2}", port=free_port()) for n in range(3)]
            silent = [Target(name=f"mute{n}", address="127.0.0.1", port=mute) for n in range(2)]
            async with AsyncExitStack() as stack:
                waiting = [await stack.enter_async_context(hub.following(target)) for target in silent]
                failures = asyncio.gather(*(hub.failure(target) for target in dead))
                assert await hub.first_text(at(server)) == "round 1 of root"
                assert {failure.code for failure in await failures} == {"unreachable"}
                assert not any(node.task.done() for node in waiting)
            await hub.way.close()

        play(story())


def test_many_black_holes_do_not_hold_up_the_living(tmp_path: Path, server: Sshd, key: Path) -> None:
    """More of them than are dialled at a time."""
    with ExitStack() as stack:
        holes = [stack.enter_context(black_hole()) for _ in range(12)]

        async def story() -> None:
            hub = Hub(
                tmp_path, key_files=(key,), connects_at_once=1, connect_deadline_seconds=10 * PATIENCE_SECONDS
            )
            hub.know(server.known_hosts_line)
            async with AsyncExitStack() as dead:
                targets = [Target(name=f"dead{port}", address="127.0.0.1", port=port) for port in holes]
                waiting = [await dead.enter_async_context(hub.following(target)) for target in targets]
                await asyncio.sleep(0.1)  # they are first in line
                assert await hub.first_text(at(server)) == "round 1 of root"
                assert not any(node.task.done() for node in waiting)
            await hub.way.close()

        play(story())


def test_a_jump_host_that_stalls_is_named_and_leaves_nothing(tmp_path: Path, key: Path) -> None:
    with saying("SSH-2.0-OpenSSH_9.2\r\n", then_close=False) as port:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), connect_deadline_seconds=1.5)
            target = Target(name="gpu01", address="127.0.0.2", proxy_jump=f"root@127.0.0.1:{port}")
            failure = await hub.failure(target)
            assert failure.code == "timeout"
            assert str(failure).startswith(f"gpu01: jump host root@127.0.0.1:{port}: no response after")
            assert "exchanging keys" in str(failure)
            async with hub.following(target), hub.following(target):
                await asyncio.sleep(0.3)
            await hub.way.close()

        play(story())


def test_an_agent_that_does_not_answer(tmp_path: Path, server: Sshd, key: Path) -> None:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()

        async def story() -> None:
            hub = Hub(tmp_path, connect_deadline_seconds=1.5)
            hub.environment["SSH_AUTH_SOCK"] = str(tmp_path / "agent")
            hub.know(server.known_hosts_line)
            hub.config.write_text(f"IdentityFile {key}\n")
            assert await hub.first_text(at(server)) == "round 1 of root"
            hub.config.write_text(f"IdentityFile {tmp_path / 'none'}\n")
            failure = await hub.failure(at(server))
            assert failure.code == "timeout"
            assert "logging in; the server or the SSH agent takes too long" in str(failure)
            hub.environment["SSH_AUTH_SOCK"] = str(tmp_path / "nowhere")
            failure = await hub.failure(at(server))
            assert failure.code == "login_refused"
            assert "does not respond" in str(failure)
            await hub.way.close()

        play(story())
