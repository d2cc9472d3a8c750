"""A hub killed with -9 under load, again and again."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import aiohttp
import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.settings import HubSettings
from gpuherd.records.last_reports import LastReports
from support.hub import get_json
from support.hub_process import HubProcess, StubbornNode
from support.soak import SOAK

KILLS = 20 if SOAK == 1 else 100
NODES = 4


def saved_numbers(state_dir: Path) -> dict[str, int]:
    """What a hub that starts now will know of each node."""
    store = LastReports(state_dir / "state.sqlite")
    try:
        return {kept.node_id: kept.runs.get("stubborn", -1) for kept in store.load_all()}
    finally:
        store.close()


@pytest.mark.soak
def test_kills_lose_no_node_no_acknowledged_frame_and_no_state_older_than_a_second(
    tmp_path: Path,
) -> None:
    dice = random.Random(7)  # noqa: S311 - the same moments each time
    enrolment = open_enrolment(HubSettings(state_dir=tmp_path))
    token = enrolment.create_token(now=time.time(), lifetime_seconds=3600, uses=2 * KILLS)

    async def story() -> None:
        hub = HubProcess(tmp_path)
        names = [f"load-{number}" for number in range(NODES)]
        nodes = [
            StubbornNode(hub.url, enrolment.admit(name, now=time.time()).credential, every_seconds=0.01)
            for name in names
        ]
        enrolled = set(names)
        running = [asyncio.create_task(node.run()) for node in nodes]
        checked_old_states = 0
        for kill in range(KILLS):
            await hub.start()
            async with aiohttp.ClientSession(hub.url) as http:
                async with http.post(
                    "api/v1/enroll", json={"token": token, "hostname": f"new-{kill}"}
                ) as response:
                    assert response.status == 201
                    enrolled.add((await response.json())["node_id"])
                # Some lives are long enough to have a state older than a second; most end in the middle of things.
                await asyncio.sleep(1.5 if kill % 10 == 0 else dice.uniform(0.0, 0.4))
                if kill % 2:
                    # Killed while it enrols: either it said so and knows it, or it did not say so.
                    late = asyncio.create_task(_enrol(http, token, f"late-{kill}", enrolled))
                    await asyncio.sleep(dice.uniform(0.0, 0.02))
                    await hub.kill()
                    await late
                else:
                    await hub.kill()
            killed_at = time.monotonic()
            saved = saved_numbers(tmp_path)
            for name, node in zip(names, nodes, strict=True):
                assert saved.get(name, -1) >= node.acked, "an acknowledged frame is gone"
                old = node.seq_sent_before(killed_at - 1.0)
                checked_old_states += old >= 0
                assert saved.get(name, -1) >= old, "a state older than a second is gone"
            assert not any(task.done() for task in running)
        assert checked_old_states >= NODES * KILLS // 40
        await hub.start()
        known = {node["id"] for node in await get_json(f"{hub.url}api/v1/nodes")}
        assert enrolled <= known
        for node in nodes:
            node.is_finishing = True
        async with asyncio.timeout(30):
            await asyncio.gather(*running)
        for node in nodes:
            assert node.acked == node.seq
        health = await get_json(f"{hub.url}api/v1/health")
        for counts in health["nodes"]:
            assert (counts["missed"], counts["refused"]) == (0, {})
        assert await hub.stop() == 0

    async def _enrol(http: aiohttp.ClientSession, token: str, name: str, enrolled: set[str]) -> None:
        try:
            async with http.post("api/v1/enroll", json={"token": token, "hostname": name}) as response:
                if response.status == 201:
                    enrolled.add((await response.json())["node_id"])
        except (aiohttp.ClientError, ConnectionError):
            pass

    asyncio.run(story())
