"""Links that break, freeze, crawl or go on with nothing to say."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from gpuherd.wire.blocks import Round
from support.running import stand_still
from support.ssh_nodes import TINY_SCRIPT, Hub, eventually, play
from support.sshd import Sshd, running_sshd


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
                stand_still(*server.session_pids())
                failure = await node.failure()
                silent = time.monotonic() - node.intake.times[-1]
            assert failure.code == "link_lost"
            assert "three keepalives" in str(failure)
            assert silent > 2.5
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
        assert len(node.intake.reports) == 2, "given up before the third came"
        assert failure.code == "timeout"
        assert "another round has not arrived" in str(failure)
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
        assert 'ended with status 9 and printed "no more memory"' in str(failure)
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
    assert "cannot read a report of node gpu02 over SSH" in caplog.text


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
        gc.collect()
        assert not [thing for thing in gc.get_objects() if isinstance(thing, asyncssh.SSHClientConnection)]


def test_keepalives_that_are_shorter_than_the_interval(tmp_path: Path, server: Sshd, key: Path) -> None:
    async def story() -> None:
        hub = Hub(tmp_path, key_files=(key,), interval_seconds=3.5, keepalive_seconds=1)
        hub.know(server.known_hosts_line)
        async with hub.following(at(server)) as node:
            await node.rounds(2)
        await hub.way.close()

    play(story())
