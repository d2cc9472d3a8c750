"""A hub killed with -9, again and again, while nodes report, people book and machines enrol."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.open_records import open_hub_records
from gpuherd.history.settings import HistorySettings
from support.crowd import Crowd, Losses
from support.hub import get_json
from support.hub_process import HubProcess
from support.soak import SOAK
from support.tally import Tally

KILLS = 20 if SOAK == 1 else 200
HOUR = 3600.0


async def _enrol(http: aiohttp.ClientSession, token: str, name: str, enrolled: set[str]) -> None:
    try:
        async with http.post("api/v1/enroll", json={"token": token, "hostname": name}) as response:
            assert response.status == 201
            enrolled.add((await response.json())["node_id"])
    except (aiohttp.ClientError, ConnectionError):
        pass


@pytest.mark.soak
@pytest.mark.chaos
@pytest.mark.promise("kills-lose-nothing")
def test_kills_lose_double_and_misdate_nothing_that_was_acknowledged(tmp_path: Path, tally: Tally) -> None:
    dice = random.Random(7)  # noqa: S311 - the same moments each time
    # By the hub's clock an hour has just begun: the journal is whole until the end of the test.
    shift_seconds = -(time.time() % HOUR)
    hub = HubProcess(tmp_path, history=HistorySettings(min_free_bytes=0), shift_seconds=shift_seconds)
    now = time.time() + shift_seconds
    crowd = Crowd(hub.url, hub.settings, now=now, shift_seconds=shift_seconds)
    with closing(open_enrolment(hub.settings)) as enrolment:
        token = enrolment.create_token(now=now, lifetime_seconds=7200, uses=2 * KILLS)
    losses = Losses()
    enrolled = set(crowd.nodes)

    def count() -> None:
        acked, wished = crowd.acked(), crowd.wished()
        crowd.count_samples(tmp_path, acked, losses)
        with closing(open_hub_records(hub.settings)) as records:
            crowd.count_bookings(records.bookings.changed_after(0), wished, losses)
            known = {node.id for node in records.nodes.load().nodes}
        losses.lost |= {f"node {name}" for name in enrolled - known}

    async def story() -> None:
        await hub.start()
        await crowd.start()
        for kill in range(KILLS):
            with losses.a_try():
                async with aiohttp.ClientSession(hub.url) as http:
                    await _enrol(http, token, f"new-{kill}", enrolled)
                    assert f"new-{kill}" in enrolled
                    if kill % 5 == 0:
                        await crowd.progress(2)
                    else:  # not waiting for anything: most lives end in the middle of things
                        await asyncio.sleep(dice.uniform(0.0, 0.4))
                    # Killed while it enrols: either it said so and knows it, or it did not say so.
                    late = asyncio.create_task(_enrol(http, token, f"late-{kill}", enrolled))
                    await asyncio.sleep(dice.uniform(0.0, 0.02))
                    await hub.kill()
                    await late
                await asyncio.to_thread(count)
                crowd.check()
                await hub.start()
                if kill == KILLS - 1:  # also what was sent after the last kill
                    await crowd.finish()
                    health = await get_json(f"{hub.url}api/v1/health", headers=crowd.bookers[0].headers)
                    assert await hub.stop() == 0
                    count()
        losses.add_to(tally, "hub killed -9", f"{crowd.figure}, {len(enrolled)} nodes enrolled")
        assert losses.all == (set(), set(), set())
        assert losses.held == losses.tries == KILLS
        assert all(node.acked == node.seq for node in crowd.nodes.values())
        counts = [each for each in health["nodes"] if each["node_id"] in crowd.nodes]
        assert [(each["missed"], each["refused"]) for each in counts] == [(0, {})] * len(crowd.nodes)

    with closing(hub):
        asyncio.run(story())
