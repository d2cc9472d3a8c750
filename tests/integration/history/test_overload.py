"""The hub's writer stands still while nodes report: nothing is closed, lost or thrown away, and it is said."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from gpuherd.agent.loop import Agent
from gpuherd.agent.settings import AgentSettings
from gpuherd.agent.spec import ProbeSpec
from gpuherd.api import overload
from gpuherd.api.hub import Hub
from gpuherd.history.batch import Batch
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.wiring.past import past_outfit
from support.counting_node import CountingNode, remembered
from support.doctor import doctors_words
from support.hub import eventually, running_hub
from support.hub_process import ShiftedClock
from support.running import PATIENCE_SECONDS
from support.scripted_node import script, spec
from support.soak import SOAK
from support.tally import Tally

__all__ = ["script", "spec"]

HOUR = 3600.0
STALL_SECONDS = 60.0 if SOAK > 1 else 0.0
"""In the short form the stall ends as soon as everything that is to be seen was seen."""
PING_SECONDS = 15.0 if SOAK > 1 else 0.5
LAST_RELEASE = "8c08009"
ROOT = Path(__file__).parents[3]


class LastReleaseNode(CountingNode):
    """Behaves as an agent of before ``pace`` frames: sends on without acks, and gives a hub up that answers no ping."""

    def __init__(self, url: str, credential: str) -> None:
        super().__init__(url, credential, every_seconds=0.1)
        self.patience_seconds = None
        self.dials = 0
        self.pong_seconds: list[float] = []

    async def dial(self, **_: Any) -> Any:
        self.dials += 1
        return await super().dial(ping_interval=None)

    async def _hear(self) -> None:
        pinging = asyncio.create_task(self._ping())
        try:
            await super()._hear()
        finally:
            pinging.cancel()

    async def _ping(self) -> None:
        assert self.connection is not None
        while True:
            await asyncio.sleep(PING_SECONDS)
            started = time.monotonic()
            pong = await self.connection.ping()
            try:
                await asyncio.wait_for(pong, 15.0)
            except TimeoutError:
                self.connection.transport.abort()
                raise
            self.pong_seconds.append(time.monotonic() - started)


@contextmanager
def stalled_writer(hub: Hub) -> Iterator[None]:
    """Let whatever is written to the journal wait in the writer's thread."""
    assert hub._remembering is not None
    historian = hub._remembering.library.historian
    append, may_write = historian.append, threading.Event()

    def wait_and_append(batch: Batch) -> None:
        may_write.wait()
        append(batch)

    historian.append = wait_and_append  # type: ignore[method-assign]
    try:
        yield
    finally:
        may_write.set()
        historian.append = append  # type: ignore[method-assign]


def remembering_hub(folder: Path) -> Any:
    # By the hub's clock an hour has just begun: the journal is whole until the end of the test.
    past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), folder)
    return running_hub(folder, hub_options={"past": past, "clock": ShiftedClock(-(time.time() % HOUR))})


def overload_reasons(hub: Hub) -> list[str]:
    return [reason for reason in hub.health().reasons if "overloaded" in reason]


@pytest.mark.chaos
@pytest.mark.promise("overload-closes-no-link")
@pytest.mark.promise("overload-throws-nothing-away")
@pytest.mark.promise("overload-is-said")
def test_a_stall_closes_no_link_of_older_agents_and_loses_nothing(tmp_path: Path, tally: Tally) -> None:
    async def story() -> None:
        async with remembering_hub(tmp_path) as hub:
            names = [f"old-{number}" for number in range(6 * min(SOAK, 10))]
            nodes = [LastReleaseNode(hub.url, (await hub.admit(name)).credential) for name in names]
            running = [asyncio.create_task(node.run()) for node in nodes]
            await eventually(lambda: all(node.acked > 2 for node in nodes))
            with stalled_writer(hub):
                started = time.monotonic()
                await eventually(lambda: overload_reasons(hub))
                said = time.monotonic() - started
                await eventually(lambda: "overloaded" in [told.code for told in hub.fleet.view().notices])
                assert hub.health().status == "degraded"
                assert hub.health().load.overloaded_since is not None
                assert any("the hub is overloaded" in word for word in await doctors_words(hub, tmp_path))
                acked, seqs, pongs = (
                    [node.acked for node in nodes],
                    [node.seq for node in nodes],
                    [len(node.pong_seconds) for node in nodes],
                )
                await eventually(
                    lambda: all(
                        node.seq > seq + 20 and len(node.pong_seconds) >= count + 2
                        for node, seq, count in zip(nodes, seqs, pongs, strict=True)
                    ),
                )
                await asyncio.sleep(max(0.0, started + STALL_SECONDS - time.monotonic()))
                assert [node.acked for node in nodes] == acked, "the writer stood still all the while"
                stalled = time.monotonic() - started
            await eventually(lambda: all(node.acked > seq for node, seq in zip(nodes, seqs, strict=True)))
            for node in nodes:
                node.is_finishing = True
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*running)
            health = hub.health().history
            assert health is not None
        found = remembered(tmp_path / "history")
        lost = sum(
            (Counter(range(3, node.seq + 1)) - found[name]).total()
            for name, node in zip(names, nodes, strict=True)
        )
        pong_seconds = max(seconds for node in nodes for seconds in node.pong_seconds)
        tally.add(
            "writer stalled, agents of the last release",
            tries=len(nodes),
            held=sum(node.dials == 1 for node in nodes),
            lost=lost,
            figure=f"{stalled:.0f} s; said after {said:.1f} s; a ping waited {pong_seconds:.1f} s",
        )
        assert [node.dials for node in nodes] == [1] * len(nodes), "no link was closed"
        assert (health.sent_again_samples, health.lost_samples) == (0, 0)
        for name, node in zip(names, nodes, strict=True):
            assert found[name] == Counter(range(3, node.seq + 1)), "every sample, and once"

    asyncio.run(story())


@pytest.mark.chaos
@pytest.mark.promise("overload-asks-for-less")
@pytest.mark.promise("overload-is-not-stale")
def test_an_agent_reports_less_often_during_a_stall_and_as_usual_afterwards(
    tmp_path: Path, spec: ProbeSpec, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.setattr(overload, "STEP_SECONDS", 0.5)
    monkeypatch.setattr(overload, "CALM_SECONDS", 0.5)
    (folder := tmp_path / "agent").mkdir()

    async def story() -> None:
        async with remembering_hub(tmp_path / "hub") as hub:
            (folder / "credential").write_text((await hub.admit("new")).credential)
            agent = Agent(AgentSettings(hub_url=hub.url), spec, state_dir=folder)
            stop = asyncio.Event()
            running = asyncio.create_task(agent.run(stop))

            def state() -> str:
                view = hub.fleet.node("new")
                return "never" if view is None else view.state

            await eventually(lambda: state() == "live")
            with stalled_writer(hub):
                await eventually(lambda: agent.interval_seconds == overload.LONGEST_STRETCH)
                assert hub.health().load.asked_nodes == 1
                view = hub.fleet.node("new")
                assert view is not None
                longest = view.interval_seconds
            await eventually(lambda: agent.interval_seconds == 1.0)
            await eventually(lambda: not overload_reasons(hub))
            await eventually(lambda: state() == "live")
            replaced = hub.health().links.replaced
            stop.set()
            await running
            tally.add(
                "writer stalled, agent of this release",
                tries=1,
                held=int((longest, replaced) == (overload.LONGEST_STRETCH, 0)),
                figure=f"1 s → {longest:g} s → 1 s",
            )
            assert (longest, replaced) == (overload.LONGEST_STRETCH, 0)

    asyncio.run(story())


def last_release(folder: Path) -> Path:
    """Unpack the last release's code; skip where the repository's history is not at hand."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "archive", LAST_RELEASE, "src/gpuherd"], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"commit {LAST_RELEASE} is not here: the last release's agent cannot be run")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


@pytest.mark.chaos
@pytest.mark.promise("overload-closes-no-link")
def test_the_last_releases_own_agent_keeps_its_link_through_a_stall(tmp_path: Path, tally: Tally) -> None:
    source = last_release(tmp_path / "release")
    log = tmp_path / "agent.log"
    (folder := tmp_path / "agent").mkdir()

    async def story() -> None:
        async with remembering_hub(tmp_path / "hub") as hub:
            (folder / "credential").write_text((await hub.admit("old")).credential)
            with log.open("wb") as errors:
                agent = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "gpuherd", "agent", "--collector", "nvml", "--hub", hub.url),
                    *("--state-dir", str(folder), "--interval", "0.2"),
                    stderr=errors,
                    env={**os.environ, "PYTHONPATH": str(source)},
                )
            try:
                health = hub.fleet.node_health
                await eventually(lambda: health()[0].accepted > 2)
                with stalled_writer(hub):
                    started = time.monotonic()
                    await eventually(lambda: overload_reasons(hub))
                    accepted = health()[0].accepted
                    await eventually(lambda: health()[0].accepted > accepted + 10)
                    # Frames that it does not know, to see what it makes of them.
                    link = hub.links._links["old"]
                    link.follows_pace = True
                    await eventually(lambda: hub.health().load.asked_nodes == 1)
                    await asyncio.sleep(max(0.0, started + STALL_SECONDS - time.monotonic()))
                accepted = health()[0].accepted
                await eventually(lambda: health()[0].accepted > accepted + 10)
                assert hub.links._links["old"] is link, "the link of the beginning"
            finally:
                agent.terminate()
                await agent.wait()
            history = hub.health().history
            assert history is not None
            assert (history.sent_again_samples, history.lost_samples, health()[0].missed) == (0, 0, 0)

    asyncio.run(story())
    said = log.read_text()
    held = said.count("connected to") == 1 and "lost" not in said
    tally.add("writer stalled, the last release's own agent", tries=1, held=int(held))
    assert held, said
