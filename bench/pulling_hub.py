"""A real hub that dials many listening nodes on one port: ``python -m bench.pulling_hub FOLDER PORT COUNT``."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.listening_nodes import SECRET
from gpuherd.api.hub import Hub
from gpuherd.api.node_groups import Group
from gpuherd.api.outfit import BareOutfit
from gpuherd.api.settings import HubSettings
from gpuherd.model.targets import Target
from gpuherd.sources.pull import PullWay
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings


class ManyNodes:
    """A finder that names as many nodes as asked for, all at one address."""

    name = "the benchmark"

    def __init__(self, port: int, count: int) -> None:
        self._targets = tuple(
            Target(name=f"n{number:05}", address="127.0.0.1", port=port) for number in range(count)
        )

    async def find(self) -> tuple[Target, ...]:
        """Name them."""
        return self._targets

    async def wait(self) -> None:
        """Never change."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Hold nothing."""


class PullingOutfit(BareOutfit):
    """Dials them."""

    def __init__(self, port: int, count: int) -> None:
        self._finder = ManyNodes(port, count)

    def groups(self, links: NodeLinks) -> Sequence[Group]:
        """Give the one list."""
        return [Group(self._finder, PullWay(PullSettings(), links=links, secret_of=lambda _: SECRET))]


async def main() -> None:
    """Run until told to stop."""
    folder, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = HubSettings(state_dir=Path(folder), listen="127.0.0.1:0")
    async with Hub(settings, outfit=PullingOutfit(port, count)) as hub:
        print(f"gpuherd hub: {hub.url}", flush=True)
        await hub.run_until(stop)


if __name__ == "__main__":
    asyncio.run(main())
