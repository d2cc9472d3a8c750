"""A hub whose samples go to VictoriaMetrics: both are killed, and every acknowledged sample arrives."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlencode

import pytest
from msgspec import structs

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.settings import HubSettings
from gpuherd.history.settings import HistorySettings, VictoriaMetricsSettings
from gpuherd.model.devices import DeviceSample
from gpuherd.model.hosts import HostSample
from gpuherd.model.reports import Sample
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import Hello, Welcome
from gpuherd.wire.matrix import LAYOUT
from gpuherd.wire.reports import sample_to_frame
from support.herd import WORKING
from support.hub_process import HubProcess, StubbornNode
from support.metric_server import MetricServer
from support.running import PATIENCE_SECONDS, eventually
from support.victoria_metrics import running_victoria_metrics, why_no_victoria_metrics

REASON = why_no_victoria_metrics()


class CountingNode(StubbornNode):
    """Its devices' energy counter is the number of the sample."""

    def __init__(self, url: str, credential: str) -> None:
        super().__init__(url, credential, every_seconds=0.02)
        self._times: dict[int, float] = {}

    async def hello(self, *, live_from_seq: int = 0) -> Welcome:
        """Tell the time as it is: by it the hub puts what was kept meanwhile into its place."""
        hello = Hello(
            boot_id=self.boot_id,
            layout=LAYOUT,
            time=time.time(),
            interval_seconds=1.0,
            live_from_seq=self.seq + 1,
        )
        await self.send(encode(hello))
        while not isinstance(frame := await self.receive(), Welcome):
            pass
        return frame

    def sample_message(self, seq: int | None = None, device: DeviceSample = WORKING) -> bytes:
        number = seq or self.next_seq()
        sample = Sample(
            time=self._times.setdefault(number, time.time()),
            host=HostSample(cpu_ratio=0.5),
            devices=(structs.replace(device, energy_joules=float(number)),) * len(self.facts.devices),
        )
        return encode(sample_to_frame(sample, seq=number, facts_revision=1, table_revision=1))


def arrived(server: MetricServer) -> Counter[int]:
    server.fetch("/internal/force_flush")
    query = 'gpuherd_device_energy_joules{node_id="load",uuid="GPU-0"}[1h]'
    answer = server.fetch("/api/v1/query", urlencode({"query": query, "time": time.time() + 60}).encode())
    series = json.loads(answer)["data"]["result"]
    return Counter(int(float(value)) for one in series for _, value in one["values"])


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_every_acknowledged_sample_arrives_whoever_is_killed(tmp_path: Path) -> None:
    state_dir, folder = tmp_path / "hub", tmp_path / "server"
    for made in (state_dir, folder):
        made.mkdir()
    enrolment = open_enrolment(HubSettings(state_dir=state_dir))

    async def story(server: MetricServer) -> None:
        store = VictoriaMetricsSettings(url=server.url, timeout_seconds=2.0)
        hub = HubProcess(state_dir, history=HistorySettings(min_free_bytes=0, store=store))
        node = CountingNode(hub.url, enrolment.admit("load", now=time.time()).credential)
        reporting = asyncio.create_task(node.run())

        async def eventually_arrived(count: int) -> None:
            await asyncio.to_thread(eventually, lambda: len(arrived(server)), lambda found: found >= count)

        await hub.start()
        await eventually_arrived(20)
        server.kill()
        await asyncio.sleep(0.5)  # meanwhile the hub takes on what comes
        await hub.kill()
        await hub.start()
        server.start()
        await eventually_arrived(60)
        await hub.kill()
        await hub.start()
        node.is_finishing = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reporting
        await eventually_arrived(node.seq - 2)
        assert arrived(server) == Counter(range(3, node.seq + 1))
        assert await hub.stop() == 0

    with running_victoria_metrics(folder) as server:
        asyncio.run(story(server))
