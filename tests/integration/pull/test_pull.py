"""Agents that listen and a hub that dials, over real sockets: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from gpuherd.agent.spec import ProbeSpec
from gpuherd.api.hub import Hub
from gpuherd.fleet.views import NodeView
from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed
from gpuherd.wire.frames import FactsFrame, SampleFrame, TableFrame
from support.hub import eventually, running_hub
from support.pulling import INTERVAL_SECONDS, NODE_ID, PullingOutfit, listening, small_hub
from support.running import PATIENCE_SECONDS, until


def test_a_hub_that_dials_gets_frames_like_one_that_is_dialled(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, port), small_hub() as hub:
            hub.dial(port)
            await hub.heard(5)
            (run,) = hub.runs.values()
            assert [type(run.frames[seq]) for seq in range(3)] == [FactsFrame, TableFrame, SampleFrame]
            assert run.arrivals == sorted(set(run.arrivals)), "each frame once, in order"
            await until(lambda: agent.outbox.current.acked_seq >= 3, "acks reach the agent")

    asyncio.run(main())


def test_the_hub_sets_the_pace(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent", interval_seconds=3600) as (agent, port),
            small_hub() as hub,
        ):
            hub.dial(port)
            await hub.heard(6)
            assert agent.outbox.current.facts.interval_seconds == INTERVAL_SECONDS
            assert hub.hellos[0].interval_seconds == INTERVAL_SECONDS, (
                "the fleet counts on the pace asked for"
            )

    asyncio.run(main())


def test_a_killed_hub_resumes_without_loss_or_double(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, port), small_hub() as hub:
            for life in range(3):
                following = hub.dial(port)
                await hub.heard(4)
                hub.vanish()
                with pytest.raises(ContactFailed, match="connection was lost"):
                    await asyncio.wait_for(following, PATIENCE_SECONDS)
                made = agent.outbox.current.next_seq
                await until(lambda: agent.outbox.current.next_seq > made + 2, "frames without a hub")  # noqa: B023
                assert len(hub.hellos) == life + 1
            hub.dial(port)
            await hub.heard(6)
            (run,) = hub.runs.values()
            assert run.missing == []
            samples = [seq for seq in run.arrivals if isinstance(run.frames[seq], SampleFrame)]
            assert samples == sorted(set(samples)), "each sample once, in order"

    asyncio.run(main())


def test_a_restarted_agent_sends_what_its_predecessor_could_not(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, _):
            await until(lambda: agent.outbox.current.next_seq >= 6, "samples without a hub")
            first = agent.outbox.current.facts.boot_id
        async with listening(spec, tmp_path / "agent") as (agent, port), small_hub() as hub:
            hub.dial(port)
            await hub.heard(10)
            await until(lambda: agent.outbox.older_run() is None, "all of it confirmed")
            second = agent.outbox.current.facts.boot_id
            assert [hello.boot_id for hello in hub.hellos] == [second, first]
            assert hub.runs[first].missing == hub.runs[second].missing == []
            assert len(hub.runs[first].frames) >= 6
            assert hub.hellos[1].live_from_seq > max(hub.runs[first].frames), "history, not live"

    asyncio.run(main())


def test_a_second_hub_replaces_the_first(
    spec: ProbeSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with (
            listening(spec, tmp_path / "agent") as (_, port),
            small_hub() as first,
            small_hub() as second,
        ):
            following = first.dial(port)
            await first.heard(3)
            second.dial(port)
            await second.heard(3)
            failure = (await asyncio.gather(following, return_exceptions=True))[0]
            assert getattr(failure, "code", None) == "replaced"
            assert "another hub" in str(failure)
            await second.heard(3)

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert "replaced by another hub" in caplog.text


def test_an_agent_that_stops_says_so(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with small_hub() as hub:
            async with listening(spec, tmp_path / "agent") as (_, port):
                following = hub.dial(port)
                await hub.heard(3)
            failure = (await asyncio.gather(following, return_exceptions=True))[0]
            assert getattr(failure, "code", None) == "link_lost"
            assert "has stopped" in str(failure)

    asyncio.run(main())


def node_of(hub: Hub) -> NodeView | None:
    view = hub.fleet.node(NODE_ID)
    return view if view is not None and view.state == "live" else None


def test_a_real_hub_lists_dials_and_restarts(spec: ProbeSpec, tmp_path: Path) -> None:
    async def main() -> None:
        async with listening(spec, tmp_path / "agent") as (agent, port):
            target = Target(name="GPU01", address="127.0.0.1", port=port)
            for _ in range(2):
                options = {"outfit": PullingOutfit(target)}
                async with running_hub(tmp_path / "hub", hub_options=options) as hub:
                    node = await eventually(lambda: node_of(hub))
                    assert (node.name, node.way) == ("GPU01", "pull")
                    await eventually(lambda: agent.outbox.current.acked_seq > 0)
                    await eventually(lambda: hub.health().nodes[0].accepted > 5)
                    (health,) = hub.health().nodes
                    assert (health.missed, health.refused) == (0, {})
                    assert health.duplicates <= 2, "facts and table, told again to a hub that begins anew"
                made = agent.outbox.current.next_seq
                await until(lambda: agent.outbox.current.next_seq > made + 2, "frames without a hub")  # noqa: B023

    asyncio.run(main())
