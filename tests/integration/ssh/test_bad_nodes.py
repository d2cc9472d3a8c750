"""One bad node among fifty, of every kind of bad: it shows the reason, the others stay on time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from gpuherd.model.targets import Target
from support.ssh_nodes import TINY_SCRIPT, Hub, play
from support.sshd import make_key, running_sshd

START = b'set -- $p; printf "\\n@%s start x\\n\\n@%s round 1\\n" "$3" "$3"; '
BAD: dict[str, bytes] = {
    "garbage": START + b'printf "\\n@%s applause\\n" "$3"; head -c 4000 /dev/urandom; sleep 12',
    "100 MB": START + b"head -c 100000000 /dev/zero; sleep 12",
    "100 MB of banner": b"head -c 100000000 /dev/zero; sleep 12",
    "half a line": START + b"printf half; sleep 12",
    "nothing": b"sleep 12",
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
GOOD = 49
ROUNDS = 6


def test_bad_nodes_show_the_reason_and_keep_no_other_waiting(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds of bad at once, beside 49 good nodes: stricter than one bad of fifty."""
    monkeypatch.setattr("gpuherd.sources.ssh.way.HANGING_COMMANDS", 1)
    cases = b"".join(b"'%s') %s ;;\n" % (what.encode(), text) for what, text in BAD.items())
    script = b'case "${BAD:-}" in\n' + cases + b"*) " + TINY_SCRIPT + b";;\nesac\n"
    with running_sshd(tmp_path / "sshd", PermitUserEnvironment="yes") as server:
        server.authorize(key)
        for number, what in enumerate(BAD):
            server.authorize(make_key(tmp_path / f"bad{number}"), f'environment="BAD={what}"')

        def target(name: str, key_file: Path) -> Target:
            return Target(
                name=name, address="127.0.0.1", port=server.port, user="root", key_file=str(key_file)
            )

        async def story() -> None:
            hub = Hub(
                tmp_path,
                script,
                interval_seconds=1,
                command_deadline_seconds=1,
                connect_deadline_seconds=6,
                connects_at_once=16,
            )
            hub.know(server.known_hosts_line)
            async with AsyncExitStack() as herd:
                good = [
                    await herd.enter_async_context(hub.following(target(f"gpu{n:02}", key)))
                    for n in range(GOOD)
                ]
                for node in good:
                    await node.rounds(1)
                starts = [len(node.intake.times) - 1 for node in good]
                bad = [hub.failure(target(what, tmp_path / f"bad{n}")) for n, what in enumerate(BAD)]
                failures = await asyncio.gather(*bad)
                for node, start in zip(good, starts, strict=True):
                    await node.rounds(start + ROUNDS)
                gaps = [
                    late - early
                    for node, start in zip(good, starts, strict=True)
                    for early, late in pairwise(node.intake.times[start:])
                ]
            assert {what: failure.code for what, failure in zip(BAD, failures, strict=True)} == CODES
            assert len(gaps) >= GOOD * (ROUNDS - 1)
            assert median(gaps) < 1.25
            # What is shown of a neighbour is never older than two intervals.
            assert max(gaps) < 2.0
            await hub.way.close()

        play(story())
