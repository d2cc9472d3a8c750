"""Links that break, freeze, crawl or never come about: a reason within the deadline, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from gpuherd.wire.blocks import Round
from support.running import free_port
from support.ssh_nodes import TINY_SCRIPT, Hub, eventually, play
from support.sshd import Sshd, make_key, running_sshd


def at(server: Sshd, name: str = "gpu01") -> Target:
    return Target(name=name, address=server.address, port=server.port, user="root")


def to_port(port: int) -> Target:
    return Target(name="gpu01", address="127.0.0.1", port=port, user="root")


def test_a_killed_sshd_is_a_lost_link_and_following_again_works(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            async with hub.following(at(server)) as node:
                await node.rounds(2)
                server.stop()
                failure = await node.failure()
                assert failure.code == "link_lost"
                assert not failure.needs_person
            assert (await hub.failure(at(server))).code == "unreachable"
            server.start()
            assert await hub.first_text(at(server)) == "round 1 of root"
            await hub.way.close()

        play(story())


def test_a_frozen_link_is_found_within_three_keepalive_times(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), keepalive_seconds=1, command_deadline_seconds=60)
            hub.know(server.known_hosts_line)
            async with hub.following(at(server)) as node:
                await node.rounds(2)
                for pid in server.session_pids():
                    os.kill(pid, signal.SIGSTOP)
                failure = await node.failure()
                silent = time.monotonic() - node.intake.times[-1]
            assert failure.code == "link_lost"
            assert "three keepalive times" in str(failure)
            assert 2.5 < silent < 4.0
            await hub.way.close()

        play(story())


def test_a_link_that_lives_but_brings_no_rounds(
    tmp_path: Path, server: Sshd, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuherd.sources.ssh.way.HANGING_COMMANDS", 1)
    script = TINY_SCRIPT.replace(b'sleep "$4"', b'[ $n = 2 ] && sleep 12; sleep "$4"')

    async def story() -> None:
        hub = Hub(tmp_path, script, key_files=(key,), keepalive_seconds=1, command_deadline_seconds=1)
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as node:
            failure = await node.failure()
            late = time.monotonic() - node.intake.times[-1]
        assert len(node.intake.reports) == 2
        assert failure.code == "timeout"
        assert "another round has not come" in str(failure)
        assert late < hub.way.patience_seconds + 1
        await hub.way.close()

    play(story())


def test_a_script_that_ends_says_how(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(
            tmp_path,
            TINY_SCRIPT.replace(b'sleep "$4"', b"echo no more memory >&2; exit 9"),
            key_files=(key,),
        )
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as node:
            failure = await node.failure()
        assert len(node.intake.reports) == 1
        assert failure.code == "link_lost"
        assert 'ended with status 9 and said "no more memory"' in str(failure)
        await hub.way.close()

    play(story())


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
            assert 'no SSH server, it says "220 mail.example.org ESMTP"' in str(failure)
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
    (_greets_only, "agreeing on keys"),
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
            started = time.monotonic()
            failure = await hub.failure(to_port(port))
            assert failure.code == "timeout"
            assert f"nothing after 1.5 s of {phase}" in str(failure)
            assert time.monotonic() - started < 3
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
        if (
            host == "lost.example" and rest[0] is not None
        ):  # with a port: not only to see whether it is an address
            answer.wait(20)
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), connects_at_once=1, connect_deadline_seconds=2)
        hub.know(server.known_hosts_line)
        lost = [Target(name=f"lost{n}", address="lost.example") for n in range(4)]
        failures = asyncio.gather(*(hub.failure(target) for target in lost))
        assert await hub.first_text(at(server)) == "round 1 of root"
        assert {failure.code for failure in await failures} == {"timeout"}
        assert "resolving the name" in str((await failures)[0])
        answer.set()
        await hub.way.close()

    play(story())


@asynccontextmanager
async def crawling(server: Sshd, bytes_per_second: int) -> AsyncIterator[int]:
    """A link that lets few bytes through each second, both ways."""
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        step = max(1, bytes_per_second // 20)
        while data := await reader.read(step):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(len(data) / bytes_per_second)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(server.address, server.port)
        writers.extend((writer, far_writer))
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    relay = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield relay.sockets[0].getsockname()[1]
    finally:
        relay.close()
        for writer in writers:
            writer.close()
        await asyncio.sleep(0.3)


def test_a_slow_link_is_slow_but_works(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), interval_seconds=0.5)
        async with crawling(server, 8_000) as port:
            kind, text = server.known_hosts_line.split()[1:]
            hub.know(f"[127.0.0.1]:{port} {kind} {text}")
            async with hub.following(to_port(port)) as node:
                await node.rounds(4)
        await hub.way.close()

    play(story())


def test_a_fault_of_ours_about_one_node_is_its_own_trouble(
    tmp_path: Path, server: Sshd, key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def read(self, round_: Round, /) -> Report:
            raise KeyError(round_.number)

        def close(self) -> None: ...

    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,))
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as well:
            await well.rounds(1)
            hub.way._make_reader = Broken
            failure = await hub.failure(at(server, "gpu02"))
            assert failure.code == "garbled"
            assert "KeyError" in str(failure)
            seen = len(well.intake.reports)
            await well.rounds(seen + 2)
        await hub.way.close()

    play(story())
    assert "a round of gpu02 could not be read" in caplog.text


def test_nothing_is_left_on_the_server_after_the_hub_has_gone(tmp_path: Path, key: Path) -> None:
    with running_sshd(tmp_path / "sshd") as server:
        server.authorize(key)

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,))
            hub.know(server.known_hosts_line)
            for _ in range(3):
                await hub.first_text(at(server))
            await eventually(lambda: not server.session_pids())
            await hub.way.close()

        play(story())


START = b'set -- $p; printf "\\n@%s start x\\n\\n@%s round 1\\n" "$3" "$3"; '
BAD: dict[str, bytes] = {
    "garbage": START + b'printf "\\n@%s applause\\n" "$3"; head -c 4000 /dev/urandom; sleep 12',
    "100 MB": START + b"head -c 100000000 /dev/zero; sleep 12",
    "100 MB of banner": b"head -c 100000000 /dev/zero; sleep 12",
    "half a line": START + b"printf half; sleep 12",
    "nothing": b"sleep 12",
}


@pytest.mark.parametrize("what", BAD)
def test_one_bad_node_of_fifty_keeps_no_other_waiting(tmp_path: Path, key: Path, what: str) -> None:
    script = b'case "${BAD:-}" in yes) ' + BAD[what] + b";; *) " + TINY_SCRIPT + b";; esac\n"
    bad_key = make_key(tmp_path / "bad")
    codes = {"100 MB": "too_large", "nothing": "timeout", "half a line": "timeout"}
    with running_sshd(tmp_path / "sshd", PermitUserEnvironment="yes") as server:
        server.authorize(key)
        server.authorize(bad_key, 'environment="BAD=yes"')

        async def story() -> None:
            hub = Hub(
                tmp_path,
                script,
                key_files=(key,),
                interval_seconds=1,
                command_deadline_seconds=1,
                connect_deadline_seconds=5,
                connects_at_once=16,
            )
            hub.know(server.known_hosts_line)
            async with asyncio.TaskGroup() as group:
                stack = [group.create_task(_follow_well(hub, at(server, f"gpu{n:02}"))) for n in range(49)]
                bad = Target(
                    name="bad", address="127.0.0.1", port=server.port, user="root", key_file=str(bad_key)
                )
                failure = await hub.failure(bad)
            assert failure.code == codes.get(what, "garbled")
            gaps = [gap for task in stack for gap in task.result()]
            assert len(gaps) == 49 * 4
            assert max(gaps) < 1.6
            await hub.way.close()

        play(story())


async def _follow_well(hub: Hub, target: Target) -> list[float]:
    async with hub.following(target) as node:
        await node.rounds(5)
        times = node.intake.times[:5]
        return [late - early for early, late in pairwise(times)]


def test_a_dead_rack_does_not_hold_up_the_living(tmp_path: Path, server: Sshd, key: Path) -> None:
    with saying("", then_close=False) as mute:

        async def story() -> None:
            hub = Hub(tmp_path, key_files=(key,), connects_at_once=2, connect_deadline_seconds=4)
            hub.know(server.known_hosts_line)
            dead = [Target(name=f"dead{n}", address=f"127.0.0.{n + 2}", port=free_port()) for n in range(3)]
            dead += [Target(name=f"mute{n}", address="127.0.0.1", port=mute) for n in range(2)]
            failures = asyncio.gather(*(hub.failure(target) for target in dead))
            started = time.monotonic()
            assert await hub.first_text(at(server)) == "round 1 of root"
            assert time.monotonic() - started < 2
            assert {failure.code for failure in await failures} == {"unreachable", "timeout"}
            await hub.way.close()

        play(story())
