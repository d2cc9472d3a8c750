"""A real agent and a real hub whose disk is full: the node stays live, and all is saved, once, when there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.model.errors import Failed
from gpuherd.records.last_reports import LastReport, LastReports
from support.hub import eventually, running_hub


class FullDisk(LastReports):
    """Refuses to save while it is full."""

    is_full = False

    def save(self, batch: Iterable[LastReport]) -> None:
        if self.is_full:
            raise Failed("cannot save: no space left on device")
        super().save(batch)


def test_a_hub_that_cannot_save_shows_what_is_live_and_saves_it_all_later(
    spec: ProbeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the disk had been full for far longer than frames are kept in memory only, or acks are usually due.
    monkeypatch.setattr("gpuherd.agent.outbox.UNCONFIRMED_SECONDS", 0.5)
    stores: list[FullDisk] = []

    def open_store(file: Path) -> LastReports:
        stores.append(FullDisk(file))
        return stores[-1]

    async def main() -> None:
        async with running_hub(tmp_path / "hub", hub_options={"open_store": open_store}) as hub:
            enrolled = await hub.admit("node")
            state_dir = tmp_path / "agent"
            state_dir.mkdir()
            (state_dir / "credential").write_text(enrolled.credential)
            settings = msgspec.convert({"hub_url": hub.url, "interval_seconds": 0.1}, AgentSettings)
            agent = Agent(settings, spec, state_dir=state_dir)
            stop = asyncio.Event()
            task = asyncio.create_task(agent.run(stop))
            try:
                current = agent.outbox.current
                await eventually(lambda: current.acked_seq >= 3)
                (store,) = stores
                store.is_full = True
                await eventually(lambda: hub.health().store.state == "failing")
                acked_seq, made = current.acked_seq, current.next_seq
                while current.next_seq < made + 25:
                    assert [node.state for node in hub.fleet.nodes()] == ["live"]
                    await asyncio.sleep(0.05)
                assert current.acked_seq <= made, "nothing made since then is confirmed"
                assert current.acked_seq == acked_seq or current.acked_seq < made
                assert list((state_dir / "spool").glob("*/*.seg")), "what is not confirmed is on disk"
                store.is_full = False
                unconfirmed = current.next_seq - 1
                await eventually(lambda: current.acked_seq >= unconfirmed)
                (health,) = hub.fleet.node_health()
                assert (health.duplicates, health.missed, health.dropped_by_agent) == (0, 0, 0)
                assert health.backfilled == 0, "all of it came live, over one link"
                assert health.accepted >= unconfirmed - 1  # all but facts and table
                await eventually(lambda: not list((state_dir / "spool").glob("*/*.seg")))
            finally:
                stop.set()
                await asyncio.wait_for(task, 20)

    asyncio.run(main())
