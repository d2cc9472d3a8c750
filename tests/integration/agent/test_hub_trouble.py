"""A real agent and a real hub in trouble: the node is live whenever it can be, and all is saved once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from gpuherd.agent.backoff import Backoff
from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.api.hub import Hub
from gpuherd.fleet.settings import AvailabilitySettings
from gpuherd.model.errors import Failed
from gpuherd.records.last_reports import LastReport, LastReports
from support.hub import eventually, running_hub
from support.running import PATIENCE_SECONDS, free_port

PATIENT = AvailabilitySettings(stale_after_intervals=30)
"""Three seconds at the pace of these tests: the machine may be busy."""


class FullDisk(LastReports):
    """Refuses to save while it is full."""

    is_full = False

    def save(self, batch: Iterable[LastReport]) -> None:
        if self.is_full:
            raise Failed("cannot save: no space left on device")
        super().save(batch)


@asynccontextmanager
async def running_agent(spec: ProbeSpec, url: str, state_dir: Path) -> AsyncIterator[Agent]:
    settings = msgspec.convert({"hub_url": url, "interval_seconds": 0.1}, AgentSettings)
    agent = Agent(
        settings, spec, state_dir=state_dir, backoff=Backoff(first_seconds=0.05, longest_seconds=0.2)
    )
    stop = asyncio.Event()
    task = asyncio.create_task(agent.run(stop))
    try:
        yield agent
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


async def enrol(hub: Hub, state_dir: Path) -> None:
    keep(state_dir, (await hub.admit("node")).credential)


def keep(state_dir: Path, credential: str) -> None:
    state_dir.mkdir()
    (state_dir / "credential").write_text(credential)


def spooled(state_dir: Path) -> list[Path]:
    return list((state_dir / "spool").glob("*/*.seg"))


def test_a_hub_that_cannot_save_shows_what_is_live_and_saves_it_all_later(
    spec: ProbeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # As if the disk had been full for far longer than frames are kept in memory only.
    monkeypatch.setattr("gpuherd.agent.outbox.UNCONFIRMED_SECONDS", 0.5)
    caplog.set_level(logging.INFO)
    stores: list[FullDisk] = []

    def open_store(file: Path) -> LastReports:
        stores.append(FullDisk(file))
        return stores[-1]

    async def main() -> None:
        state_dir = tmp_path / "agent"
        options = {"open_store": open_store, "availability": PATIENT}
        async with running_hub(tmp_path / "hub", hub_options=options) as hub:
            await enrol(hub, state_dir)
            async with running_agent(spec, hub.url, state_dir) as agent:
                current = agent.outbox.current
                await eventually(lambda: current.acked_seq >= 3)
                (store,) = stores
                store.is_full = True
                await eventually(lambda: hub.health().store.state == "failing")
                made = current.next_seq
                while current.next_seq < made + 25:
                    assert [node.state for node in hub.fleet.nodes()] == ["live"]
                    await asyncio.sleep(0.05)
                assert current.acked_seq < made, "nothing made since then is confirmed"
                assert spooled(state_dir), "what is not confirmed is on disk"
                store.is_full = False
                unconfirmed = current.next_seq - 1
                await eventually(lambda: current.acked_seq >= unconfirmed)
                (health,) = hub.fleet.node_health()
                assert (health.duplicates, health.missed, health.dropped_by_agent) == (0, 0, 0)
                assert health.backfilled == 0, "all of it came live"
                assert health.accepted >= unconfirmed - 1  # all but facts and table
                assert caplog.text.count("connected to") == 1, "over one link"
                await eventually(lambda: not spooled(state_dir))

    asyncio.run(main())


def test_a_node_is_live_at_once_when_the_hub_is_back_and_its_backlog_comes_beside(
    spec: ProbeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuherd.agent.talk.SHORT_BACKLOG_FRAMES", 8)
    monkeypatch.setattr("gpuherd.agent.backlog.BATCH_FRAMES", 4)
    state_dir, listen = tmp_path / "agent", f"127.0.0.1:{free_port()}"

    async def main() -> None:
        options = {"availability": PATIENT}
        async with running_hub(tmp_path / "hub", listen=listen, hub_options=options) as hub:
            await enrol(hub, state_dir)
        async with running_agent(spec, f"http://{listen}", state_dir) as agent:
            before = agent.outbox.current
            await eventually(lambda: before.next_seq >= 24)
            async with running_hub(tmp_path / "hub", listen=listen, hub_options=options) as hub:
                await eventually(lambda: [node.state for node in hub.fleet.nodes()] == ["live"])
                assert agent.outbox.older_run() is not None, "while the backlog is still on its way"
                await eventually(lambda: agent.outbox.older_run() is None)
                after = agent.outbox.current
                await eventually(lambda: after.acked_seq >= 6)
                (health,) = hub.fleet.node_health()
                assert health.backfilled == before.next_seq - 2, "every sample of it once"
                assert (health.missed, health.refused, health.dropped_by_agent) == (0, {}, 0)
                assert health.duplicates == 0
                assert health.accepted - health.backfilled >= after.acked_seq - 1
                await eventually(lambda: not spooled(state_dir))

    asyncio.run(main())
