"""One bad node among fifty, of every kind of bad: it shows the reason, the others stay on time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from gpuherd.model.targets import Target
from support.ssh_nodes import TINY_SCRIPT, Following, Hub, play
from support.sshd import Sshd, make_key, running_sshd

START = b'set -- $p; printf "\\n@%s start x\\n\\n@%s round 1\\n" "$3" "$3"; '
BAD: dict[str, bytes] = {
    "garbage": START + b'printf "\\n@%s applause\\n" "$3"; head -c 4000 /dev/urandom; sleep 15',
    "100 MB": START + b"head -c 100000000 /dev/zero; sleep 15",
    "100 MB of banner": b"head -c 100000000 /dev/zero; sleep 15",
    "half a line": START + b"printf half; sleep 15",
    "nothing": b"sleep 15",
    "no pause": TINY_SCRIPT.replace(b"sleep", b": sleep"),
    "errors": START + b"while :; do echo why >&2; done",
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
            connect_deadline_seconds=8,
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


async def gaps_during(nodes: list[Following], trouble: Coroutine[Any, Any, None]) -> list[float]:
    """Give the times between reports of good nodes, from before the trouble until it is over, six rounds at least."""
    starts = [len(node.intake.times) - 1 for node in nodes]
    await trouble
    for node, start in zip(nodes, starts, strict=True):
        await node.rounds(start + ROUNDS)
    return [
        late - early
        for node, start in zip(nodes, starts, strict=True)
        for early, late in pairwise(node.intake.times[start:])
    ]


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
            gaps = await gaps_during(nodes, trouble())
        assert found == CODES
        assert median(gaps) < 1.25
        assert max(gaps) < 3.0  # the hub calls a node stale after three intervals
        await herd.hub.way.close()

    play(story())


def test_a_hung_and_a_chattering_node_do_not_age_their_neighbours(herd: Herd) -> None:
    """What is shown of a neighbour is never older than two intervals."""

    async def story() -> None:
        async def trouble() -> None:
            hung = [asyncio.create_task(herd.bad(what)) for what in ("half a line", "nothing")]
            for _ in range(2):
                assert await herd.bad("no pause") == "garbled"
                await asyncio.sleep(1)  # as long as a contact waits, and less
            assert not any(task.done() for task in hung)
            for task in hung:
                task.cancel()
            await asyncio.gather(*hung, return_exceptions=True)

        async with herd.good(10) as nodes:
            gaps = await gaps_during(nodes, trouble())
        assert len(gaps) >= 10 * (ROUNDS - 1)
        assert max(gaps) < 2.0
        await herd.hub.way.close()

    play(story())
