"""One bad node among fifty, of every kind of bad: it shows the reason, the others stay on time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gpuherd.model.targets import Target
from support.ssh_nodes import TINY_SCRIPT, Following, Hub, play
from support.sshd import Sshd, make_key, running_sshd

START = b'set -- $p; printf "\\n@%s start x\\n\\n@%s round 1\\n" "$3" "$3"; '
BAD: dict[str, bytes] = {
    "garbage": START + b'printf "\\n@%s applause\\n" "$3"; head -c 4000 /dev/urandom; sleep 60',
    "100 MB": START + b"head -c 100000000 /dev/zero; sleep 60",
    "100 MB of banner": b"head -c 100000000 /dev/zero; sleep 60",
    "half a line": START + b"printf half; sleep 60",
    "nothing": b"sleep 60",
    "no pause": TINY_SCRIPT.replace(b"sleep", b": sleep"),
    "errors": START + b"yes why >&2",
}
CODES = {
    "garbage": "garbled",
    "100 MB": "too_large",
    "100 MB of banner": "garbled",
    "half a line": "timeout",
    "nothing": "timeout",
    "no pause": "garbled",
    "errors": "too_large",
}
SCRIPT = (
    b'case "${BAD:-}" in\n'
    + b"".join(b"'%s') %s ;;\n" % (what.encode(), text) for what, text in BAD.items())
    + b"*) "
    + TINY_SCRIPT
    + b";;\nesac\n"
)
ROUNDS = 6
TURN_SECONDS = 1.0
"""More work than this at a stretch would make all nodes late."""


class Herd:
    """One sshd whose keys decide what is found behind them, and the hub in front of it."""

    def __init__(self, folder: Path, key: Path, server: Sshd) -> None:
        self._folder, self._key, self._server = folder, key, server
        server.authorize(key)
        for number, what in enumerate(BAD):
            server.authorize(make_key(folder / f"bad{number}"), f'environment="BAD={what}"')
        self.hub = Hub(
            folder,
            SCRIPT,
            interval_seconds=1,
            command_deadline_seconds=1,
            connect_deadline_seconds=20,
            connects_at_once=16,
        )
        self.hub.know(server.known_hosts_line)

    def _target(self, name: str, key: Path) -> Target:
        address, port = self._server.address, self._server.port
        return Target(name=name, address=address, port=port, user="root", key_file=str(key))

    @asynccontextmanager
    async def good(self, count: int) -> AsyncIterator[list[Following]]:
        """Follow that many good nodes; all of them have reported."""
        async with AsyncExitStack() as stack:
            nodes = [
                await stack.enter_async_context(
                    self.hub.following(self._target(f"gpu{number:02}", self._key))
                )
                for number in range(count)
            ]
            for node in nodes:
                await node.rounds(1)
            yield nodes

    async def bad(self, what: str) -> str:
        """Follow a bad node; gives the code of its failure."""
        number = list(BAD).index(what)
        return (await self.hub.failure(self._target(what, self._folder / f"bad{number}"))).code


class Turns:
    """How much the event loop works at a stretch, in seconds of its thread's own CPU: other programs do not count."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest_seconds = max(self.longest_seconds, time.thread_time() - before)
            await asyncio.sleep(0.01)


async def check_neighbours(nodes: list[Following], trouble: Coroutine[Any, Any, None]) -> None:
    """See that trouble elsewhere neither holds up the loop that all nodes share nor slows down some of them.

    In counts and CPU time: how often a node reports per second, a busy machine decides as well.
    """
    turns = Turns()
    starts = [len(node.intake.times) for node in nodes]
    watching = asyncio.create_task(turns.watch())
    try:
        await trouble
        for node, start in zip(nodes, starts, strict=True):
            await node.rounds(start + ROUNDS)
        counts = [len(node.intake.times) - start for node, start in zip(nodes, starts, strict=True)]
    finally:
        watching.cancel()
    assert max(counts) <= 2 * min(counts), counts
    assert turns.longest_seconds < TURN_SECONDS


@pytest.fixture
def herd(tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Herd]:
    monkeypatch.setattr("gpuherd.sources.ssh.way.HANGING_COMMANDS", 2)
    with running_sshd(tmp_path / "sshd", PermitUserEnvironment="yes") as server:
        yield Herd(tmp_path, key, server)


def test_bad_nodes_show_the_reason_and_make_no_other_stale(herd: Herd) -> None:
    """All kinds of bad at once, beside 43 good nodes: stricter than one bad of fifty."""

    async def story() -> None:
        found: dict[str, str] = {}

        async def trouble() -> None:
            found.update(zip(BAD, await asyncio.gather(*map(herd.bad, BAD)), strict=True))

        async with herd.good(50 - len(BAD)) as nodes:
            await check_neighbours(nodes, trouble())
        assert found == CODES
        await herd.hub.way.close()

    play(story())


def test_a_hung_and_a_chattering_node_do_not_age_their_neighbours(herd: Herd) -> None:
    async def hang(what: str) -> None:
        while True:
            assert await herd.bad(what) == "timeout"

    async def story() -> None:
        async def trouble() -> None:
            hung = [asyncio.create_task(hang(what)) for what in ("half a line", "nothing")]
            for _ in range(2):
                assert await herd.bad("no pause") == "garbled"
                await asyncio.sleep(1)  # as long as a contact waits, and less
            assert not any(task.done() for task in hung)
            for task in hung:
                task.cancel()
            await asyncio.gather(*hung, return_exceptions=True)

        async with herd.good(10) as nodes:
            await check_neighbours(nodes, trouble())
        await herd.hub.way.close()

    play(story())
