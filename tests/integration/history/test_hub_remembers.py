"""A hub killed with -9, or without room, while nodes report: what it acknowledged is remembered, and all of it once."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from msgspec import structs

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.settings import HubSettings
from gpuherd.history.batch import DEVICE_METRICS, NOT_JUDGED
from gpuherd.history.journal import JournalFiles
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.devices import DEVICE_STATES, DeviceSample
from gpuherd.model.hosts import HostSample
from gpuherd.model.reports import Sample
from gpuherd.wire.codec import encode
from gpuherd.wire.frames import Welcome
from gpuherd.wire.reports import sample_to_frame
from gpuherd.wiring.past import past_outfit
from support.herd import WORKING
from support.hub import eventually, running_hub
from support.hub_process import HubProcess, ShiftedClock, StubbornNode
from support.soak import SOAK

KILLS = 4 * SOAK
NODES = 3
ENERGY = DEVICE_METRICS.index("energy_joules")
HOUR = 3600.0


class CountingNode(StubbornNode):
    """Its devices' energy counter is the number of the sample."""

    def __init__(self, url: str, credential: str) -> None:
        super().__init__(url, credential, every_seconds=0.01)
        self._times: dict[int, float] = {}

    async def open(self, *, live_from_seq: int = 0) -> Welcome:
        return await super().open(live_from_seq=self.seq + 1)

    def sample_message(self, seq: int | None = None, device: DeviceSample = WORKING) -> bytes:
        number = seq or self.next_seq()
        device = structs.replace(device, energy_joules=float(number))
        sample = Sample(
            time=self._times.setdefault(number, time.time()),
            host=HostSample(cpu_ratio=0.5),
            devices=(device,) * len(self.facts.devices),
        )
        return encode(sample_to_frame(sample, seq=number, facts_revision=1, table_revision=1))


def remembered(folder: Path) -> dict[str, Counter[int]]:
    """Give how often the samples of each node are in the journal."""
    files, ids = JournalFiles(folder / "journal"), set()
    found: dict[str, Counter[int]] = {}
    for number in files.paths():
        for batch_id, batch in files.read(number).batches:
            if batch_id in ids:
                continue
            ids.add(batch_id)
            for subject, energy in zip(batch.devices.subject, batch.devices.values[:, ENERGY], strict=True):
                key = batch.devices.keys[subject]
                if key.uuid == "GPU-0":
                    found.setdefault(key.node_id, Counter())[int(energy)] += 1
    return found


@pytest.mark.soak
def test_kills_lose_and_double_no_sample(tmp_path: Path) -> None:
    dice = random.Random(11)  # noqa: S311 - moments, not secrets
    enrolment = open_enrolment(HubSettings(state_dir=tmp_path))

    async def story() -> None:
        # By the hub's clock an hour has just begun: the journal is whole until the end of the test.
        history = HistorySettings(min_free_bytes=0)
        hub = HubProcess(tmp_path, history=history, shift_seconds=-(time.time() % HOUR))
        names = [f"load-{number}" for number in range(NODES)]
        nodes = [CountingNode(hub.url, enrolment.admit(name, now=time.time()).credential) for name in names]
        running = [asyncio.create_task(node.run()) for node in nodes]
        for _ in range(KILLS):
            await hub.start()
            await asyncio.sleep(dice.uniform(0.2, 0.9))
            await hub.kill()
            found = remembered(tmp_path / "history")
            for name, node in zip(names, nodes, strict=True):
                samples = found.get(name, Counter())
                assert all(samples[seq] == 1 for seq in range(3, node.acked + 1)), (
                    "acknowledged, and not once"
                )
                assert set(samples.values()) <= {1}, "twice"
            assert not any(task.done() for task in running)
        await hub.start()
        for node in nodes:
            node.is_finishing = True
        async with asyncio.timeout(60):
            await asyncio.gather(*running)
        assert await hub.stop() == 0
        found = remembered(tmp_path / "history")
        for name, node in zip(names, nodes, strict=True):
            assert node.seq > 100
            assert found[name] == Counter(range(3, node.seq + 1))

    asyncio.run(story())


def test_without_room_the_herd_stays_live_and_all_is_remembered_when_there_is_room(tmp_path: Path) -> None:
    async def story() -> None:
        past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path)
        clock = ShiftedClock(-(time.time() % HOUR))
        async with running_hub(tmp_path, hub_options={"past": past, "clock": clock}) as hub:
            assert hub._remembering is not None
            journal, intake = hub._remembering.library.historian._journal, hub.fleet.intake
            assert journal is not None
            assert intake is not None
            intake._max_waiting_bytes = 100_000
            node = CountingNode(hub.url, (await hub.admit("load")).credential)
            running = asyncio.create_task(node.run())
            await eventually(lambda: node.acked > 2)
            journal._min_free_bytes = 2**60
            await eventually(lambda: any("min_free_bytes" in reason for reason in hub.health().reasons))
            acked = node.acked
            await eventually(lambda: intake.is_closed, within=60)
            seen = hub.fleet.received_at("load")
            await eventually(lambda: hub.fleet.received_at("load") != seen)
            assert node.acked == acked
            assert hub.health().store.state == "ok"
            journal._min_free_bytes = 0
            await eventually(lambda: node.acked > acked + 50, within=60)
            node.is_finishing = True
            async with asyncio.timeout(60):
                await running
            health = hub.health().history
            assert health is not None
            assert (health.journal.state, health.is_closed, health.lost_samples) == ("ok", False, 0)
            assert health.sent_again_samples > 0
        assert remembered(tmp_path / "history")["load"] == Counter(range(3, node.seq + 1))

    asyncio.run(story())


def kept_states(folder: Path) -> list[str]:
    """Give the states that the samples in the journal were judged to be, in order."""
    files = JournalFiles(folder / "journal")
    batches = [batch for number in files.paths() for _, batch in files.read(number).batches]
    codes = [code for batch in batches for code in batch.devices.state.tolist()]
    return ["not judged" if code == NOT_JUDGED else DEVICE_STATES[code] for code in codes]


@pytest.mark.parametrize(("tick_seconds", "state"), [(0.05, "busy"), (60.0, "not judged")])
def test_a_single_sample_is_kept_with_what_it_shows_or_unjudged_if_that_takes_long(
    tmp_path: Path, tick_seconds: float, state: str
) -> None:
    async def story() -> None:
        options = {
            "past": past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), tmp_path),
            "clock": ShiftedClock(-(time.time() % HOUR)),
        }
        async with running_hub(tmp_path, hub_options=options, tick_seconds=tick_seconds) as hub:
            node = CountingNode(hub.url, (await hub.admit("load")).credential)
            await node.open()
            await node.send(node.facts_message(1))
            await node.send(node.table_message(2))
            await node.send(node.sample_message())
            await node.wait_acked(3)
            await node.send(node.sample_message())
            received = hub.fleet.node_health
            await eventually(lambda: received()[0].accepted == 2)
        assert remembered(tmp_path / "history")["load"] == Counter([3, 4])
        assert kept_states(tmp_path / "history")[:4] == [state] * 4
        await node.close()

    asyncio.run(story())
