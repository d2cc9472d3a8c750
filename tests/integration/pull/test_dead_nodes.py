"""Nodes that swallow what is sent to them do not keep the others waiting."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from gpuherd.model.targets import Target
from gpuherd.sources.pull import PullWay
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings
from gpuherd.wire.frames import Hello
from support.black_hole import black_hole
from support.pulling import INTERVAL_SECONDS, WrittenRun, listening, secret_of
from support.running import PATIENCE_SECONDS, until

DEAD = 50
GOOD = 5


class Herd:
    """Nodes that have said hello, and how often."""

    def __init__(self) -> None:
        self.hellos: dict[str, int] = {}

    def open_run(self, node_id: str, hello: Hello, *, asked_at: float | None = None) -> WrittenRun:
        self.hellos[node_id] = self.hellos.get(node_id, 0) + 1
        return WrittenRun(hello.boot_id)

    def refuse(self, node_id: str, error: Refused) -> None:
        raise error


class Intake:
    def __init__(self, node_id: str) -> None:
        self.node_id = node_id

    def take(self, report: Report) -> None:
        raise AssertionError("pull hands over frames, not reports")


def test_fifty_black_holes_and_five_good_nodes(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        herd = Herd()
        way = PullWay(
            PullSettings(interval_seconds=INTERVAL_SECONDS, connect_deadline_seconds=10 * PATIENCE_SECONDS),
            links=NodeLinks(herd, monotonic=asyncio.get_running_loop().time),
            secret_of=secret_of,
        )

        def follow(name: str, port: int) -> asyncio.Task[None]:
            target = Target(name=name, address="127.0.0.1", port=port)
            return asyncio.create_task(way.follow(target, Intake(name)))

        async with contextlib.AsyncExitStack() as stack:
            hole = stack.enter_context(black_hole())
            agents = [
                listening(spec, tmp_path / f"good{number}", secret=secret_of(f"good{number}"))
                for number in range(GOOD)
            ]
            ports = [port for _, port in [await stack.enter_async_context(agent) for agent in agents]]
            dead = [follow(f"dead{number}", hole) for number in range(DEAD)]
            good = [follow(f"good{number}", port) for number, port in enumerate(ports)]
            await until(lambda: len(herd.hellos) == GOOD, "every good node is in")
            assert not any(task.done() for task in dead), "these are no black holes"

            # The dead are given up and dialled again, before the links of the good ones break.
            for task in (*dead, *good):
                task.cancel()
            await asyncio.gather(*dead, *good, return_exceptions=True)
            dead = [follow(f"dead{number}", hole) for number in range(DEAD)]
            good = [follow(f"good{number}", port) for number, port in enumerate(ports)]
            await until(lambda: all(count == 2 for count in herd.hellos.values()), "they are in again")
            assert not any(task.done() for task in dead)
            for task in (*dead, *good):
                task.cancel()
            await asyncio.gather(*dead, *good, return_exceptions=True)
            await way.close()

    asyncio.run(main())
