"""The last minutes as a real hub tells them: filled by its own tick, asked for over HTTP."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp

from support.herd import GIB, IDLE
from support.hub import get_json, node_client, running_hub
from support.running import PATIENCE_SECONDS


class FastClock:
    """A clock that runs fifty times as fast: five seconds take a tenth of one."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def monotonic(self) -> float:
        return 1000.0 + 50 * (time.monotonic() - self._started)

    def wall(self) -> float:
        return 1_790_000_000.0 + self.monotonic()


def test_the_last_minutes_are_there_when_a_page_opens(tmp_path: Path) -> None:
    async def story() -> None:
        hub_options = {"clock": FastClock()}
        async with (
            running_hub(tmp_path, hub_options=hub_options, tick_seconds=0.02) as hub,
            node_client(hub, "gpu-01") as node,
        ):
            address = f"{hub.url}api/v1/nodes/gpu-01/recent"
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    await node.sample()
                    recent = await get_json(address)
                    if recent["devices"].get("GPU-0", {}).get("utilization_gpu", []).count(0.9) >= 3:
                        break
                    await asyncio.sleep(0.02)
            assert recent["node_id"] == "gpu-01"
            assert recent["interval_seconds"] == 5
            columns = [*recent["host"].values()]
            columns += [column for device in recent["devices"].values() for column in device.values()]
            assert {len(column) for column in columns} == {len(recent["times"])}
            assert recent["times"] == sorted(recent["times"])
            assert recent["devices"]["GPU-1"]["memory_used_bytes"][-1] in (40 * GIB, None)
            assert recent["host"]["cpu_ratio"].count(0.5) >= 3
            one = await get_json(f"{address}?device=GPU-1&device=nonsense")
            assert one["devices"].keys() == {"GPU-1"}

    asyncio.run(story())


def test_what_a_hostile_address_gets(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "gpu-01") as node:
            await node.sample(IDLE)
            many = "&".join(f"device=GPU-{number}" for number in range(500))
            async with aiohttp.ClientSession(hub.url) as http:
                async with http.get(f"api/v1/nodes/gpu-01/recent?{many}") as answer:
                    assert answer.status == 200
                    assert len((await answer.json())["devices"]) <= 2
                async with http.get("api/v1/nodes/..%2fhealth/recent") as answer:
                    assert answer.status == 404
                async with http.post("api/v1/nodes/gpu-01/recent") as answer:
                    assert answer.status == 405

    asyncio.run(story())
