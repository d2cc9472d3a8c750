"""``gpuherd demo``: a real hub and a simulated herd that pushes to it like real nodes do."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.agent.watch import ProbeWatch
from gpuherd.api.hub import Hub
from gpuherd.api.remembering import PastOutfit
from gpuherd.api.settings import HubSettings
from gpuherd.fleet.settings import AvailabilitySettings, PrivacySettings
from gpuherd.history.library import Library
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.devices import DeviceFacts
from gpuherd.wiring.companion import keep_running
from gpuherd.wiring.demo_bookings import book_demo_herd
from gpuherd.wiring.demo_files import fill_past
from gpuherd.wiring.demo_herd import DemoNode, demo_herd
from gpuherd.wiring.demo_past import FINE_DAYS, DemoPast
from gpuherd.wiring.demo_stays import states_now
from gpuherd.wiring.past import past_outfit
from gpuherd.wiring.simulated_node import SimulatedNode
from gpuherd.wiring.up import run_beside, stop_signals, tell_setup_link, write_secret

__all__ = ["demo"]

DEMO_AVAILABILITY = AvailabilitySettings(idle_window_seconds=30, offline_after_seconds=20)
"""Shorter than in life, so that held and offline show within the first minute."""
DEMO_PRIVACY = PrivacySettings(command_lines="members")
"""Nobody in it is real."""
DEMO_HISTORY = HistorySettings(minute_days=FINE_DAYS)
"""What is made up is made up no finer than that."""
DEMO_USAGE = UsageSettings(
    cost_per_gpu_hour=1.2, cost_per_gpu_hour_by_type={"H100 80GB": 2.5}, cost_per_kwh=0.25
)
DEMO_DAYS = 90
RECALL_SECONDS = 120
SEED = 7


class HerdOrder(Struct, frozen=True, kw_only=True):
    """What the herd's process is told, in a file: which herd, and where the hub is."""

    nodes: int
    epoch: float
    hub_url: str


async def demo(
    nodes: int,
    listen: str,
    base_path: str,
    tell: Callable[[str], None],
    state_dir: Path | None = None,
    days: int = DEMO_DAYS,
) -> None:
    """Run until told to stop; without a state folder nothing is left behind. ``days``: how far its past goes back."""
    stop = stop_signals()
    with tempfile.TemporaryDirectory(prefix="gpuherd-demo-") as scratch:
        settings = HubSettings(
            state_dir=state_dir or Path(scratch) / "hub", listen=listen, base_path=base_path
        )
        epoch = time.time()
        herd = demo_herd(nodes, seed=SEED, epoch=epoch)
        past = past_outfit(DEMO_HISTORY, DEMO_USAGE, Path())
        if days:
            tell(f"Generating {days} days of history …")
            await _fill_past(settings, past, herd, days, epoch)
        async with Hub(settings, DEMO_AVAILABILITY, privacy=DEMO_PRIVACY, past=past) as hub:
            folder = Path(scratch) / "herd"
            node_ids = {}
            for node in herd:
                enrolled = await hub.admit(node.name)
                node_ids[node.name] = enrolled.node_id
                write_secret(folder / node.name / "credential", enrolled.credential)
            if hub.records.bookings.revision() == 0:  # a demo whose state was kept has its bookings
                await asyncio.to_thread(
                    book_demo_herd, hub.records.bookings, herd, node_ids, now=epoch, days=days
                )
            order = HerdOrder(nodes=nodes, epoch=epoch, hub_url=hub.url)
            (folder / "order.json").write_bytes(msgspec.json.encode(order))
            tell(f"gpuherd demo, {nodes} simulated nodes: {hub.url}   (Ctrl+C stops it)")
            await tell_setup_link(hub, tell)
            await run_beside(
                hub,
                stop,
                keep_running("the herd", ["-m", "gpuherd.wiring.demo", str(folder)]),
                _recall(hub, herd, node_ids, epoch, days),
            )


async def _fill_past(
    settings: HubSettings, past: PastOutfit, herd: tuple[DemoNode, ...], days: int, now: float
) -> None:
    """Give an empty hub a past: its nodes are enrolled, and what they did is written as if it had been watched."""
    folder = settings.state_dir / "history"
    if folder.exists():
        return  # a demo whose state was kept has its own past
    # At an address that nobody knows: whoever asks at the demo's own waits for the hub that stays.
    elsewhere = msgspec.structs.replace(settings, listen="127.0.0.1:0")
    async with Hub(elsewhere, DEMO_AVAILABILITY) as hub:
        node_ids = {node.name: (await hub.admit(node.name)).node_id for node in herd}
        names = hub.fleet.names
    cards = {gpu.name: gpu.name for node in herd for gpu in node.scenario.gpus}
    types = {name: names.gpu(DeviceFacts(uuid="-", index=0, name=name)) for name in cards}
    story = DemoPast(herd, node_ids, types, now=now, days=days)

    def fill() -> None:
        library = Library(
            folder, past.history, past.usage, open_samples=past.open_samples, pseudonym=str, wall=lambda: now
        )
        with library:
            fill_past(library, story)

    await asyncio.to_thread(fill)


async def _recall(
    hub: Hub, herd: tuple[DemoNode, ...], node_ids: dict[str, str], now: float, days: int
) -> None:
    """Let the live view know since when devices have been what they are, as soon as their nodes report."""
    waiting = {node_ids[node.name]: states_now(node, now, days) for node in herd}
    for _ in range(RECALL_SECONDS):
        await asyncio.sleep(1.0)
        waiting = {
            node_id: states for node_id, states in waiting.items() if not hub.fleet.recall(node_id, states)
        }
        if not waiting:
            return


async def play(folder: Path) -> None:
    """Be the herd: one agent per node, all in this process."""
    order = msgspec.json.decode((folder / "order.json").read_bytes(), type=HerdOrder)
    stop = stop_signals()
    herd = demo_herd(order.nodes, seed=SEED, epoch=order.epoch)
    await asyncio.gather(*(_play_node(node, folder / node.name, order.hub_url, stop) for node in herd))


async def _play_node(node: DemoNode, state_dir: Path, hub_url: str, stop: asyncio.Event) -> None:
    simulated = SimulatedNode(node.scenario, reports=node.reports, pulled=node.pulled)
    settings = AgentSettings(hub_url=hub_url, spool_max_bytes=0)
    agent = Agent(
        settings,
        ProbeSpec(node="", collectors=()),
        state_dir=state_dir,
        watch=cast("ProbeWatch", simulated),
    )
    await agent.run(stop if node.reports is None else simulated.is_spent)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    asyncio.run(play(Path(sys.argv[1])))
